package instance

import (
	"context"
	"fmt"
	"maps"
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

// checkObjects checks, while nothing runs, which objects are not ready, what others have changed, and which
// CustomResourceDefinitions were deleted.
func (a *action) checkObjects(ctx context.Context) error {
	a.Summarize = a.summarize
	if running, _ := a.activePlan(); running != "" {
		return nil
	}
	inventory := a.readInventory()
	a.notReady, a.failed = a.unreadyObjects(ctx, inventory)
	a.checkDrift(ctx, inventory)
	a.reflectStatus(ctx)
	return a.restoreCRDs(ctx)
}

// watchInventory watches the kinds of the inventory, which a manager that has just started may not watch yet.
func (a *action) watchInventory(ctx context.Context) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, r := range a.Next.Status.Resources {
		kinds[schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)] = true
	}
	a.Mirror.Watch(ctx, slices.Collect(maps.Keys(kinds))...)
}

// unreadyObjects lists the objects of the inventory that are not as they should be, and reports whether one of them has failed.
func (a *action) unreadyObjects(ctx context.Context, inventory runner.Inventory) (out []string, failed bool) {
	a.clusterScoped.set(types.NamespacedName{Namespace: a.Next.Namespace, Name: a.Next.Name}, inventory)
	for id, record := range inventory {
		live, complete := a.appliedObject(id, record.UID)
		switch {
		case live == nil && complete && record.UID != "" && isLongLived(id):
			out = append(out, id.String()+" is missing")
		case live == nil:
		default:
			result, unknown := a.Runner.Health(ctx, live)
			a.result.Transient = a.result.Transient || unknown != nil // no watch shows when it is known
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
func (a *action) reflectStatus(ctx context.Context) {
	resources := slices.Clone(a.Next.Status.Resources)
	sources := make([]excerpt.Source, len(resources))
	for i := range resources {
		sources[i], resources[i].StatusUnknown = a.statusSource(ctx, resources[i])
		a.result.Transient = a.result.Transient || resources[i].StatusUnknown // no watch shows when it is known
	}
	for i, e := range excerpt.Fit(sources) {
		resources[i].Status, resources[i].Omitted = nil, e.Omitted
		if e.JSON != nil {
			resources[i].Status = &runtime.RawExtension{Raw: e.JSON}
		}
	}
	a.Next.Status.Resources = resources
}

// statusSource asks for the status of an object, and reports whether it is not known. What was known then stays, as it does while the
// mirror does not know the kind yet.
func (a *action) statusSource(ctx context.Context, r v1beta1.ResourceStatus) (source excerpt.Source, unknown bool) {
	id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
		NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
	last := &excerpt.Excerpt{Omitted: r.Omitted}
	if r.Status != nil {
		last.JSON = r.Status.Raw
	}
	live, complete := a.appliedObject(id, r.UID)
	switch {
	case live == nil && complete:
		return excerpt.Source{}, false
	case live == nil:
		return excerpt.Source{Last: last}, r.StatusUnknown
	}
	status, err := a.Runner.Reflect(ctx, live)
	if err != nil {
		return excerpt.Source{Last: last}, true
	}
	return excerpt.Source{Status: status}, false
}

// appliedObject returns an object that a plan has written, by the uid of the inventory, or nil if there is none. complete reports whether
// the mirror knows all objects of the kind.
// What a plan could only name is not reported, since its account may not be allowed to read it, and kudo is. An object of the
// Instance's namespace may have been created anew.
func (a *action) appliedObject(id apply.ID, uid types.UID) (live *unstructured.Unstructured, complete bool) {
	live, complete = a.Mirror.Get(id)
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
