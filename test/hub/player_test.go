package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters/karmada"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/test/env"
)

var kinds = map[string]schema.GroupVersionKind{
	"PropagationPolicy": karmada.PolicyKind, "OverridePolicy": karmada.OverrideKind, "ResourceBinding": karmada.BindingKind,
	"Cluster": remote.ClusterKind, "Work": remote.WorkKind, "Lease": karmada.LeaseKind, "Instance": v1beta1.GroupVersion.WithKind("Instance"),
}

// player does what the controllers of Karmada do with placed Instances, as its documents say: it binds them to clusters, divides them, applies
// overrides, writes the copies, and collects what the clusters report.
type player struct {
	planes *planes
	rules  *library.Layer
	// pace is the time between two rounds.
	pace time.Duration

	mu sync.Mutex
	// apart are the clusters that it cannot reach. stopped is set while it does nothing, and old while it uses the overrides of the round
	// before.
	apart        map[string]bool
	stopped, old bool
	// overrides are those of the round before, and reports the last of each copy.
	overrides map[string][]any
	reports   map[string]map[string]any
	// works are the copies that have a Work.
	works    map[string]bool
	problems []string
}

// startPlayer starts a player, which ends with the test.
func startPlayer(t *testing.T, p *planes) *player {
	t.Helper()
	host := lua.New(time.Now, lua.DefaultLimits())
	rules, err := library.NewForHub(host)
	env.Must(t, err)
	pl := &player{planes: p, rules: rules, pace: 100 * time.Millisecond, apart: map[string]bool{}, overrides: map[string][]any{},
		reports: map[string]map[string]any{}, works: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			pl.round(ctx)
			pause(ctx, pl.pace)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if t.Failed() {
			t.Logf("the player said:\n%s", env.Tail(strings.Join(pl.problems, "\n"), 20))
		}
	})
	return pl
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// cut implements faulter.
func (pl *player) cut(member string) {
	pl.set(func() { pl.apart[member] = !pl.apart[member] })
}

// disturb implements faulter: the controllers stop, or use old overrides.
func (pl *player) disturb() {
	pl.set(func() {
		if pl.stopped = !pl.stopped; pl.stopped {
			pl.old = !pl.old
		}
	})
}

// repair implements faulter.
func (pl *player) repair() {
	pl.set(func() { pl.apart, pl.stopped, pl.old = map[string]bool{}, false, false })
}

// set changes what the player can do.
func (pl *player) set(change func()) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	change()
}

// round does everything once.
func (pl *player) round(ctx context.Context) {
	pl.mu.Lock()
	defer pl.mu.Unlock()
	if pl.stopped {
		return
	}
	pl.note(pl.renew(ctx))
	for name := range pl.planes.members {
		pl.note(pl.showCluster(ctx, name))
	}
	policies := list(ctx, pl.planes.hub, "PropagationPolicy")
	for n := range policies {
		pl.note(pl.follow(ctx, &policies[n]))
	}
	pl.note(pl.removeOrphans(ctx))
}

// note keeps an error for the log of a test that fails.
func (pl *player) note(err error) {
	if err != nil {
		pl.problems = append(pl.problems, err.Error())
	}
}

func list(ctx context.Context, c client.Reader, kind string) []unstructured.Unstructured {
	out := &unstructured.UnstructuredList{}
	out.SetGroupVersionKind(kinds[kind])
	out.SetKind(kind + "List")
	_ = c.List(ctx, out)
	return out.Items
}

// renew renews the Lease of the controllers.
func (pl *player) renew(ctx context.Context) error {
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetName("karmada-system")
	if err := pl.planes.hub.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	lease := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"holderIdentity": "player",
		"renewTime": time.Now().UTC().Format(metav1.RFC3339Micro)}}}
	lease.SetGroupVersionKind(kinds["Lease"])
	lease.SetNamespace("karmada-system")
	lease.SetName("karmada-controller-manager")
	return pl.put(ctx, pl.planes.hub, lease)
}

// put creates or replaces an object.
func (pl *player) put(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
	live := obj.NewEmptyInstance().(*unstructured.Unstructured)
	live.SetGroupVersionKind(obj.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, obj)
	}
	if err != nil {
		return err
	}
	obj.SetResourceVersion(live.GetResourceVersion())
	obj.SetUID(live.GetUID())
	return c.Update(ctx, obj)
}

// showCluster shows whether a cluster is reachable.
func (pl *player) showCluster(ctx context.Context, name string) error {
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(kinds["Cluster"])
	cluster.SetName(name)
	err := pl.planes.hub.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	if apierrors.IsNotFound(err) {
		err = pl.planes.hub.Create(ctx, cluster)
	}
	if err != nil {
		return err
	}
	status, reason := "True", "ClusterReady"
	if pl.apart[name] {
		status, reason = "Unknown", "ClusterStatusUnknown"
	}
	conditions := []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": "played"}}
	if old, _, _ := unstructured.NestedSlice(cluster.Object, "status", "conditions"); equality.Semantic.DeepEqual(old, conditions) {
		return nil
	}
	_ = unstructured.SetNestedSlice(cluster.Object, conditions, "status", "conditions")
	return pl.planes.hub.Status().Update(ctx, cluster)
}

// ask asks the rules of Instances.
func (pl *player) ask(ctx context.Context, r explore.Request) (explore.Answer, error) {
	answer, known, err := pl.rules.Explore(ctx, r)
	if err == nil && !known {
		err = fmt.Errorf("no rule for %s", r.Operation)
	}
	return answer, err
}

// follow does what a PropagationPolicy says for its Instance.
func (pl *player) follow(ctx context.Context, policy *unstructured.Unstructured) error {
	selectors, _, _ := unstructured.NestedSlice(policy.Object, "spec", "resourceSelectors")
	name, _, _ := unstructured.NestedString(selectors[0].(map[string]any), "name")
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(kinds["Instance"])
	err := pl.planes.hub.Get(ctx, client.ObjectKey{Namespace: policy.GetNamespace(), Name: name}, template)
	if err != nil || template.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	binding, err := pl.bind(ctx, policy, template)
	if err != nil {
		return err
	}
	overrides := pl.overridesOf(ctx, policy)
	bound, _, _ := unstructured.NestedSlice(binding.Object, "spec", "clusters")
	var items []any
	for _, target := range bound {
		cluster := target.(map[string]any)["name"].(string)
		items = append(items, pl.distribute(ctx, template, target.(map[string]any), cluster, overrides))
	}
	if old, _, _ := unstructured.NestedSlice(binding.Object, "status", "aggregatedStatus"); equality.Semantic.DeepEqual(old, items) {
		return nil
	}
	_ = unstructured.SetNestedSlice(binding.Object, items, "status", "aggregatedStatus")
	return pl.planes.hub.Status().Update(ctx, binding)
}

// overridesOf returns the rules of the OverridePolicy of the same name, or those of the round before.
func (pl *player) overridesOf(ctx context.Context, policy *unstructured.Unstructured) []any {
	key := policy.GetNamespace() + "/" + policy.GetName()
	before := pl.overrides[key]
	override := &unstructured.Unstructured{}
	override.SetGroupVersionKind(kinds["OverridePolicy"])
	if pl.planes.hub.Get(ctx, client.ObjectKeyFromObject(policy), override) != nil {
		return before
	}
	rules, _, _ := unstructured.NestedSlice(override.Object, "spec", "overrideRules")
	pl.overrides[key] = rules
	if pl.old {
		return before
	}
	return rules
}

// bind writes the ResourceBinding, with shares by static weights, and schedules it.
func (pl *player) bind(ctx context.Context, policy, template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	replicas, err := pl.ask(ctx, explore.Request{Operation: explore.Replica, Object: template})
	if err != nil {
		return nil, err
	}
	placement, _, _ := unstructured.NestedMap(policy.Object, "spec", "placement")
	names, _, _ := unstructured.NestedStringSlice(placement, "clusterAffinity", "clusterNames")
	spec := map[string]any{"placement": placement, "propagateDeps": true, "conflictResolution": "Abort", "clusters": divide(placement, names,
		int64(replicas.Replicas)), "resource": map[string]any{"apiVersion": template.GetAPIVersion(), "kind": "Instance",
		"namespace": template.GetNamespace(), "name": template.GetName(), "uid": string(template.GetUID())}}
	if replicas.Replicas > 0 {
		spec["replicas"] = int64(replicas.Replicas)
	}
	binding := &unstructured.Unstructured{}
	binding.SetGroupVersionKind(kinds["ResourceBinding"])
	binding.SetNamespace(template.GetNamespace())
	binding.SetName(template.GetName() + "-instance")
	err = pl.planes.hub.Get(ctx, client.ObjectKeyFromObject(binding), binding)
	switch {
	case apierrors.IsNotFound(err):
		binding.Object["spec"] = spec
		binding.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: template.GetAPIVersion(), Kind: "Instance", Name: template.GetName(),
			UID: template.GetUID()}})
		err = pl.planes.hub.Create(ctx, binding)
	case err == nil && !equality.Semantic.DeepEqual(binding.Object["spec"], spec):
		binding.Object["spec"] = spec
		err = pl.planes.hub.Update(ctx, binding)
	}
	if err != nil {
		return nil, err
	}
	if seen, _, _ := unstructured.NestedInt64(binding.Object, "status", "schedulerObservedGeneration"); seen == binding.GetGeneration() {
		return binding, nil
	}
	_ = unstructured.SetNestedField(binding.Object, binding.GetGeneration(), "status", "schedulerObservedGeneration")
	_ = unstructured.SetNestedSlice(binding.Object, []any{map[string]any{"type": "Scheduled", "status": "True", "reason": "Success", "message": "",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}, "status", "conditions")
	return binding, pl.planes.hub.Status().Update(ctx, binding)
}

// divide returns the clusters of a binding, with shares by their weights.
func divide(placement map[string]any, names []string, replicas int64) []any {
	weights, _, _ := unstructured.NestedSlice(placement, "replicaScheduling", "weightPreference", "staticWeightList")
	var total int64
	of := map[string]int64{}
	for _, entry := range weights {
		clusters, _, _ := unstructured.NestedStringSlice(entry.(map[string]any), "targetCluster", "clusterNames")
		weight, _, _ := unstructured.NestedInt64(entry.(map[string]any), "weight")
		of[clusters[0]] = weight
		total += weight
	}
	var out []any
	left := replicas
	for n, name := range names {
		target := map[string]any{"name": name}
		if replicas > 0 && total > 0 {
			share := replicas * of[name] / total
			if n == len(names)-1 {
				share = left
			}
			left -= share
			target["replicas"] = share
		}
		out = append(out, target)
	}
	return out
}

// distribute writes the copy of one cluster, and returns the item of the aggregated status.
func (pl *player) distribute(ctx context.Context, template *unstructured.Unstructured, target map[string]any, cluster string,
	overrides []any) map[string]any {
	key := cluster + "/" + template.GetNamespace() + "/" + template.GetName()
	item := func(more map[string]any) map[string]any {
		more["clusterName"] = cluster
		return more
	}
	last, reported := pl.reports[key]
	pl.note(pl.writeWork(ctx, template, cluster, key))
	if pl.apart[cluster] && reported {
		return last // after a loss, Karmada says what it said last
	}
	if pl.apart[cluster] {
		return item(map[string]any{})
	}
	member, joined := pl.planes.members[cluster]
	if !joined {
		return item(map[string]any{})
	}
	live, err := pl.write(ctx, member, template, target, cluster, overrides)
	if err != nil {
		pl.note(err)
		return item(map[string]any{"appliedMessage": err.Error(), "health": "Unknown"})
	}
	out := item(map[string]any{"applied": true, "health": "Unknown"})
	if status, err := pl.ask(ctx, explore.Request{Operation: explore.Status, Object: live}); err == nil && status.Status != nil {
		out["status"] = status.Status
	} else {
		pl.note(err)
	}
	pl.reports[key] = out
	return out
}

// workOf returns the name of the Work that carries an Instance to a cluster.
func workOf(cluster string, instance client.Object) *unstructured.Unstructured {
	work := &unstructured.Unstructured{}
	work.SetGroupVersionKind(kinds["Work"])
	work.SetNamespace(remote.WorkNamespace(cluster))
	work.SetName(instance.GetNamespace() + "-" + instance.GetName())
	return work
}

// writeWork writes the Work of a copy, once.
func (pl *player) writeWork(ctx context.Context, template *unstructured.Unstructured, cluster, key string) error {
	if pl.works[key] {
		return nil
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	ns.SetName(remote.WorkNamespace(cluster))
	if err := pl.planes.hub.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	work := workOf(cluster, template)
	manifest := map[string]any{"apiVersion": template.GetAPIVersion(), "kind": "Instance",
		"metadata": map[string]any{"namespace": template.GetNamespace(), "name": template.GetName()}}
	_ = unstructured.SetNestedSlice(work.Object, []any{manifest}, "spec", "workload", "manifests")
	err := pl.planes.hub.Create(ctx, work)
	pl.works[key] = err == nil
	return err
}

// write writes the dependencies and the copy of one cluster, and returns the copy as it is there.
func (pl *player) write(ctx context.Context, member plane, template *unstructured.Unstructured, target map[string]any, cluster string,
	overrides []any) (*unstructured.Unstructured, error) {
	dependencies, err := pl.ask(ctx, explore.Request{Operation: explore.Dependencies, Object: template})
	if err != nil {
		return nil, err
	}
	for _, d := range dependencies.Dependencies {
		if err := pl.copyDependency(ctx, member, d.APIVersion, d.Kind, d.Namespace, d.Name); err != nil {
			return nil, err
		}
	}
	desired, err := pl.render(ctx, template, target, cluster, overrides)
	if err != nil {
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(kinds["Instance"])
	err = member.Get(ctx, client.ObjectKeyFromObject(template), live)
	if apierrors.IsNotFound(err) {
		return desired, member.Create(ctx, desired)
	}
	if err != nil {
		return nil, err
	}
	if live.GetLabels()["karmada.io/managed"] != "true" {
		return nil, fmt.Errorf("Instance %s exists in %s and is not managed by Karmada", template.GetName(), cluster)
	}
	retained, err := pl.ask(ctx, explore.Request{Operation: explore.Retaining, Object: desired, Observed: live})
	if err != nil {
		return nil, err
	}
	return pl.update(ctx, member, live, retained.Object)
}

// update replaces a copy, unless it is as it should be. Annotations of others stay.
func (pl *player) update(ctx context.Context, member plane, live, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	annotations := live.GetAnnotations()
	delete(annotations, v1beta1.ReleasedAnnotation) // managed: what an override gave goes with it
	for key, value := range desired.GetAnnotations() {
		annotations[key] = value
	}
	if equality.Semantic.DeepEqual(live.Object["spec"], desired.Object["spec"]) && equality.Semantic.DeepEqual(live.GetAnnotations(), annotations) {
		return live, nil
	}
	next := live.DeepCopy()
	next.SetAnnotations(annotations)
	next.Object["spec"] = desired.Object["spec"]
	return next, member.Update(ctx, next)
}

// render returns the copy of one cluster as Karmada makes it: revised, then with overrides.
func (pl *player) render(ctx context.Context, template *unstructured.Unstructured, target map[string]any, cluster string,
	overrides []any) (*unstructured.Unstructured, error) {
	desired := &unstructured.Unstructured{Object: map[string]any{"spec": template.DeepCopy().Object["spec"]}}
	desired.SetGroupVersionKind(kinds["Instance"])
	desired.SetNamespace(template.GetNamespace())
	desired.SetName(template.GetName())
	desired.SetLabels(map[string]string{"karmada.io/managed": "true"})
	annotations := map[string]string{v1beta1.KarmadaUIDAnnotation: string(template.GetUID()),
		v1beta1.KarmadaGenerationAnnotation: fmt.Sprint(template.GetGeneration())}
	desired.SetAnnotations(annotations)
	if share, divided := target["replicas"].(int64); divided {
		revised, err := pl.ask(ctx, explore.Request{Operation: explore.ReplicaRevising, Object: desired, Replicas: int32(share)})
		if err != nil {
			return nil, err
		}
		desired = revised.Object
	}
	text, err := json.Marshal(desired.Object)
	if err != nil {
		return nil, err
	}
	for _, rule := range overrides {
		names, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), "targetCluster", "clusterNames")
		if !slices.Contains(names, cluster) {
			continue
		}
		patches, _, _ := unstructured.NestedSlice(rule.(map[string]any), "overriders", "plaintext")
		if text, err = override(text, patches); err != nil {
			return nil, err
		}
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(text)
}

// override applies plaintext overriders, which are JSON patches with `operator` for `op`.
func override(text []byte, patches []any) ([]byte, error) {
	var operations []map[string]any
	for _, p := range patches {
		from := p.(map[string]any)
		operations = append(operations, map[string]any{"op": from["operator"], "path": from["path"], "value": from["value"]})
	}
	raw, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	return patch.Apply(text)
}

// copyDependency writes a dependency into a cluster. One that the hub has not is followed when it appears.
func (pl *player) copyDependency(ctx context.Context, member plane, apiVersion, kind, namespace, name string) error {
	from := &unstructured.Unstructured{}
	from.SetAPIVersion(apiVersion)
	from.SetKind(kind)
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := pl.planes.hub.Get(ctx, key, from); err != nil {
		return client.IgnoreNotFound(err)
	}
	to := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range from.Object {
		if field != "metadata" && field != "status" {
			to.Object[field] = value
		}
	}
	to.SetNamespace(namespace)
	to.SetName(name)
	live := to.NewEmptyInstance().(*unstructured.Unstructured)
	live.SetGroupVersionKind(to.GroupVersionKind())
	if member.Get(ctx, key, live) == nil && equality.Semantic.DeepEqual(live.Object["spec"], to.Object["spec"]) &&
		equality.Semantic.DeepEqual(live.Object["data"], to.Object["data"]) {
		return nil
	}
	return pl.put(ctx, member, to)
}

// removeOrphans deletes copies whose cluster no binding names.
func (pl *player) removeOrphans(ctx context.Context) error {
	wanted := map[string]bool{}
	for _, binding := range list(ctx, pl.planes.hub, "ResourceBinding") {
		name, _, _ := unstructured.NestedString(binding.Object, "spec", "resource", "name")
		bound, _, _ := unstructured.NestedSlice(binding.Object, "spec", "clusters")
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(kinds["Instance"])
		err := pl.planes.hub.Get(ctx, client.ObjectKey{Namespace: binding.GetNamespace(), Name: name}, template)
		if apierrors.IsNotFound(err) {
			continue
		}
		for _, target := range bound {
			wanted[target.(map[string]any)["name"].(string)+"/"+binding.GetNamespace()+"/"+name] = true
		}
	}
	for cluster, member := range pl.planes.members {
		if pl.apart[cluster] {
			continue
		}
		for _, copied := range list(ctx, member, "Instance") {
			key := cluster + "/" + copied.GetNamespace() + "/" + copied.GetName()
			if copied.GetLabels()["karmada.io/managed"] == "true" && copied.GetDeletionTimestamp() == nil && !wanted[key] {
				delete(pl.reports, key)
				if err := member.Delete(ctx, &copied); client.IgnoreNotFound(err) != nil {
					return err
				}
				delete(pl.works, key)
				if err := pl.planes.hub.Delete(ctx, workOf(cluster, &copied)); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
	}
	return nil
}
