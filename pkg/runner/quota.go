package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/explore/pods"
	"kudo.dev/kudo/pkg/quota"
	"kudo.dev/kudo/plans/task"
)

// The bounds of the comparison of a run with quotas. Objects and quotas beyond a bound are not counted, so that the warning may name too
// little.
const (
	maxQuotas       = 32
	maxQuotaObjects = 256
	quotaTimeout    = 10 * time.Second
)

// lookup reads an object as it is in the cluster; nil if there is none.
type lookup func(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error)

// warnOfQuotas records an event if the objects that a run is about to apply exceed the quotas of its namespace. It checks once a run,
// before the first task. If the result is not known, it records nothing. The run continues in each case: the API server refuses what
// exceeds a quota.
func (r *Runner) warnOfQuotas(ctx context.Context, run *Run, inventory Inventory, st v1beta1.PlanStatus, hooks ProgressRecorder) {
	if run.Installation != nil || run.quotasJudged || hasStarted(st) {
		return
	}
	run.quotasJudged = true
	ctx, cancel := context.WithTimeout(ctx, quotaTimeout)
	defer cancel()
	if r.quotas == nil {
		return
	}
	quotas, err := run.quotas(ctx, func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
		return r.quotas(ctx, run.Account, namespace)
	})
	if err != nil || len(quotas) == 0 {
		return
	}
	w, err := r.writer(run, inventory)
	if err != nil {
		return
	}
	exceeded, err := r.exceededQuotas(ctx, run, inventory, quotas, w.lookup)
	if err != nil || len(exceeded) == 0 {
		return
	}
	message := fmt.Sprintf("Plan %s was started, and needs more than is left in namespace %s: %s. Kubernetes refuses what exceeds a quota: "+
		"raise the quota, or lower the replicas or requests", run.Plan, run.Subject.Namespace, quota.Describe(exceeded))
	hooks.RecordEffects(Effects{Events: [][2]string{{v1beta1.EventQuotaWouldExceed, run.mask(message)}}})
}

// hasStarted reports whether a task of a run was tried.
func hasStarted(st v1beta1.PlanStatus) bool {
	return slices.ContainsFunc(st.Phases, func(phase v1beta1.PhaseStatus) bool {
		return slices.ContainsFunc(phase.Steps, func(step v1beta1.StepStatus) bool { return step.StartedTimestamp != nil })
	})
}

// quotas reads the ResourceQuotas of the run's namespace, by one LIST at most, and returns those that can be compared. A run that applies
// nothing reads none.
func (run *Run) quotas(ctx context.Context, read quotaReader) ([]corev1.ResourceQuota, error) {
	if err := run.resolve(); err != nil {
		return nil, err
	}
	if len(run.applyTasks()) == 0 {
		return nil, nil
	}
	quotas, err := read(ctx, run.Subject.Namespace)
	if err != nil {
		return nil, fmt.Errorf("read the ResourceQuotas of namespace %s: %w", run.Subject.Namespace, err)
	}
	return slices.DeleteFunc(quotas, func(q corev1.ResourceQuota) bool { return !quota.Judged(&q) }), nil
}

// quotaReader reads the ResourceQuotas of a namespace, at most maxQuotas.
type quotaReader func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error)

// QuotaReader reads the ResourceQuotas of a namespace, at most 32, with the rights of an account.
type QuotaReader func(ctx context.Context, account apply.Account, namespace string) ([]corev1.ResourceQuota, error)

// NewQuotaReader returns a reader with the rights of the accounts, and no others: the numbers of quotas tell what else is in a namespace.
// A namespace that has none by mayHave costs no request; an error of mayHave is returned. If mayHave is nil, each namespace is asked.
func NewQuotaReader(accounts Accounts, mayHave func(ctx context.Context, namespace string) (bool, error)) QuotaReader {
	return func(ctx context.Context, account apply.Account, namespace string) ([]corev1.ResourceQuota, error) {
		if mayHave != nil {
			if has, err := mayHave(ctx, namespace); err != nil || !has {
				return nil, err
			}
		}
		engine, err := accounts.Engine(account)
		if err != nil {
			return nil, err
		}
		list, err := engine.ListContent(ctx, corev1.SchemeGroupVersion.WithResource("resourcequotas"), namespace,
			metav1.ListOptions{Limit: maxQuotas})
		if err != nil {
			return nil, err
		}
		quotas := make([]corev1.ResourceQuota, len(list.Items))
		for i := range list.Items {
			if err := apiruntime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &quotas[i]); err != nil {
				return nil, err
			}
		}
		return quotas, nil
	}
}

// exceededQuotas returns what quotas have too little of for what the run applies.
func (r *Runner) exceededQuotas(ctx context.Context, run *Run, inventory Inventory, quotas []corev1.ResourceQuota,
	live lookup) ([]quota.Excess, error) {
	changes, err := r.usageChanges(ctx, run, inventory, live)
	if err != nil {
		return nil, err
	}
	return quota.Exceeded(quotas, changes), ctx.Err()
}

// AppliedObjects names what Apply and Toggle tasks of a run apply into the namespace of its subject, each object once. It leaves out
// objects after the first 256, and those after a template that cannot be rendered, at which the run fails.
func (r *Runner) AppliedObjects(run *Run) []apply.ID {
	if run.resolve() != nil {
		return nil
	}
	objs, _ := run.applied()
	var ids []apply.ID
	for _, obj := range objs[:min(len(objs), maxQuotaObjects)] {
		if _, namespaced, err := r.kinds.Resource(obj.GroupVersionKind()); err != nil || namespaced {
			id := apply.IDOf(obj)
			id.Namespace = run.Subject.Namespace
			ids = append(ids, id)
		}
	}
	return ids
}

// Usages returns what objects use now, by what they declare. It has those that are in the inventory and exist, and nil where the usage is
// not known.
func (r *Runner) Usages(ctx context.Context, run *Run, inventory Inventory, ids []apply.ID) (map[apply.ID]*quota.Usage, error) {
	w, err := r.writer(run, inventory)
	if err != nil {
		return nil, err
	}
	out, made := map[apply.ID]*quota.Usage{}, uidsOf(inventory)
	for _, id := range ids {
		switch used, found, err := r.used(ctx, id, made, w.lookup); {
		case err != nil:
			out[id] = nil
		case found:
			out[id] = &used
		}
	}
	return out, ctx.Err()
}

func (r *Runner) usageChanges(ctx context.Context, run *Run, inventory Inventory, live lookup) ([]quota.Change, error) {
	objs, err := run.applied()
	if err != nil {
		return nil, err
	}
	made := uidsOf(inventory)
	var changes []quota.Change
	for _, obj := range objs[:min(len(objs), maxQuotaObjects)] {
		if change, known := r.usages(ctx, run, obj, made, live); known {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// uidsOf returns the uids of an inventory by its objects without versions: an upgrade may write the same object in another one.
func uidsOf(inventory Inventory) map[apply.ID]types.UID {
	out := map[apply.ID]types.UID{}
	for id, record := range inventory {
		id.Version = ""
		out[id] = record.UID
	}
	return out
}

// usages returns what a rendered object uses before and after the run, and whether both are known.
func (r *Runner) usages(ctx context.Context, run *Run, obj *unstructured.Unstructured, made map[apply.ID]types.UID,
	live lookup) (change quota.Change, known bool) {
	resource, namespaced, err := r.kinds.Resource(obj.GroupVersionKind())
	if err == nil && !namespaced {
		return change, false
	}
	objs := []*unstructured.Unstructured{obj}
	if err := r.pack(ctx, run, objs); err != nil {
		return change, false
	}
	if change.After, err = r.usage(ctx, resource, objs[0]); err != nil {
		return change, false
	}
	id := apply.IDOf(objs[0])
	id.Namespace = run.Subject.Namespace
	change.Before, _, err = r.used(ctx, id, made, live)
	return change, err == nil
}

// used returns what an object in the cluster uses now. The object counts only if it exists, and if the subject of the run has made it;
// otherwise the result is false.
func (r *Runner) used(ctx context.Context, id apply.ID, made map[apply.ID]types.UID, live lookup) (quota.Usage, bool, error) {
	bare := id
	bare.Version = ""
	uid := made[bare]
	if uid == "" {
		return quota.Usage{}, false, nil
	}
	there, err := live(ctx, id)
	if err != nil || there == nil || there.GetUID() != uid {
		return quota.Usage{}, false, err
	}
	resource, _, _ := r.kinds.Resource(id.GroupVersionKind) // an object of a kind that is not served is not counted itself
	used, err := r.usage(ctx, resource, there)
	return used, true, err
}

// usage returns what an object uses, by what it declares. An object that declares nothing counts as one object. Limits, claims and the
// fields that scopes select by are read from the pod templates of built-in kinds.
func (r *Runner) usage(ctx context.Context, resource schema.GroupResource, obj *unstructured.Unstructured) (quota.Usage, error) {
	declared, _, err := explore.Declare(ctx, r.all.Explore, obj)
	if err != nil {
		return quota.Usage{}, err
	}
	object := quota.Object{Resource: resource, Pods: declared.Replicas, Requests: declared.Requests}
	if object.Template, err = native.PodSpec(obj); err != nil {
		return quota.Usage{}, err
	}
	if object.Template != nil {
		object.Limits = pods.Limits(object.Template)
	}
	object.Claims, err = native.Claims(obj, object.Template)
	return quota.Of(object), err
}

// applied renders what the run's plan applies into its namespace, each object once and as it is applied last. It returns an error along
// with the objects before a template that cannot be rendered.
func (run *Run) applied() ([]*unstructured.Unstructured, error) {
	budget := run.budget
	run.budget = &render.Budget{} // what is rendered here takes nothing from the run
	defer func() { run.budget = budget }()
	var out []*unstructured.Unstructured
	at := map[apply.ID]int{}
	for _, t := range run.applyTasks() {
		made, err := run.render(t.resources, run.variables(t.phase, t.step))
		if err != nil {
			return out, fmt.Errorf("task %s of plan %s: %w", t.name, run.Plan, err)
		}
		for _, obj := range made.objects {
			if ns := obj.GetNamespace(); ns != "" && ns != run.Subject.Namespace {
				continue
			}
			obj.SetNamespace("")
			if i, again := at[apply.IDOf(obj)]; again {
				out[i] = obj
				continue
			}
			at[apply.IDOf(obj)] = len(out)
			out = append(out, obj)
		}
	}
	return out, nil
}

// applyTask is a task that applies templates, at a place of the plan.
type applyTask struct {
	phase, step, name string
	resources         []string
}

// applyTasks returns the tasks of the run's plan that apply templates, in the order of the plan. The parameters are resolved.
func (run *Run) applyTasks() []applyTask {
	var out []applyTask
	for _, phase := range run.Version.Spec.Plans[run.Plan].Phases {
		for _, step := range phase.Steps {
			for _, name := range step.Tasks {
				if resources := run.appliedResources(name); len(resources) > 0 {
					out = append(out, applyTask{phase.Name, step.Name, name, resources})
				}
			}
		}
	}
	return out
}

// appliedResources names the templates that a task applies; none if the task is of another kind, or can never be done.
func (run *Run) appliedResources(name string) []string {
	def, ok := run.Version.Task(name)
	if !ok {
		return nil
	}
	switch t, _ := task.New(def); t := t.(type) {
	case task.Apply:
		return t.Resources
	case task.Toggle:
		if on, err := run.boolParameter(t.Parameter); err == nil && on {
			return t.Resources
		}
	}
	return nil
}
