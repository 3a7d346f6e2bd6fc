package instances

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/repository"
	"kudo.dev/kudo/pkg/text"
)

// installFromCluster makes an Instance of an OperatorVersion that is installed in the namespace. What this one depends on must
// be installed there, too: nothing is looked for elsewhere.
func (o *installOptions) installFromCluster(ctx context.Context, operator string, given map[string]string, from []v1beta1.ParametersSource) error {
	if err := o.validateInCluster(operator); err != nil {
		return err
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	there, err := readStock(ctx, c, namespace)
	if err != nil {
		return err
	}
	ov, err := there.choose(operator, repository.Versions{App: o.AppVersion, Operator: o.OperatorVersion})
	if err != nil {
		return err
	}
	if o.instance == "" {
		o.instance = operators.DefaultInstanceName(operator)
	}
	if err := command.CheckValues(ov.Spec.Parameters, given, nil, from, "operatorversion "+ov.Name); err != nil {
		return err
	}
	values, err := params.Resolve(ov.Spec.Parameters, given)
	if err != nil {
		return err
	}
	if len(from) > 0 { // these may have the values of all that is not given
		maps.DeleteFunc(values, func(name string, _ any) bool { _, set := given[name]; return !set })
	}
	needed, err := there.withDependencies(ov, values)
	if err != nil {
		return err
	}
	for _, w := range needed.warnings {
		o.env.Warnf("%s", w)
	}
	instance := newInstance(namespace, o, operator, ov.Name, given, from)
	if err := checkNotExists(ctx, c, instance); err != nil {
		return err
	}
	if err := command.CheckStructure(ctx, &ov.Spec, instance, nil); err != nil {
		return err
	}
	n := &newcomer{Instance: instance, pkg: operator, spec: &ov.Spec, versions: there.spec, flags: &o.account}
	if err := checkAccount(ctx, o.env, c, n); err != nil {
		return err
	}
	if err := makeAccount(ctx, o.env, c, n); err != nil {
		return err
	}
	return makeInstance(ctx, o.env, c, n, needed.ordered, &o.WaitFlags)
}

// validateInCluster refuses what says something else than --in-cluster.
func (o *installOptions) validateInCluster(operator string) error {
	switch {
	case o.skipInstance, o.namespace:
		return command.UsageError("--in-cluster makes an Instance of what is installed: it goes neither with --skip-instance nor with --create-namespace")
	case len(o.installing) > 0:
		return command.UsageError("--install-parameter goes without --in-cluster: the install plan of what is installed has had its parameters")
	case strings.ContainsAny(operator, `/\`):
		return command.UsageError("with --in-cluster, PACKAGE is the name of an operator, and %s is a path or a URL", operator)
	}
	return o.Check()
}

// Versions are the OperatorVersions of a namespace.
type Versions struct {
	namespace string
	// versions are those that are there to stay: by the names of their operators, the highest first.
	versions []*v1beta1.OperatorVersion
	byName   map[string]*v1beta1.OperatorVersion
	// terminating maps the names of those that are being deleted to their operators; nothing new is made of them.
	terminating map[string]string
}

// readStock reads the OperatorVersions of a namespace.
func readStock(ctx context.Context, c client.Client, namespace string) (*Versions, error) {
	list := &v1beta1.OperatorVersionList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the OperatorVersions of namespace %s: %w", namespace, err)
	}
	return newStock(namespace, list.Items), nil
}

func newStock(namespace string, all []v1beta1.OperatorVersion) *Versions {
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

// spec is that of an OperatorVersion; nil if it is not there.
func (s *Versions) spec(name string) *v1beta1.OperatorVersionSpec {
	if ov := s.byName[name]; ov != nil {
		return &ov.Spec
	}
	return nil
}

func versionsOf(ov *v1beta1.OperatorVersion) repository.Versions {
	return repository.Versions{App: ov.Spec.AppVersion, Operator: ov.Spec.Version}
}

// of are the OperatorVersions of an operator, the highest first.
func (s *Versions) of(operator string) []*v1beta1.OperatorVersion {
	var found []*v1beta1.OperatorVersion
	for _, ov := range s.versions {
		if ov.Spec.Operator.Name == operator {
			found = append(found, ov)
		}
	}
	return found
}

// best is the highest OperatorVersion of an operator that fits; nil if none does.
func (s *Versions) best(operator string, wanted repository.Versions) (*v1beta1.OperatorVersion, error) {
	have := s.of(operator)
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

// choose is best for an Instance; the error says what there is instead.
func (s *Versions) choose(operator string, wanted repository.Versions) (*v1beta1.OperatorVersion, error) {
	ov, err := s.best(operator, wanted)
	if ov != nil || err != nil {
		return ov, err
	}
	if have := s.of(operator); len(have) > 0 {
		return nil, fmt.Errorf("no OperatorVersion of operator %s in namespace %s has %s: %s%s", operator, s.namespace, wanted, listVersionNames(have), s.terminatingHint(operator))
	}
	var others []string
	for _, ov := range s.versions {
		others = append(others, ov.Spec.Operator.Name)
	}
	other := ""
	if others = slices.Compact(others); len(others) > 0 {
		other = ", which has those of " + text.List(others, 10)
	}
	return nil, fmt.Errorf("no OperatorVersion of operator %s is in namespace %s%s%s: kubectl kudo install PACKAGE --skip-instance -n %s installs one",
		operator, s.namespace, other, s.terminatingHint(operator), s.namespace)
}

// terminatingHint names what might have been meant, but is being deleted.
func (s *Versions) terminatingHint(operator string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.terminating)) {
		if s.terminating[name] == operator {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + text.List(names, 10) + " is being deleted"
}

// listVersionNames names OperatorVersions.
func listVersionNames(versions []*v1beta1.OperatorVersion) string {
	names := make([]string, len(versions))
	for i, ov := range versions {
		names[i] = ov.Name
	}
	return "there is " + text.List(names, 10)
}
