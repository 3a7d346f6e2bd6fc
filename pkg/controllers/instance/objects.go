package instance

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore/excerpt"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/pkg/runner"
)

// objectChecker checks, while nothing runs, the objects that plans have written.
type objectChecker struct {
	*scope
	// notReady lists the objects that are not ready.
	notReady []string
	// failed is set if one of them has failed, and does not become ready by waiting.
	failed bool
}

// findUnready lists the objects of the inventory that are not as they should be, and reports whether one of them has failed.
func (c *objectChecker) findUnready(ctx context.Context, inventory runner.Inventory) (out []string, failed bool) {
	c.clusterScoped.set(types.NamespacedName{Namespace: c.Next.Namespace, Name: c.Next.Name}, inventory)
	for id, record := range inventory {
		live, complete := c.appliedObject(id, record.UID)
		switch {
		case live == nil && complete && record.UID != "" && isLongLived(id):
			out = append(out, id.String()+" is missing")
		case live == nil:
		default:
			result, unknown := c.Runner.Health(ctx, live)
			c.result.Transient = c.result.Transient || unknown != nil // no watch shows when it is known
			failed = failed || result.State == health.Failed
			if result.State != health.Ready && !result.Serving {
				out = append(out, fmt.Sprintf("%s: %s", id, result.Message))
			}
		}
	}
	sort.Strings(out)
	return out, failed
}

// reflectStatus puts what the interpreter takes from the objects' status into the Instance's while idle, as far as there is room.
func (c *objectChecker) reflectStatus(ctx context.Context) {
	resources := slices.Clone(c.Next.Status.Resources)
	sources := make([]excerpt.Source, len(resources))
	for i := range resources {
		sources[i], resources[i].StatusUnknown = c.statusSource(ctx, resources[i])
		c.result.Transient = c.result.Transient || resources[i].StatusUnknown // no watch shows when it is known
	}
	for i, e := range excerpt.Fit(sources) {
		resources[i].Status, resources[i].Omitted = nil, e.Omitted
		if e.JSON != nil {
			resources[i].Status = &runtime.RawExtension{Raw: e.JSON}
		}
	}
	c.Next.Status.Resources = resources
}

// statusSource asks the interpreter for the status of an object. unknown is set if there is no answer. The last known status stays then,
// and also while the mirror does not know the kind yet.
func (c *objectChecker) statusSource(ctx context.Context, r v1beta1.ResourceStatus) (source excerpt.Source, unknown bool) {
	id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
		NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
	last := &excerpt.Excerpt{Omitted: r.Omitted}
	if r.Status != nil {
		last.JSON = r.Status.Raw
	}
	live, complete := c.appliedObject(id, r.UID)
	switch {
	case live == nil && complete:
		return excerpt.Source{}, false
	case live == nil:
		return excerpt.Source{Last: last}, r.StatusUnknown
	}
	status, err := c.Runner.Reflect(ctx, live)
	if err != nil {
		return excerpt.Source{Last: last}, true
	}
	return excerpt.Source{Status: status}, false
}

// appliedObject returns an object that a plan has written, by the uid of the inventory, or nil if there is none. complete reports whether
// the mirror knows all objects of the kind. An object that a plan only names, and has not written, is not returned, since kudo may read
// objects that the account of the plan may not. An object in the Instance's namespace is returned even if it was created anew, with another
// uid.
func (c *objectChecker) appliedObject(id apply.ID, uid types.UID) (live *unstructured.Unstructured, complete bool) {
	live, complete = c.Mirror.Get(id)
	if live != nil && (uid == "" || id.Namespace == "" && live.GetUID() != uid) {
		return nil, complete
	}
	return live, complete
}

// isLongLived reports whether an object of the kind exists until a client deletes it, unlike a finished Job or Pod.
func isLongLived(id apply.ID) bool {
	switch id.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "Event"},
		schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return false
	}
	return true
}
