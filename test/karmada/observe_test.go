package karmada

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/karmada"
	"kudo.dev/kudo/pkg/clusters/karmada/remote"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/env"
)

// await reads events until one is of an Instance.
func (h *hub) await(t *testing.T, instance *v1beta1.Instance) {
	t.Helper()
	key := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	limit := time.After(env.DefaultTimeout)
	for {
		select {
		case got := <-h.engine.Events():
			if got == key {
				return
			}
		case <-limit:
			t.Fatalf("after %s there is no event of Instance %s", env.DefaultTimeout, key)
		}
	}
}

// drain reads events until none has come for a moment, and returns those of some Instances. The cluster may still be deleting the Instances
// of other tests.
func (h *hub) drain(of ...*v1beta1.Instance) (keys []types.NamespacedName) {
	for {
		select {
		case key := <-h.engine.Events():
			if slices.ContainsFunc(of, func(i *v1beta1.Instance) bool { return client.ObjectKeyFromObject(i) == key }) {
				keys = append(keys, key)
			}
		case <-time.After(300 * time.Millisecond):
			return keys
		}
	}
}

// ready writes the condition Ready of a Cluster, which is created if it is absent.
func (h *hub) ready(t *testing.T, name, status, reason string) {
	t.Helper()
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(remote.ClusterKind)
	cluster.SetName(name)
	if err := h.Create(t.Context(), cluster); err != nil {
		env.Must(t, h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	}
	cluster.Object["status"] = map[string]any{"apiEnablements": []any{map[string]any{"groupVersion": "v1"}}, "conditions": []any{
		map[string]any{"type": "Ready", "status": status, "reason": reason, "message": "by the test", "lastTransitionTime": "2026-11-29T10:00:00Z"}}}
	env.Must(t, h.Status().Update(t.Context(), cluster))
}

// renew renews the Lease of Karmada's controller manager, which is created if it is absent.
func (h *hub) renew(t *testing.T) {
	t.Helper()
	lease := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"renewTime": h.clock.Now().UTC().Format(metav1.RFC3339Micro)}}}
	lease.SetGroupVersionKind(karmada.LeaseKind)
	lease.SetNamespace(karmada.DefaultLease.Namespace)
	lease.SetName(karmada.DefaultLease.Name)
	env.Must(t, h.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(lease), client.FieldOwner("karmada"), client.ForceOwnership))
}

// schedule writes what Karmada's scheduler writes for an Instance on m1 and m2, as the policy is now.
func (h *hub) schedule(t *testing.T, instance *v1beta1.Instance) *unstructured.Unstructured {
	t.Helper()
	policy := h.get(t, karmada.PolicyKind, instance.Namespace, "kudo-book")
	binding := &unstructured.Unstructured{}
	binding.SetGroupVersionKind(karmada.BindingKind)
	binding.SetNamespace(instance.Namespace)
	binding.SetName("book-instance")
	exists := h.Get(t.Context(), client.ObjectKeyFromObject(binding), binding) == nil
	binding.Object["spec"] = map[string]any{
		"resource": map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "namespace": instance.Namespace, "name": "book", "uid": string(instance.UID)},
		"replicas": int64(6), "placement": policy.Object["spec"].(map[string]any)["placement"],
		"clusters": []any{map[string]any{"name": "m1", "replicas": int64(4)}, map[string]any{"name": "m2", "replicas": int64(2)}},
	}
	if exists {
		env.Must(t, h.strict.Update(t.Context(), binding))
	} else {
		env.Must(t, h.strict.Create(t.Context(), binding))
	}
	binding.Object["status"] = map[string]any{"schedulerObservedGeneration": binding.GetGeneration(), "aggregatedStatus": []any{
		map[string]any{"clusterName": "m1", "applied": true, "health": "Healthy", "status": map[string]any{"generation": int64(1), "ready": "True"}}}}
	env.Must(t, h.Status().Update(t.Context(), binding))
	return binding
}

// observe waits until an observation of the Instance is as it shall be.
func (h *hub) observe(t *testing.T, instance *v1beta1.Instance, what string, holds func(clusters.Observation) bool) {
	t.Helper()
	apitest.Eventually(t, what, func() bool {
		observation, err := h.engine.Observe(t.Context(), instance)
		env.Must(t, err)
		return holds(observation)
	})
}

// checkObserve checks what the engine reads of the API server, and that it never calls an older policy settled.
func (h *hub) checkObserve(t *testing.T) {
	h.ready(t, "m1", "True", "ClusterReady")
	instance := h.instance(t, "book")
	env.Must(t, h.engine.Place(t.Context(), placed(instance)))
	h.schedule(t, instance)
	h.observe(t, instance, "all is scheduled", func(o clusters.Observation) bool {
		m, known := o.Members["m1"]
		_, knowsOther := o.Members["m2"]
		return o.Settled && len(o.Bound) == 2 && *o.Bound["m1"] == 4 && known && !knowsOther && m.Applied && m.Unreachable == "" && m.Report != nil && m.Report.Ready == metav1.ConditionTrue
	})
	for range 20 {
		instance.Spec.Placement.Clusters[0].Weight++
		env.Must(t, h.engine.Place(t.Context(), placed(instance)))
		if o, err := h.engine.Observe(t.Context(), instance); err != nil || o.Settled {
			t.Fatalf("right after the write of another weight, it is settled: %v", err)
		}
		h.schedule(t, instance)
		h.observe(t, instance, "the new weight is scheduled", func(o clusters.Observation) bool { return o.Settled })
		// A release must not unsettle the Instance: the hub would take it back.
		env.Must(t, h.engine.Place(t.Context(), placed(instance, "m1")))
		if o, err := h.engine.Observe(t.Context(), instance); err != nil || !o.Settled {
			t.Fatalf("right after a release, it is not settled: %v", err)
		}
	}
	left, err := h.engine.Remove(t.Context(), instance)
	if err != nil || len(left) != 2 || left[0] != "m1" || left[1] != "m2" {
		t.Errorf("the copies that are left are %v, %v", left, err)
	}
}

// checkEvents checks C30: which changes of the hub are an event, and of which Instances.
func (h *hub) checkEvents(t *testing.T) {
	h.ready(t, "m2", "True", "ClusterReady")
	instance := h.instance(t, "book")
	alone := h.instance(t, "book")
	alone.Spec.Placement.Clusters = alone.Spec.Placement.Clusters[:1]
	for _, i := range []*v1beta1.Instance{instance, alone} {
		env.Must(t, h.engine.Place(t.Context(), placed(i)))
		h.await(t, i)
	}
	silent := func(want bool) func(clusters.Observation) bool {
		return func(o clusters.Observation) bool { return want == (o.Silent != "") }
	}
	h.observe(t, instance, "without a Lease, Karmada is silent", silent(true))
	space := &unstructured.Unstructured{}
	space.SetAPIVersion("v1")
	space.SetKind("Namespace")
	space.SetName(karmada.DefaultLease.Namespace)
	env.Must(t, h.Create(t.Context(), space))
	h.drain()
	h.renew(t)
	h.await(t, alone)
	h.observe(t, instance, "with a Lease, it is not", silent(false))

	h.drain()
	h.clock.Step(10 * time.Second)
	h.renew(t)
	if keys := h.drain(instance, alone); len(keys) > 0 {
		t.Errorf("a renewal of the Lease is an event of %v", keys)
	}
	h.clock.Step(61 * time.Second)
	h.observe(t, instance, "an old Lease is silence", silent(true))
	apitest.Eventually(t, "the silence is an event", func() bool {
		h.clock.Step(time.Second) // the engine may set its timer after the step before
		return len(h.drain(instance)) > 0
	})
	h.drain()
	h.clock.Step(10 * time.Second)
	if keys := h.drain(instance, alone); len(keys) > 0 {
		t.Errorf("a Lease that is still old is an event of %v", keys)
	}
	h.renew(t)
	h.await(t, instance)
	h.observe(t, instance, "a renewed Lease is none", silent(false))

	h.drain()
	h.ready(t, "m2", "True", "StillReady")
	if keys := h.drain(instance, alone); len(keys) > 0 {
		t.Errorf("a Cluster that stays ready is an event of %v", keys)
	}
	h.ready(t, "m2", "Unknown", "ClusterStatusUnknown")
	h.await(t, instance)
	for _, key := range h.drain(instance, alone) {
		if key.Namespace == alone.Namespace {
			t.Errorf("the loss of a Cluster is an event of %v, which is not placed there", key)
		}
	}
	h.observe(t, instance, "the loss is seen", func(o clusters.Observation) bool { return o.Members["m2"].Unreachable != "" })
	h.schedule(t, instance)
	h.await(t, instance)
	h.drain()
	policy := h.get(t, karmada.PolicyKind, instance.Namespace, "kudo-book")
	env.Must(t, h.Delete(t.Context(), policy))
	h.await(t, instance)
	h.observe(t, instance, "without a policy, nothing is settled", func(o clusters.Observation) bool { return !o.Settled })
}
