package instance

import (
	"context"
	"fmt"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
)

// execute goes through the plan until nothing is ready that has not been tried in this pass. What a step is about to
// write is committed to the inventory before its first write.
func (p *pass) execute(ctx context.Context) (bool, error) {
	name, st := p.running()
	if name == "" {
		return false, nil
	}
	if err := p.resume(ctx, name, st); err != nil || p.run == nil {
		return err != nil, err
	}
	inventory := p.inventory()
	done, err := p.Runner.Execute(ctx, p.run, inventory, &st, p.Clock, &hooks{p, name, inventory})
	if err != nil {
		return true, err
	}
	p.transient = p.transient || done.Transient
	if done.Ended && p.instance.DeletionTimestamp != nil {
		return true, p.release(ctx)
	}
	if done.Never && !st.Status.IsTerminal() && len(p.instance.Status.Queue) > 0 {
		plans.Fail(&st, fmt.Sprintf("ended, since it is never done and plan %s waits for it", p.instance.Status.Queue[0].PlanName), p.Clock.Now())
	}
	p.store(inventory)
	return false, p.ended(ctx, name, st, inventory)
}

// hooks connect the execution of a plan to the status of the Instance.
type hooks struct {
	*pass
	plan      string
	inventory runner.Inventory
}

// Intend commits the objects that are about to be written for the first time, and that what must not be done twice is done,
// along with all that has changed.
func (h *hooks) Intend(ctx context.Context, st v1beta1.PlanStatus, ids []apply.ID, done bool) error {
	h.progress(h.plan, st)
	fresh := done
	for _, id := range ids {
		if _, known := h.inventory[id]; !known {
			h.inventory[id], fresh = apply.Record{}, true
		}
	}
	if committed := h.written.Status.PlanStatus[h.plan]; !fresh && committed.UID == h.run.UID {
		return nil
	}
	h.store(h.inventory)
	h.derive(nil)
	return h.commit(ctx)
}

// Take puts what a task did into the inventory, and records its events.
func (h *hooks) Take(effects runner.Effects) {
	for _, change := range effects.Written {
		h.inventory[change.ID] = change.Record
	}
	for _, id := range effects.Gone {
		delete(h.inventory, id)
	}
	for _, e := range effects.Events {
		h.once(e[0], e[1])
	}
}

// ended acts on the end of a run, if it has come.
func (p *pass) ended(ctx context.Context, name string, st v1beta1.PlanStatus, inventory runner.Inventory) error {
	if !st.Status.IsTerminal() {
		p.progress(name, st)
		p.result.RequeueAfter = requeue.Look
		return nil
	}
	p.transient = false
	if st.Status == v1beta1.Complete && p.run.Upgrade {
		if err := p.prune(ctx, inventory); err != nil {
			return err
		}
		if err := p.dropped(ctx); err != nil {
			return err
		}
	}
	p.finish(name, st)
	return nil
}

// progress puts the state of the running plan into the status.
func (p *pass) progress(name string, st v1beta1.PlanStatus) {
	p.instance.Status.PlanStatus[name] = st
}

// finish puts the end of a run into the status. What comes next is decided upon in the next pass: a plan of the queue, or
// what spec has asked for meanwhile.
func (p *pass) finish(name string, st v1beta1.PlanStatus) {
	p.instance.Status.PlanStatus[name] = st
	p.runs.Delete(client.ObjectKeyFromObject(p.instance))
	p.run, p.told, p.result.RequeueAfter = nil, nil, 1
	if st.Status == v1beta1.FatalError {
		p.happened(corev1.EventTypeWarning, v1beta1.EventPlanFailed, "Plan %s failed: %s", name, st.Message)
	}
	// The text is KUDO's, to the letter: tests assert it.
	p.happened(corev1.EventTypeNormal, v1beta1.EventPlanFinished, "Execution of plan %s finished with status %s", name, st.Status)
}

// settle derives conditions and the aggregated status, and commits.
func (p *pass) settle(ctx context.Context) (bool, error) {
	var unready []string
	if running, _ := p.running(); running == "" {
		inventory := p.inventory()
		unready = p.unready(ctx, inventory)
		p.drift(ctx, inventory)
		p.reflect(ctx)
		if err := p.restore(ctx); err != nil {
			return true, err
		}
	}
	p.derive(unready)
	return true, p.commit(ctx)
}

// derive sums the status up.
func (p *pass) derive(unready []string) {
	conditions.Set(p.instance, unready)
	p.instance.Status.AggregatedStatus = plans.Aggregate(p.instance.Status.PlanStatus)
}

// unready lists the objects of the inventory that are not as they should be.
func (p *pass) unready(ctx context.Context, inventory runner.Inventory) []string {
	p.wide.set(types.NamespacedName{Namespace: p.instance.Namespace, Name: p.instance.Name}, inventory)
	kinds := map[schema.GroupVersionKind]bool{}
	for id := range inventory {
		kinds[id.GroupVersionKind] = true
	}
	watch := make([]schema.GroupVersionKind, 0, len(kinds))
	for gvk := range kinds {
		watch = append(watch, gvk)
	}
	p.Mirror.Watch(ctx, watch...)
	var out []string
	for id, record := range inventory {
		live, complete := p.Mirror.Get(id)
		switch {
		case live == nil && complete && record.UID != "" && lasting(id):
			out = append(out, id.String()+" is missing")
		case live == nil:
		default:
			result, unknown := p.Runner.Health(ctx, live)
			p.transient = p.transient || unknown != nil // nothing tells when it can be told
			if result.State != health.Ready {
				out = append(out, fmt.Sprintf("%s: %s", id, result.Message))
			}
		}
	}
	sort.Strings(out)
	return out
}

// reflect puts what teachers take from the objects' status into the Instance's, at rest.
func (p *pass) reflect(ctx context.Context) {
	resources := slices.Clone(p.instance.Status.Resources)
	for i, r := range resources {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
		live, _ := p.Mirror.Get(id)
		if live == nil {
			continue
		}
		switch text, err := p.Runner.Reflect(ctx, live); {
		case err != nil: // what was known stays
		case text == nil:
			resources[i].Status = nil
		default:
			resources[i].Status = &runtime.RawExtension{Raw: text}
		}
	}
	p.instance.Status.Resources = resources
}

// lasting kinds do not go by themselves, as finished Jobs and Pods may.
func lasting(id apply.ID) bool {
	return id.Kind != "Job" && id.Kind != "Pod" && id.Kind != "Event"
}

// inventory reads status.resources.
func (p *pass) inventory() runner.Inventory {
	out := runner.Inventory{}
	for _, r := range p.instance.Status.Resources {
		id := apply.ID{
			GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName:   types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		}
		out[id] = apply.Record{UID: r.UID, Hash: r.Hash, Version: r.Version, Fields: r.Fields}
	}
	return out
}

// store writes status.resources, in order.
func (p *pass) store(inventory runner.Inventory) {
	reflected := map[types.UID]*runtime.RawExtension{}
	for _, r := range p.instance.Status.Resources {
		reflected[r.UID] = r.Status
	}
	out := make([]v1beta1.ResourceStatus, 0, len(inventory))
	for id, record := range inventory {
		apiVersion, kind := id.ToAPIVersionAndKind()
		out = append(out, v1beta1.ResourceStatus{
			APIVersion: apiVersion, Kind: kind, Namespace: id.Namespace, Name: id.Name,
			UID: record.UID, Hash: record.Hash, Version: record.Version, Fields: record.Fields,
			Status: reflected[record.UID],
		})
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		if a.Kind != b.Kind {
			return a.Kind < b.Kind
		}
		if a.Name != b.Name {
			return a.Name < b.Name
		}
		return a.Namespace+a.APIVersion < b.Namespace+b.APIVersion
	})
	if len(out) == 0 {
		out = nil
	}
	p.instance.Status.Resources = out
	p.wide.set(types.NamespacedName{Namespace: p.instance.Namespace, Name: p.instance.Name}, inventory)
}
