package instances

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/text"
)

// query is what one list and one watch of dependents ask for: the objects of a kind by the labels that plans set, or one object of an
// account by its name.
type query struct {
	schema.GroupVersionKind
	// name and uid are those of an object of an account, or empty.
	name string
	uid  types.UID
}

// String names what the query asks for.
func (q query) String() string {
	if q.name != "" {
		return q.Kind + " " + q.name
	}
	return "the " + q.Kind + " objects"
}

// deletion returns a clause about the deletion of the selected objects.
func (q query) deletion() string {
	if q.name != "" {
		return q.String() + " of the instance is deleted"
	}
	return q.String() + " of the instance are deleted"
}

// has reports whether an object is one that the query asks for, and not another of the same name.
func (q query) has(o metav1.Object) bool { return q.uid == "" || q.uid == o.GetUID() }

// queries returns a query for each kind, and then one for each object of the accounts: these are deleted last, since plans run as the
// account.
func (d *dependents) queries() []query {
	var out []query
	for _, kind := range d.sortedKinds() {
		out = append(out, query{GroupVersionKind: kind})
	}
	for _, o := range d.accounts {
		out = append(out, query{o.GroupVersionKind, o.Name, o.UID})
	}
	return out
}

// options are those of the list and of the watch.
func (d *dependents) options(q query) *client.ListOptions {
	if q.name != "" {
		return &client.ListOptions{Namespace: d.namespace, FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, q.name)}
	}
	return &client.ListOptions{Namespace: d.namespace, LabelSelector: d.selector()}
}

// arguments returns the arguments of kubectl get for the selected objects.
func (d *dependents) arguments(q query) string {
	kind := strings.ToLower(q.GroupKind().String())
	if q.name != "" {
		return fmt.Sprintf("%s -n %s", text.ShellQuote(kind+"/"+q.name), d.namespace)
	}
	return fmt.Sprintf("%s -n %s -l %s", text.ShellQuote(kind), d.namespace, text.ShellQuote(d.selector().String()))
}

// sortedKinds returns the kinds of the dependents. Instances come first, since objects of the other kinds are theirs.
func (d *dependents) sortedKinds() []schema.GroupVersionKind {
	isInstance := func(kind schema.GroupVersionKind) int {
		if kind.GroupKind() == v1beta1.GroupVersion.WithKind("Instance").GroupKind() {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(d.kinds), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(isInstance(a), isInstance(b)), cmp.Compare(a.String(), b.String()))
	})
}

// selector selects the objects of the Instances.
func (d *dependents) selector() labels.Selector {
	return act.SelectObjects(slices.Sorted(maps.Values(d.owners)))
}
