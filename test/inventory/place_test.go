package inventory

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// TestPlacing checks the engine on real API servers, one thing after the other (C44 to C49).
func TestPlacing(t *testing.T) {
	p := start(t, "m1", "m2")
	i := p.instance(t, "book", v1beta1.PlacedCluster{Name: "m1", Weight: 2},
		v1beta1.PlacedCluster{Name: fleet + "/m2", Parameters: map[string]string{"REGION": "eu-2"}})
	for _, step := range []struct {
		name string
		test func(*testing.T, *planes, *v1beta1.Instance)
	}{
		{"C46: copies have the values, the share and the template, and what they need", placed},
		{"C46: a change in a member is undone", drift},
		{"C27: the report is what the member's manager has written", reported},
		{"C46: the release travels with the values, and is taken back", release},
		{"C44: a change of the Instance, and of a Secret that it needs, reaches the members", changed},
		{"C46: an object of another owner is not touched", foreign},
		{"C44: copies that are orphaned stay without the marks of the hub", orphaned},
		{"C49: a member whose access is refused is reported at once", refused},
		{"C47: a member that is cut off delays no other, and is left when it is back", cutOff},
		{"C44: the Instance is removed from all members", removed},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, p, i) }) {
			return // the next one needs what this one leaves
		}
	}
}

const m2 = fleet + "/m2"

var shares = map[string]int64{"m1": 4, m2: 2}

func placed(t *testing.T, p *planes, i *v1beta1.Instance) {
	if o := p.observe(t, i); !o.Settled || len(o.Members) != 2 || o.Members["m1"].Applied {
		t.Errorf("before it is placed, the engine shows %+v", o)
	}
	p.place(t, i, shares)
	system := env.Read(t, p.hub, &corev1.Namespace{}, "", metav1.NamespaceSystem)
	for member, want := range map[string]map[string]string{"m1": {"REPLICAS": "4", "REGION": "eu-1"}, "m2": {"REPLICAS": "2", "REGION": "eu-2"}} {
		got := p.copyIn(t, member, i, "the copy", has(want))
		if got.Annotations[v1beta1.TemplateAnnotation] != v1beta1.Template(i.UID, i.Generation) || got.Annotations[v1beta1.ReleasedAnnotation] != "" ||
			got.Annotations["example.com/note"] != "kept" || got.Annotations[v1beta1.CancelAnnotation] != "" || !got.IsHeld() {
			t.Errorf("the annotations in %s are %v", member, got.Annotations)
		}
		if got.Labels[inventory.PlacedLabel] != string(system.UID) || got.Labels[v1beta1.OperatorLabel] != "book" {
			t.Errorf("the labels in %s are %v", member, got.Labels)
		}
		if len(got.ManagedFields) != 1 || got.ManagedFields[0].Manager != clusters.FieldManager || got.ManagedFields[0].Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("the writers in %s are %+v", member, got.ManagedFields)
		}
		c := p.members[member]
		env.Read(t, c, &v1beta1.Operator{}, ns, "book")
		version := env.Read(t, c, &v1beta1.OperatorVersion{}, ns, "book-1.0.0")
		secret := env.Read(t, c, &corev1.Secret{}, ns, "book-values")
		if len(version.Spec.Parameters) != 2 || string(secret.Data["PASSWORD"]) != "first" || secret.Labels[inventory.PlacedLabel] != string(system.UID) {
			t.Errorf("%s has %+v and %+v", member, version.Spec.Parameters, secret.Labels)
		}
	}
	env.Eventually(t, "both are shown as applied", func() string {
		o := p.observe(t, i)
		if !o.Settled || len(o.Bound) != 2 || *o.Bound["m1"] != 4 || *o.Bound[m2] != 2 {
			return fmt.Sprintf("%+v", o)
		}
		for _, name := range []string{"m1", m2} {
			if m := o.Members[name]; !m.Applied || m.Report != nil || m.Unreachable != "" || m.Leaving { // no manager has reported
				return fmt.Sprintf("%s: %+v", name, m)
			}
		}
		return ""
	})
	env.Eventually(t, "an event announces the copies", env.Condition(func() bool { return p.events(client.ObjectKeyFromObject(i)) > 0 }))
}

func drift(t *testing.T, p *planes, i *v1beta1.Instance) {
	got := env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, i.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"REPLICAS":"9","OWN":"kept"}}}`))
	env.Must(t, p.members["m1"].Patch(t.Context(), got, patch))
	p.copyIn(t, "m1", i, "the share of before", has(map[string]string{"REPLICAS": "4", "REGION": "eu-1", "OWN": "kept"}))
	env.Must(t, p.members["m1"].Delete(t.Context(), got))
	p.copyIn(t, "m1", i, "a new copy", has(map[string]string{"REPLICAS": "4", "REGION": "eu-1"}))
}

func reported(t *testing.T, p *planes, i *v1beta1.Instance) {
	got := env.Read(t, p.members["m2"], &v1beta1.Instance{}, ns, i.Name)
	got.Status.ObservedGeneration = got.Generation
	got.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Name: "deploy", Status: v1beta1.Complete, Revision: 3}}
	got.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ReadyCondition, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonResourcesReady, ObservedGeneration: got.Generation, LastTransitionTime: metav1.Now(),
	}}
	before := p.events(client.ObjectKeyFromObject(i))
	env.Must(t, p.members["m2"].Status().Update(t.Context(), got))
	env.Eventually(t, "the report has the status", func() string {
		r := p.observe(t, i).Members[m2].Report
		if r == nil || r.Ready != metav1.ConditionTrue || r.Plan != "deploy" || r.PlanStatus != v1beta1.Complete || r.Replicas != "2" || r.ObservedGeneration != got.Generation {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
	env.Eventually(t, "an event announces the report", env.Condition(func() bool { return p.events(client.ObjectKeyFromObject(i)) > before }))
}

func release(t *testing.T, p *planes, i *v1beta1.Instance) {
	template := v1beta1.Template(i.UID, i.Generation)
	released := func(want string) func(*v1beta1.Instance) string {
		return func(i *v1beta1.Instance) string {
			if got := i.Annotations[v1beta1.ReleasedAnnotation]; got != want {
				return fmt.Sprintf("released is %q, want %q", got, want)
			}
			return ""
		}
	}
	p.place(t, i, shares, "m1")
	p.copyIn(t, "m1", i, "the release", released(template))
	p.copyIn(t, "m2", i, "no release", released(""))
	p.place(t, i, shares, m2)
	p.copyIn(t, "m2", i, "the release", released(template))
	p.copyIn(t, "m1", i, "no release", released(""))
	env.Eventually(t, "the report has the release", func() string {
		if r := p.observe(t, i).Members[m2].Report; r == nil || r.Released != template {
			return fmt.Sprintf("%+v", r)
		}
		return ""
	})
}

func changed(t *testing.T, p *planes, i *v1beta1.Instance) {
	before := i.Generation
	i.Spec.Parameters = map[string]string{"REPLICAS": "6", "SIZE": "large"}
	env.Must(t, p.hub.Update(t.Context(), i))
	secret := env.Read(t, p.hub, &corev1.Secret{}, ns, "book-values")
	secret.Data["PASSWORD"] = []byte("second")
	env.Must(t, p.hub.Update(t.Context(), secret))
	p.place(t, i, shares)
	p.copyIn(t, "m1", i, "the change", has(map[string]string{"REPLICAS": "4", "SIZE": "large"}))
	got := p.copyIn(t, "m2", i, "the change", has(map[string]string{"REPLICAS": "2", "SIZE": "large", "REGION": "eu-2"}))
	if got.Annotations[v1beta1.TemplateAnnotation] != v1beta1.Template(i.UID, i.Generation) || i.Generation == before {
		t.Errorf("the template is %q, and the generation %d", got.Annotations[v1beta1.TemplateAnnotation], i.Generation)
	}
	for member := range p.members {
		if s := env.Read(t, p.members[member], &corev1.Secret{}, ns, "book-values"); string(s.Data["PASSWORD"]) != "second" {
			t.Errorf("%s has the value %q", member, s.Data["PASSWORD"])
		}
	}
}

func foreign(t *testing.T, p *planes, _ *v1beta1.Instance) {
	i := p.instance(t, "other", v1beta1.PlacedCluster{Name: "m1"}, v1beta1.PlacedCluster{Name: m2})
	own := gen.Instance("other", gen.Version(ns, "own"), map[string]string{"REPLICAS": "1"})
	env.Must(t, p.members["m1"].Create(t.Context(), own))
	secret := &corev1.Secret{ObjectMeta: gen.Meta(ns, "other-values"), StringData: map[string]string{"PASSWORD": "own"}}
	env.Must(t, p.members["m2"].Create(t.Context(), secret))
	p.place(t, i, shares)
	env.Eventually(t, "both members refuse", func() string {
		o := p.observe(t, i)
		want := map[string]string{"m1": "Instance apps/other exists in the cluster, and this hub has not placed it", m2: "Secret apps/other-values exists in the cluster"}
		for member, text := range want {
			if m := o.Members[member]; m.Applied || len(m.AppliedMessage) < len(text) || m.AppliedMessage[:len(text)] != text {
				return fmt.Sprintf("%s: %+v", member, m)
			}
		}
		return ""
	})
	env.Must(t, p.members["m2"].Delete(t.Context(), secret))
	p.copyIn(t, "m2", i, "the copy after the object has gone", has(map[string]string{"REPLICAS": "2", "REGION": "eu-1"}))
	p.remove(t, i)
	left := env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, "other")
	if left.UID != own.UID || left.Generation != own.Generation || len(left.Labels) != len(own.Labels) || len(left.ManagedFields) != 1 {
		t.Errorf("the Instance of another owner has become %+v", left)
	}
	p.isGone(t, "m2", i)
}

// remove removes an Instance, and waits until it has gone from all clusters.
func (p *planes) remove(t *testing.T, i *v1beta1.Instance) {
	t.Helper()
	env.Eventually(t, "no cluster has a copy", func() string {
		left, err := p.engine.Remove(t.Context(), i)
		env.Must(t, err)
		if len(left) > 0 {
			return fmt.Sprint(left)
		}
		return ""
	})
	for name, m := range p.observe(t, i).Members {
		if m.Applied || m.Leaving {
			t.Errorf("after the removal, the engine shows %+v of %s", m, name)
		}
	}
}

func (p *planes) isGone(t *testing.T, member string, i *v1beta1.Instance) {
	t.Helper()
	if err := p.members[member].Get(t.Context(), client.ObjectKeyFromObject(i), &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
		t.Errorf("%s has a copy left: %v", member, err)
	}
}

func orphaned(t *testing.T, p *planes, _ *v1beta1.Instance) {
	i := p.instance(t, "left", v1beta1.PlacedCluster{Name: "m1"})
	i.Spec.Placement.OnDelete = v1beta1.OrphanPlaced
	env.Must(t, p.hub.Update(t.Context(), i))
	p.place(t, i, shares, "m1")
	p.copyIn(t, "m1", i, "the copy", func(*v1beta1.Instance) string { return "" })
	p.remove(t, i)
	got := env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, "left")
	if got.Labels[inventory.PlacedLabel] != "" || got.PlacedTemplate() != "" || got.Annotations[v1beta1.ReleasedAnnotation] != "" ||
		got.Spec.Parameters["REPLICAS"] != "4" || !got.IsHeld() || got.DeletionTimestamp != nil {
		t.Errorf("the copy has become %+v", got)
	}
}

func refused(t *testing.T, p *planes, _ *v1beta1.Instance) {
	i := p.instance(t, "lost", v1beta1.PlacedCluster{Name: "m1"}, v1beta1.PlacedCluster{Name: "m9"}, v1beta1.PlacedCluster{Name: fleet + "/m1"})
	p.place(t, i, map[string]int64{"m1": 6})
	p.copyIn(t, "m1", i, "the copy", func(*v1beta1.Instance) string { return "" })
	env.Eventually(t, "the others are unreachable", func() string {
		o := p.observe(t, i)
		if o.Members["m9"].Unreachable != "ClusterProfile fleet/m9: does not exist: create it, or take the cluster out of spec.placement.clusters" ||
			o.Members[fleet+"/m1"].Unreachable == "" {
			return fmt.Sprintf("%+v", o.Members)
		}
		return ""
	})
	if left, err := p.engine.Remove(t.Context(), i); err != nil || !slices.Contains(left, "m9") {
		t.Errorf("left are %v, %v", left, err)
	}
	env.Must(t, p.engine.Forget(client.ObjectKeyFromObject(i), "m9"))
	p.remove(t, i)
}

func cutOff(t *testing.T, p *planes, i *v1beta1.Instance) {
	p.network.set(p.members["m2"], true)
	began := time.Now()
	i.Spec.Parameters["SIZE"] = "small"
	env.Must(t, p.hub.Update(t.Context(), i))
	p.place(t, i, shares)
	p.copyIn(t, "m1", i, "the change", has(map[string]string{"REPLICAS": "4", "SIZE": "small"}))
	if m := p.observe(t, i).Members[m2]; m.Unreachable != "" {
		t.Errorf("m1 has the change only after m2 counts as unreachable: %+v", m)
	}
	env.Eventually(t, "m2 is unreachable", func() string {
		switch m := p.observe(t, i).Members[m2]; {
		case m.Unreachable == "":
			return fmt.Sprintf("%+v", m)
		case m.Unreachable != "the cluster cannot be reached: dial: the network is cut":
			t.Errorf("unreachable is %q", m.Unreachable)
		}
		return ""
	})
	if took := time.Since(began); took < 19*time.Second {
		t.Errorf("after %s only, m2 counts as unreachable", took)
	}
	if m := p.observe(t, i).Members[m2]; m.Report == nil || m.Report.Template == v1beta1.Template(i.UID, i.Generation) || m.Leaving {
		t.Errorf("of the member that is cut off, the engine shows %+v", m)
	}
	whole := slices.Clone(i.Spec.Placement.Clusters)
	i.Spec.Placement.Clusters = whole[:1]
	env.Must(t, p.hub.Update(t.Context(), i))
	p.place(t, i, map[string]int64{"m1": 6})
	p.copyIn(t, "m1", i, "the whole", has(map[string]string{"REPLICAS": "6", "SIZE": "small"}))
	if m := p.observe(t, i).Members[m2]; !m.Leaving || m.Unreachable == "" {
		t.Errorf("of the member that is to be left, the engine shows %+v", m)
	}
	p.network.set(p.members["m2"], false)
	env.Eventually(t, "m2 has been left", func() string {
		if m, known := p.observe(t, i).Members[m2]; known {
			return fmt.Sprintf("%+v", m)
		}
		return ""
	})
	p.isGone(t, "m2", i)
}

func removed(t *testing.T, p *planes, i *v1beta1.Instance) {
	got := env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, i.Name)
	patch := func(finalizers string) {
		env.Must(t, p.members["m1"].Patch(t.Context(), got, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
	}
	patch(`["` + v1beta1.CleanupFinalizer + `"]`)
	env.Eventually(t, "the copy is being deleted", func() string {
		_, err := p.engine.Remove(t.Context(), i)
		env.Must(t, err)
		if env.Read(t, p.members["m1"], &v1beta1.Instance{}, ns, i.Name).DeletionTimestamp == nil {
			return "it is not"
		}
		return ""
	})
	for range 20 {
		left, err := p.engine.Remove(t.Context(), i)
		if err != nil || !slices.Equal(left, []string{"m1"}) && !slices.Equal(left, []string{m2, "m1"}) {
			t.Fatalf("left are %v, %v", left, err)
		}
		<-time.After(100 * time.Millisecond)
	}
	if m := p.observe(t, i).Members["m1"]; !m.Leaving || !m.Applied {
		t.Errorf("while the copy is cleaned up, the engine shows %+v", m)
	}
	patch(`[]`)
	p.remove(t, i)
	p.isGone(t, "m1", i)
}
