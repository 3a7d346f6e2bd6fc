package trust

import (
	"slices"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// maxParents bounds how many OperatorVersions are looked at that may vouch for another one by their locks, and maxParentDepth how many of
// them stand one above the other: whoever may write OperatorVersions can write many.
const (
	maxParents     = 64
	maxParentDepth = 8
)

// AddParents adds the OperatorVersions of a namespace that vouch for the content of the package, since their tasks name it, and those that
// vouch for these.
func (c *Candidate) AddParents(namespace string, all []v1beta1.OperatorVersion) {
	left := maxParents
	c.addParents(namespace, all, maxParentDepth, &left)
}

func (c *Candidate) addParents(namespace string, all []v1beta1.OperatorVersion, depth int, left *int) {
	if depth == 0 {
		return
	}
	for i := range all {
		ov := &all[i]
		if ov.Namespace != namespace || !namesContent(ov, c.Package.Content) {
			continue
		}
		if *left--; *left < 0 {
			return
		}
		parent, err := NewCandidate(ov, c.Namespace)
		if err != nil { // it has no content that a signature could be for
			continue
		}
		parent.addParents(namespace, all, depth-1, left)
		c.Parents = append(c.Parents, parent)
	}
}

// namesContent reports whether a task of an OperatorVersion names the content of a dependency; any content if the digest is empty.
func namesContent(ov *v1beta1.OperatorVersion, digest string) bool {
	return slices.ContainsFunc(ov.Spec.Tasks, func(t v1beta1.Task) bool {
		return t.Spec.Content != "" && (digest == "" || t.Spec.Content == digest)
	})
}
