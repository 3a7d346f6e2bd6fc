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

// statusSource asks for the status of an object, and reports whether it is not known. What was known then stays, as it does while the
// mirror does not know the kind yet.
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
// the mirror knows all objects of the kind.
// What a plan could only name is not reported, since its account may not be allowed to read it, and kudo is. An object of the
// Instance's namespace may have been created anew.
func (c *objectChecker) appliedObject(id apply.ID, uid types.UID) (live *unstructured.Unstructured, complete bool) {
	live, complete = c.Mirror.Get(id)
	if live != nil && (uid == "" || id.Namespace == "" && live.GetUID() != uid) {
		return nil, complete
	}
	return live, complete
}

// isLongLived kinds do not go by themselves, as finished Jobs and Pods may.
func isLongLived(id apply.ID) bool {
	switch id.GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}, schema.GroupKind{Kind: "Pod"}, schema.GroupKind{Kind: "Event"},
		schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}:
		return false
	}
	return true
}
