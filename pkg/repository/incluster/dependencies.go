package incluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/versions"
	"kudo.dev/kudo/pkg/repository"
)

// Resolution holds an OperatorVersion and all that it depends on.
type Resolution struct {
	// Ordered has each OperatorVersion after what it depends on.
	Ordered []*v1beta1.OperatorVersion
	// Warnings name what is missing if parameters get certain values.
	Warnings []string
}

// resolver follows dependencies.
type resolver struct {
	installed *Versions
	Resolution
	problems []string
	// state of an OperatorVersion: 1 while it is visited, 2 once it is done.
	state map[string]int
}

// Resolve follows the KudoOperator tasks of an OperatorVersion, and of those that they name, as the manager will. The values
// of its parameters decide which of its own dependencies are switched off; those need not be installed. If a dependency is
// switched by a parameter that has no value here, only a warning says that it is missing. The error names all that are missing,
// and what to do about each.
func (v *Versions) Resolve(ov *v1beta1.OperatorVersion, values params.Values) (*Resolution, error) {
	n := &resolver{installed: v, state: map[string]int{}}
	if err := n.visit(ov, nil, values); err != nil {
		return nil, err
	}
	if len(n.problems) > 0 {
		return nil, fmt.Errorf("operatorversion %s/%s depends on what is not installed in its namespace:\n%s", v.namespace, ov.Name,
			strings.Join(n.problems, "\n"))
	}
	return &n.Resolution, nil
}

// visit follows one OperatorVersion. The values are nil for a dependency, whose values only a run will tell.
func (n *resolver) visit(ov *v1beta1.OperatorVersion, trail []string, values params.Values) error {
	trail = append(slices.Clone(trail), ov.Name)
	switch n.state[ov.Name] {
	case 1:
		return fmt.Errorf("the OperatorVersions of namespace %s depend on one another in a circle: %s. Remove one of the KudoOperator tasks",
			n.installed.namespace, strings.Join(trail, " -> "))
	case 2:
		return nil
	}
	n.state[ov.Name] = 1
	for _, d := range operators.DependenciesOf(ov.Spec.Tasks, ov.Spec.Plans) {
		value, known := values[d.EnablingParameter]
		if known && isFalse(value) {
			continue
		}
		child, problem := n.installed.dependency(d)
		switch {
		case child != nil && problem == "":
			if err := n.visit(child, trail, nil); err != nil {
				return err
			}
		case d.EnablingParameter != "" && !known:
			n.Warnings = append(n.Warnings, fmt.Sprintf("if parameter %s is true: task %q of operatorversion %s %s", d.EnablingParameter, d.Task,
				ov.Name, problem))
		default:
			n.problems = append(n.problems, fmt.Sprintf("- task %q of operatorversion %s %s", d.Task, ov.Name, problem))
		}
	}
	n.state[ov.Name] = 2
	n.Ordered = append(n.Ordered, ov)
	return nil
}

// isFalse reports whether the value of a parameter switches a dependency off.
func isFalse(value any) bool {
	text, _ := value.(string)
	on, err := strconv.ParseBool(text)
	return err == nil && !on
}

// dependency finds what a task names: the OperatorVersion by its exact name, as the manager looks for it. If it is not
// there, it says why and what to do.
func (v *Versions) dependency(d operators.Dependency) (*v1beta1.OperatorVersion, string) {
	name := operators.VersionName(d.Package, d.AppVersion, d.OperatorVersion)
	if d.OperatorVersion == "" || versions.IsRange(d.OperatorVersion) || versions.IsRange(d.AppVersion) ||
		len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, v.unresolved(d)
	}
	if ov := v.byName[name]; ov != nil {
		return ov, contentProblem(ov, d)
	}
	if _, terminating := v.terminating[name]; terminating {
		return nil, fmt.Sprintf("needs OperatorVersion %s, which is being deleted: install it again once it is deleted", name)
	}
	lacks := ""
	if have := v.Of(d.Package); len(have) > 0 {
		lacks = fmt.Sprintf(" (of this operator, %s)", listVersionNames(have))
	}
	app := ""
	if d.AppVersion != "" {
		app = " --app-version " + d.AppVersion
	}
	return nil, fmt.Sprintf("needs OperatorVersion %s%s: kubectl kudo install %s%s --operator-version %s --skip-instance -n %s installs it "+
		"from a repository",
		name, lacks, d.Package, app, d.OperatorVersion, v.namespace)
}

// contentProblem says that an OperatorVersion has not the content that a task wants of it; empty if it has.
func contentProblem(ov *v1beta1.OperatorVersion, d operators.Dependency) string {
	if d.Content == "" {
		return ""
	}
	digest, err := content.Digest(ov)
	switch {
	case err != nil:
		return fmt.Sprintf("needs OperatorVersion %s, whose content cannot be compared: %s", ov.Name, err)
	case digest != d.Content:
		return fmt.Sprintf("needs OperatorVersion %s of content %s, and the one that is installed has %s: install the one that the package "+
			"was locked with, or a version of the package that is locked to the installed one", ov.Name, d.Content, digest)
	}
	return ""
}

// unresolved describes a task that names a package where the manager needs an OperatorVersion.
func (v *Versions) unresolved(d operators.Dependency) string {
	wanted := repository.Versions{App: d.AppVersion, Operator: d.OperatorVersion}
	hint := ""
	if ov, err := v.best(d.Package, wanted); err != nil {
		hint = fmt.Sprintf(" (%s)", err)
	} else if ov != nil {
		hint = fmt.Sprintf(" (%s would do)", ov.Name)
	}
	asked := ""
	if text := wanted.String(); text != "" {
		asked = " of " + text
	}
	return fmt.Sprintf("names package %q%s, and not the one OperatorVersion that it was found to be%s: name operator and versions in the "+
		"task, or delete the OperatorVersion and install its package with kubectl kudo install PACKAGE --skip-instance -n %s, which finds them",
		d.Package, asked, hint, v.namespace)
}
