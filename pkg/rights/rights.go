// Package rights computes the rights and the images that the plans of an Instance need, from what the templates of its package render to.
package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
)

// Subject is the Instance, as it is or is going to be, whose plans are looked at.
type Subject struct {
	Namespace, Name string
	Version         *v1beta1.OperatorVersionSpec
	// Parameters are the values that are given, those of sources among them.
	Parameters map[string]string
	// Sources that the parameters are taken from.
	Sources []v1beta1.ParametersSource
	// From is the version that the last complete run of plan deploy, update or upgrade had; empty before the first.
	From v1beta1.PackageVersion
	// Written are the objects that plans have written: those that a version no longer has are deleted after an upgrade.
	Written []v1beta1.ResourceStatus
}

// Known is what is known beside the Instance.
type Known struct {
	// Versions returns the OperatorVersion of a dependency by its name, or nil if it is not known; nil knows none.
	Versions func(name string) *v1beta1.OperatorVersionSpec
	// Served finds a kind on the cluster; nil without one. It is not called again after an error, unless the error says that the kind is not
	// served.
	Served func(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Rights are what an account needs to run all plans of an Instance.
type Rights struct {
	// Rules are those in the namespace of the Instance, sorted; no two overlap.
	Rules []rbacv1.PolicyRule `json:"rules"`
	// ClusterRules are those for the whole cluster.
	ClusterRules []rbacv1.PolicyRule `json:"clusterRules,omitempty"`
	// ClusterScoped are the objects that the ClusterRules are for, in the order of kind and name.
	ClusterScoped []ClusterScoped `json:"clusterScoped,omitempty"`
	// Images are those of the containers in the objects, sorted.
	Images []string `json:"images,omitempty"`
	// Notes say what could not be found out, sorted.
	Notes []string `json:"notes,omitempty"`
}

// ClusterScoped is an object without a namespace that a plan writes or deletes.
type ClusterScoped struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Group and Resource are those of the kind.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Task is the place of the first task that has it: plan.phase.step.task.
	Task string `json:"task"`
	// Instance runs the task: the Instance itself, or one of its dependencies.
	Instance string `json:"instance"`
	// Deleted is set if tasks only delete it.
	Deleted bool `json:"deleted,omitempty"`
}

// Of computes the rights that the plans of an Instance need, those of its dependencies included: all plans but the install
// plan, and what a parameter switches on or off in both states. The error is that of a template, or of a value, or says that all together
// takes too much work.
func Of(s Subject, known Known) (*Rights, error) {
	c := &collector{
		known: known, inside: newGrants(), outside: newGrants(), kinds: kinds{served: known.Served, guessed: map[string]bool{}},
		budget: &render.Budget{}, made: map[roleRef]bool{}, bound: map[binding]bool{}, clusterScoped: map[string]*ClusterScoped{},
		images: map[string]bool{}, notes: map[string]bool{},
	}
	if err := c.plans(s, nil); err != nil {
		return nil, err
	}
	for _, source := range s.Sources {
		c.read(source.Kind, source.Name)
	}
	for _, r := range s.Written {
		if r.Namespace == s.Namespace {
			c.prune(r)
		}
	}
	c.bind()
	if c.inside.full || c.outside.full {
		return nil, fmt.Errorf("the roles of operator %s allow more than can be listed: write fewer verbs, resources and names into one rule",
			s.Version.Operator.Name)
	}
	out := &Rights{Rules: c.inside.list(), ClusterRules: c.outside.list(), Images: slices.Sorted(maps.Keys(c.images))}
	for _, object := range c.clusterScoped {
		out.ClusterScoped = append(out.ClusterScoped, *object)
	}
	slices.SortFunc(out.ClusterScoped, func(a, b ClusterScoped) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
	})
	maps.Copy(c.notes, c.kinds.guessed)
	out.Notes = slices.Sorted(maps.Keys(c.notes))
	return out, nil
}
