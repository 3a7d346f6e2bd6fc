package instance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/gen"
)

// countRuns lets the reconciler count runs, and returns what was counted, as "plan outcome cause: number".
func (f *fixture) countRuns(t *testing.T) func() []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	runs, err := metrics.NewRuns(registry)
	if err != nil {
		t.Fatal(err)
	}
	f.r.Metrics = runs
	return func() []string {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, family := range families {
			if family.GetName() != metrics.PlanRuns {
				continue
			}
			for _, m := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range m.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				out = append(out, fmt.Sprintf("%s %s %s %s: %g", labels["operator"], labels["plan"], labels["outcome"], labels["cause"], m.GetCounter().GetValue()))
			}
		}
		return out
	}
}

// TestRunsCounted checks R29: each run counts once, with how it ended and why it was started.
func TestRunsCounted(t *testing.T) {
	annotate := func(f *fixture, key string) {
		f.change(func(i *v1beta1.Instance) {
			i.Annotations = map[string]string{key: string(i.Status.PlanStatus[plans.Running(i.Status.PlanStatus)].UID)}
		})
	}
	fatal := func(ov *v1beta1.OperatorVersion) {
		gen.Task("fail", v1beta1.DummyTask, v1beta1.TaskSpec{WantErr: true, Fatal: true})(ov)
		gen.Serial("deploy", "fail")(ov)
	}
	for _, tc := range []struct {
		reason string
		mod    gen.VersionMod
		do     func(f *fixture)
		want   []string
	}{
		{"the first run", nil, func(*fixture) {}, []string{"web deploy complete created: 1"}},
		{"a change", nil, func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
		}, []string{"web deploy complete changed: 1", "web deploy complete created: 1"}},
		{"a request", nil, func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy", UID: "a"} })
		}, []string{"web deploy complete created: 1", "web deploy complete request: 1"}},
		{"a run that fails", fatal, func(*fixture) {}, []string{"web deploy fatal created: 1"}},
		{"a run that has not ended", endless, func(*fixture) {}, nil},
		{"a run that a user cancels", endless, func(f *fixture) { annotate(f, v1beta1.CancelAnnotation) }, []string{"web deploy cancelled created: 1"}},
		{"a run that is started again with other values", endless, func(f *fixture) {
			f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
		}, []string{"web deploy superseded created: 1"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var mods []gen.VersionMod
			if tc.mod != nil {
				mods = append(mods, tc.mod)
			}
			f := newFixture(t, mods...)
			counted := f.countRuns(t)
			f.settle(t)
			tc.do(f)
			f.settle(t)
			f.settle(t)
			got := counted()
			slices.Sort(got)
			if diff := cmp.Diff(strings.Join(tc.want, "\n"), strings.Join(got, "\n")); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
		})
	}
}
