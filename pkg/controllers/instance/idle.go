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

	"kudo.dev/kudo/pkg/apply"
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

// reflectStatus puts what the interpreter takes from the objects' status into the Instance's while idle.
func (a *action) reflectStatus(ctx context.Context) {
	resources := slices.Clone(a.Next.Status.Resources)
	for i, r := range resources {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
		live, _ := a.appliedObject(id, r.UID)
		if live == nil {
			continue
		}
		switch text, err := a.Runner.Reflect(ctx, live); {
		case err != nil: // what was known stays
		case text == nil:
			resources[i].Status = nil
		default:
			resources[i].Status = &runtime.RawExtension{Raw: text}
		}
	}
	a.Next.Status.Resources = resources
}

// appliedObject returns an object that a plan has written, by the uid of the inventory; nil if there is none. complete reports whether
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
