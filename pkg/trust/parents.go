package trust

import (
	"maps"
	"slices"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// maxParents bounds how many OperatorVersions are judged that may vouch for another one by their locks, and maxParentDepth how long a chain
// of them may be: whoever may write OperatorVersions can write many.
const (
	maxParents     = 16
	maxParentDepth = 4
)

// AddParents adds the OperatorVersions of a namespace that vouch for the content of the package, since their tasks name it, and those that
// vouch for these.
func (c *Candidate) AddParents(namespace string, all []v1beta1.OperatorVersion) {
	f := &family{known: map[string]*Candidate{}}
	for i := range all {
		if all[i].Namespace == namespace && namesContent(&all[i]) {
			f.versions = append(f.versions, &all[i])
		}
	}
	f.addParents(c, maxParentDepth)
}

// family are the OperatorVersions of a namespace that name contents.
type family struct {
	versions []*v1beta1.OperatorVersion
	// known has what was read of them, by their names; nil if one has no content that a signature could be for.
	known map[string]*Candidate
}

func (f *family) addParents(c *Candidate, depth int) {
	if depth == 0 {
		return
	}
	for _, ov := range f.versions {
		if !slices.ContainsFunc(ov.Spec.Tasks, func(t v1beta1.Task) bool { return t.Spec.Content == c.Package.Content }) {
			continue
		}
		if read := f.candidate(ov, c); read != nil {
			parent := *read
			f.addParents(&parent, depth-1)
			c.Parents = append(c.Parents, parent)
		}
	}
}

// candidate reads an OperatorVersion as a candidate for the namespace of another one; nil if it has no content, or too many were read.
func (f *family) candidate(ov *v1beta1.OperatorVersion, of *Candidate) *Candidate {
	if known, is := f.known[ov.Name]; is {
		return known
	}
	if len(f.known) == maxParents {
		return nil
	}
	f.known[ov.Name] = nil
	if c, err := NewCandidate(ov, of.Namespace); err == nil {
		c.Anywhere = of.Anywhere
		f.known[ov.Name] = &c
	}
	return f.known[ov.Name]
}

// namesContent reports whether a task of an OperatorVersion names the content of a dependency.
func namesContent(ov *v1beta1.OperatorVersion) bool {
	return slices.ContainsFunc(ov.Spec.Tasks, func(t v1beta1.Task) bool { return t.Spec.Content != "" })
}

// admittedParents returns the parents that may run themselves, but for their signatures: none that a policy for the parent revokes or
// refuses.
func (c Candidate) admittedParents(policies []Policy) (out []Candidate) {
	for _, parent := range c.Parents {
		matches := matching(policies, parent)
		refused := slices.ContainsFunc(matches, func(p Policy) bool { return p.revokes(parent) != "" }) ||
			slices.ContainsFunc(applying(matches, parent), func(p Policy) bool {
				return p.action == configv1alpha1.RefusePackages || p.check(parent) != nil
			})
		if !refused {
			parent.Package.Revoked = revoked(matches)
			parent.Parents = parent.admittedParents(policies)
			out = append(out, parent)
		}
	}
	return out
}

// revoked returns what any of several policies revokes.
func revoked(policies []Policy) map[string]bool {
	out := map[string]bool{}
	for _, p := range policies {
		maps.Copy(out, p.revoked)
	}
	return out
}
