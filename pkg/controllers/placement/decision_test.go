package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/controllers/loop"
)

// decided is a fixture whose Instance has the decision prod.
type decided struct {
	*fixture
	// names are those that the engine reads of the decision, and hold says why it cannot be acted upon.
	names []string
	hold  string
}

func newDecided(t *testing.T, waves *v1beta1.Waves, names ...string) *decided {
	d := &decided{fixture: newFixture(t, waves), names: names}
	d.r.Decide = func(_ context.Context, i *v1beta1.Instance) (*v1beta1.DecisionStatus, error) {
		if d.hold != "" {
			return nil, &clusters.HoldError{Message: d.hold}
		}
		if i.Spec.Placement.Decision.Name == "broken" {
			return nil, errDown
		}
		return &v1beta1.DecisionStatus{Name: i.Spec.Placement.Decision.Name, Clusters: slices.Clone(d.names)}, nil
	}
	d.change(func(i *v1beta1.Instance) {
		i.Spec.Placement.Clusters, i.Spec.Placement.Decision = nil, &v1beta1.DecisionReference{Name: "prod"}
	})
	d.bind()
	return d
}

// bind has the engine show that it has bound the clusters of the decision, without any report.
func (d *decided) bind() {
	d.engine.shown.Bound, d.engine.shown.Members = map[string]*int64{}, map[string]clusters.Member{}
	for _, name := range d.names {
		d.engine.shown.Bound[name], d.engine.shown.Members[name] = nil, clusters.Member{Applied: true}
	}
}

// template is the one of the clusters that the decision names.
func (d *decided) template(generation int64) string {
	return fmt.Sprintf("u/%d/%s", generation, (&v1beta1.DecisionStatus{Clusters: d.names}).Fingerprint())
}

// TestDecision checks C45: another set of clusters is released as another generation is, wave by wave, and is committed before it is placed.
func TestDecision(t *testing.T) {
	d := newDecided(t, firstAlone(), "m2", "m1")
	first := d.template(1)
	d.expect("the decision is committed first", "observe", patchStatus, "place m2: m1:"+first)
	d.show(first, nil, "m1")
	d.step("the second wave", 2, v1beta1.WaveOpen, "m2 m1")
	d.show(first, nil, "m1", "m2")
	d.step("both are ready", 2, v1beta1.WaveDone, "m2 m1")
	d.expectCondition("both are ready", v1beta1.ReadyCondition, "True MembersReady")

	slices.Reverse(d.names)
	d.expect("another order is no change", "observe", "place m1:"+first+" m2:"+first, patchStatus)
	d.expectCondition("another order", v1beta1.ReadyCondition, "True MembersReady")

	d.names = append(d.names, "m3")
	d.bind()
	d.show(first, nil, "m1", "m2")
	second := d.template(1)
	d.expect("a new change begins at the first wave", "observe", patchStatus, "place m1:"+second+" m2: m3:")
	d.expectCondition("the members have the change before", v1beta1.ReadyCondition, "Unknown WaveInProgress")
	d.loop = d.r.loop() // another process
	d.expect("the next process goes on", "observe", "place m1:"+second+" m2: m3:")
	d.show(second, nil, "m1", "m2", "m3")
	d.step("all have it", 2, v1beta1.WaveDone, "m1 m2 m3")
	d.expectCondition("all have it", v1beta1.ReadyCondition, "True MembersReady")

	d.names = []string{"m2"}
	d.bind()
	third := d.template(1)
	d.expect("the waves of clusters that have left are none", "observe", patchStatus, "place m2:"+third)
	if wave := d.instance().Status.Wave; wave.Of != 1 {
		t.Errorf("wave %+v", wave)
	}
	d.names = nil
	d.bind()
	d.engine.shown.Members["m2"] = clusters.Member{Applied: true, Leaving: true}
	d.expect("it names none: the Instance leaves all", "observe", patchStatus, "place ")
	d.expectCondition("one is still leaving", v1beta1.ReadyCondition, "Unknown MembersLagging 0 of 1 clusters are ready; m2 is Leaving")
	d.bind()
	d.expect("it has left all", "observe", "place ", patchStatus)
	d.expectCondition("it has left all", v1beta1.ReadyCondition, "False NotScheduled the decision prod names no cluster")
	d.expect("nothing has changed", "observe", "place ")
}

// TestDecisionHeld checks C45: a decision that cannot be acted upon leaves what is placed as it is, also in another process, and is never
// Ready.
func TestDecisionHeld(t *testing.T) {
	d := newDecided(t, nil, "m1", "m2")
	d.hold = "there are no slices"
	result, done, _ := d.reconcile()
	if len(done) != 1 || done[0] != patchStatus || result.RequeueAfter != loop.RecheckInterval {
		t.Errorf("no clusters are known, and it did %q, again after %s", done, result.RequeueAfter)
	}
	d.expectCondition("no clusters are known", v1beta1.ReadyCondition, "Unknown DecisionHeld there are no slices")
	d.expectCondition("no clusters are known", v1beta1.ReconcilingCondition, "True DecisionHeld")
	d.hold = ""
	template := d.template(1)
	d.show(template, nil, "m1", "m2")
	d.reconcile()
	d.expectCondition("it is known", v1beta1.ReadyCondition, "True MembersReady")

	d.hold, d.loop = "a slice is missing", d.r.loop()
	result, done, _ = d.reconcile()
	if want := []string{"observe", "place m1:" + template + " m2:" + template, patchStatus}; !slices.Equal(done, want) || result.RequeueAfter != loop.RecheckInterval {
		t.Errorf("it is held, and it did %q, again after %s", done, result.RequeueAfter)
	}
	d.expectCondition("it is held", v1beta1.ReadyCondition, "Unknown DecisionHeld a slice is missing")
	d.engine.shown.Members["m2"] = clusters.Member{Unreachable: "cut"}
	d.reconcile()
	d.expectCondition("a member is lost meanwhile", v1beta1.ReadyCondition, "Unknown DecisionHeld a slice is missing; 1 of 2 clusters are ready; m2 is Lost")

	d.change(func(i *v1beta1.Instance) { i.Generation, i.Spec.Placement.Decision.Name = 2, "other" })
	d.expect("the clusters of another decision are not known: nothing is placed", patchStatus)
	if got := d.instance().Status.Decision; got == nil || got.Name != "prod" || len(got.Clusters) != 2 {
		t.Errorf("the decision before is %+v", got)
	}
	d.r.Forget = func(types.NamespacedName, string) error { return errDown }
	d.change(func(i *v1beta1.Instance) { i.Annotations = map[string]string{v1beta1.ForgetAnnotation: "m1"} })
	d.expect("a cluster that the decision may name is not given up")
}

// TestDecisionRefused checks C13, C45 and C52: what can never be right says so, and is not given to the engine.
func TestDecisionRefused(t *testing.T) {
	d := newDecided(t, nil, "m1", "m2", "m3")
	d.change(func(i *v1beta1.Instance) { i.Spec.Placement.Divide, i.Spec.Parameters["REPLICAS"] = "REPLICAS", "2" })
	d.expect("a share is 0, and no clusters are known", patchStatus)
	d.expectCondition("a share is 0", v1beta1.ReadyCondition, "Unknown DecisionHeld spec.placement.decision: the decision prod names 3 clusters, and REPLICAS=2")
	d.names = []string{"m1", "m2"}
	d.bind()
	d.reconcile()
	if got := len(d.engine.placed); got != 1 || *d.engine.placed[0].Clusters[0].Share != 1 {
		t.Errorf("it was placed %d times", got)
	}
	d.names = []string{"m1", "m2", "m3"}
	_, done, _ := d.reconcile()
	if !strings.Contains(strings.Join(done, " "), "place m1:u/1/") || strings.Contains(strings.Join(done, " "), "m3") {
		t.Errorf("a cluster more has no share, and it did %q", done)
	}
	d.expectCondition("a cluster more has no share", v1beta1.ReadyCondition, "Unknown DecisionHeld")
	d.change(func(i *v1beta1.Instance) { i.Generation, i.Spec.Parameters["REPLICAS"] = 2, "1" })
	d.expect("the clusters before have no share either", patchStatus)
	d.expectCondition("the clusters before have no share either", v1beta1.ReadyCondition, "False InvalidSpec spec.placement.decision: the decision prod names 2")

	d = newDecided(t, nil, "m1")
	d.r.Decide = nil
	d.expect("the engine reads no decisions", patchStatus)
	d.expectCondition("the engine reads no decisions", v1beta1.ReadyCondition, "False InvalidSpec spec.placement.decision: Karmada carries")
	d = newDecided(t, nil, "m1")
	d.change(func(i *v1beta1.Instance) { i.Spec.Placement.Decision.Name = "broken" })
	if result, done, _ := d.reconcile(); len(done) > 0 || result.RequeueAfter <= 0 {
		t.Errorf("the engine fails: %q, again after %s", done, result.RequeueAfter)
	}
	d.change(func(i *v1beta1.Instance) {
		i.Spec.Placement.Decision, i.Spec.Placement.Clusters = nil, []v1beta1.PlacedCluster{{Name: "m1"}}
		i.Status.Decision = &v1beta1.DecisionStatus{Name: "prod", Clusters: []string{"m9"}}
	})
	d.expect("clusters are named again", "observe", patchStatus, "place m1:u/1")
	if d.instance().Status.Decision != nil {
		t.Error("the decision stays in the status")
	}
}
