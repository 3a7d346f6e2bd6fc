// Package incluster finds the OperatorVersions that are installed in a namespace, and their dependencies. Nothing is looked for
// elsewhere.
package incluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/text"
)

// Versions are the OperatorVersions of a namespace.
type Versions struct {
	namespace string
	// versions are those that are there to stay: by the names of their operators, the highest first.
	versions []*v1beta1.OperatorVersion
	byName   map[string]*v1beta1.OperatorVersion
	// terminating maps the names of those that are being deleted to their operators; nothing new is made of them.
	terminating map[string]string
}

// List reads the OperatorVersions of a namespace.
func List(ctx context.Context, c client.Reader, namespace string) (*Versions, error) {
	list := &v1beta1.OperatorVersionList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the OperatorVersions of namespace %s: %w", namespace, err)
	}
	return New(namespace, list.Items), nil
}

// New returns the OperatorVersions of a namespace.
func New(namespace string, all []v1beta1.OperatorVersion) *Versions {
	s := &Versions{namespace: namespace, byName: map[string]*v1beta1.OperatorVersion{}, terminating: map[string]string{}}
	for i := range all {
		if ov := &all[i]; ov.DeletionTimestamp != nil {
			s.terminating[ov.Name] = ov.Spec.Operator.Name
		} else {
			s.versions = append(s.versions, ov)
			s.byName[ov.Name] = ov
		}
	}
	slices.SortFunc(s.versions, func(a, b *v1beta1.OperatorVersion) int {
		return cmp.Or(cmp.Compare(a.Spec.Operator.Name, b.Spec.Operator.Name), versionsOf(b).Compare(versionsOf(a)), cmp.Compare(a.Name, b.Name))
	})
	return s
}

// Find returns an OperatorVersion, or nil if it is not installed or is being deleted.
func (v *Versions) Find(name string) *v1beta1.OperatorVersion { return v.byName[name] }

// Spec returns the spec of an OperatorVersion, or nil if it is not installed.
func (v *Versions) Spec(name string) *v1beta1.OperatorVersionSpec {
	if ov := v.Find(name); ov != nil {
		return &ov.Spec
	}
	return nil
}

// versionsOf returns the versions that an OperatorVersion is ordered by.
func versionsOf(ov *v1beta1.OperatorVersion) repository.Versions {
	return repository.Versions{App: ov.Spec.AppVersion, Operator: ov.Spec.Version}
}

// Of returns the OperatorVersions of an operator, the highest first.
func (v *Versions) Of(operator string) []*v1beta1.OperatorVersion {
	var found []*v1beta1.OperatorVersion
	for _, ov := range v.versions {
		if ov.Spec.Operator.Name == operator {
			found = append(found, ov)
		}
	}
	return found
}

// best returns the highest OperatorVersion of an operator that fits, or nil if none does.
func (v *Versions) best(operator string, wanted repository.Versions) (*v1beta1.OperatorVersion, error) {
	have := v.Of(operator)
	versions := make([]repository.Versions, len(have))
	for i, ov := range have {
		versions[i] = versionsOf(ov)
	}
	at, err := repository.Best(versions, wanted)
	if at < 0 || err != nil {
		return nil, err
	}
	return have[at], nil
}

// VersionPrefix stands before the name of an OperatorVersion, as kubectl writes it, where the name of an operator could stand, too.
const VersionPrefix = "operatorversion/"

// Choose returns the highest OperatorVersion of an operator that fits, or the one that is named, as in operatorversion/web-1.0.0. If there
// is none, the error says what is installed instead.
func (v *Versions) Choose(operator string, wanted repository.Versions) (*v1beta1.OperatorVersion, error) {
	if name, named := strings.CutPrefix(operator, VersionPrefix); named {
		return v.named(name, wanted)
	}
	ov, err := v.best(operator, wanted)
	if ov != nil || err != nil {
		return ov, err
	}
	if have := v.Of(operator); len(have) > 0 {
		return nil, fmt.Errorf("no OperatorVersion of operator %s in namespace %s has %s: %s%s", operator, v.namespace, wanted,
			listVersionNames(have), v.terminatingHint(operator))
	}
	var others []string
	for _, ov := range v.versions {
		others = append(others, ov.Spec.Operator.Name)
	}
	other := ""
	if others = slices.Compact(others); len(others) > 0 {
		other = ", which has those of " + text.List(others, 10)
	}
	return nil, fmt.Errorf("no OperatorVersion of operator %s is in namespace %s%s%s: kubectl kudo install PACKAGE --skip-instance -n %s "+
		"installs one",
		operator, v.namespace, other, v.terminatingHint(operator), v.namespace)
}

// named returns an OperatorVersion by its name, which has its versions already.
func (v *Versions) named(name string, wanted repository.Versions) (*v1beta1.OperatorVersion, error) {
	ov := v.Find(name)
	switch {
	case wanted != (repository.Versions{}):
		return nil, fmt.Errorf("operatorversion %s has its versions: leave out %s", name, wanted)
	case ov == nil:
		return nil, fmt.Errorf("operatorversion %s/%s does not exist or is being deleted: kubectl kudo get operatorversions -n %s lists those "+
			"that do", v.namespace, name, v.namespace)
	}
	return ov, nil
}

// terminatingHint names what might have been meant, but is being deleted.
func (v *Versions) terminatingHint(operator string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v.terminating)) {
		if v.terminating[name] == operator {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + text.List(names, 10) + " is being deleted"
}

// listVersionNames lists OperatorVersions in a message.
func listVersionNames(versions []*v1beta1.OperatorVersion) string {
	names := make([]string, len(versions))
	for i, ov := range versions {
		names[i] = ov.Name
	}
	return "there is " + text.List(names, 10)
}
