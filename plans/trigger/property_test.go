package trigger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// genVersion draws an OperatorVersion: some plans, and parameters with triggers and immutable ones.
func genVersion(t *rapid.T) v1beta1.OperatorVersionSpec {
	v := version("deploy")
	for _, name := range []string{"update", "upgrade", "backup", "restore"} {
		if rapid.Bool().Draw(t, name) {
			v.Plans[name] = v1beta1.Plan{}
		}
	}
	for _, name := range []string{"A", "B", "C", "D"} {
		if rapid.IntRange(0, 4).Draw(t, "defined") == 0 {
			continue
		}
		p := v1beta1.Parameter{Name: name, Trigger: rapid.SampledFrom(append(plans.Names(v.Plans), "")).Draw(t, "trigger")}
		if rapid.IntRange(0, 5).Draw(t, "immutable") == 0 {
			p.Immutable = ptr(true)
		}
		if rapid.Bool().Draw(t, "default") {
			p.Default = ptr("default")
		}
		v.Parameters = append(v.Parameters, p)
	}
	return v
}

// run is one that was started.
type run struct {
	plan, version string
	// whole is set for runs that answer everything: of creation and of versions.
	whole  bool
	values values
}

// promise is a request by hand that was recorded: a run of the plan comes, the first at index or later.
type promise struct {
	plan  string
	index int
}

// world is an apiserver with one Instance, its users, and a manager that may die.
type world struct {
	t        *rapid.T
	versions map[string]v1beta1.OperatorVersionSpec
	// forgets is set if old versions cannot be read any more.
	forgets  bool
	instance *v1beta1.Instance
	runs     []run
	promises []promise
	changes  int
	requests int
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, versions: map[string]v1beta1.OperatorVersionSpec{}, forgets: rapid.IntRange(0, 3).Draw(t, "forgets") == 0}
	for _, name := range []string{"v1", "v2", "v3"} {
		w.versions[name] = genVersion(t)
	}
	w.instance = given(v1, created).Instance
	w.instance.Spec.Parameters = values{}
	return w
}

func (w *world) input(instance *v1beta1.Instance) Input {
	in := Input{Instance: instance, Given: instance.Spec.Parameters, Version: w.versions[instance.Spec.OperatorVersion.Name], Digests: plain("of ")}
	if b := instance.Status.Baseline; b != nil && b.OperatorVersion != instance.OperatorVersionKey().String() && !w.forgets {
		in.Old = ptr(w.versions[b.OperatorVersion[len("ns/"):]])
	}
	return in
}

// edit is what a user does; it is stored unless admission denies it.
func (w *world) edit() {
	edited := w.instance.DeepCopy()
	if edited.Spec.Parameters == nil {
		edited.Spec.Parameters = values{}
	}
	n := rapid.IntRange(1, 3).Draw(w.t, "changes")
	for range n {
		name := rapid.SampledFrom([]string{"A", "B", "C", "D", "Z"}).Draw(w.t, "name")
		switch rapid.IntRange(0, 7).Draw(w.t, "edit") {
		case 0:
			delete(edited.Spec.Parameters, name)
		case 1:
			edited.Spec.OperatorVersion.Name = rapid.SampledFrom([]string{"v1", "v2", "v3"}).Draw(w.t, "version")
		case 2:
			w.requests++
			uid := types.UID(rapid.SampledFrom([]string{"", fmt.Sprint("u", w.requests)}).Draw(w.t, "uid"))
			plan := rapid.SampledFrom([]string{"", "deploy", "update", "backup", "restore"}).Draw(w.t, "plan")
			edited.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: uid}
		default:
			edited.Spec.Parameters[name] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(w.t, "value")
		}
	}
	if w.instance.Status.Baseline == nil || Validate(w.instance, w.input(edited)) == nil {
		w.instance, w.changes = edited, w.changes+n
	}
}

// pass is one reconcile; a manager that dies before the status patch has done nothing.
func (w *world) pass(dies bool) Decision {
	d, err := Decide(w.input(w.instance.DeepCopy()))
	if err != nil {
		w.t.Fatalf("what admission lets pass is never refused later: %v", err)
	}
	if dies {
		return d
	}
	status := &w.instance.Status
	if status.PlanStatus == nil {
		status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	w.promised(d)
	w.adopted(d)
	if d.Start != nil {
		w.start(d)
	}
	if d.Baseline != nil {
		status.Baseline = d.Baseline
	}
	status.Queue = d.Queue
	if name := w.instance.Spec.OperatorVersion.Name; status.Baseline.OperatorVersion == "ns/"+name {
		w.promises = slices.DeleteFunc(w.promises, func(p promise) bool { // the version that holds has no such plan
			_, defined := w.versions[name].Plans[p.plan]
			return !defined
		})
	}
	w.store()
	return d
}

// promised notes a request by hand that this decision answers or queues.
func (w *world) promised(d Decision) {
	old, exec := w.instance.Status.Baseline, w.instance.Spec.PlanExecution
	if old == nil || d.Baseline == nil || exec.PlanName == "" {
		return
	}
	if exec.UID != "" && !slices.Contains(old.RequestUIDs, exec.UID) || exec.UID == "" && old.PlanName != exec.PlanName {
		w.promises = append(w.promises, promise{exec.PlanName, len(w.runs)})
	}
}

func (w *world) start(d Decision) {
	status := &w.instance.Status
	running, name := plans.Running(status.PlanStatus), w.instance.Spec.OperatorVersion.Name
	if d.Restart != (running != "") || d.Restart && (running != d.Start.Plan || status.Baseline.OperatorVersion != "ns/"+name) {
		w.t.Fatalf("rule 3: only the running plan is restarted, and never with another version: %s runs, %+v", running, d.Start)
	}
	if _, defined := w.versions[name].Plans[d.Start.Plan]; !defined {
		w.t.Fatalf("rule 4: plan %s does not exist in %s", d.Start.Plan, name)
	}
	r := run{plan: d.Start.Plan, version: name, whole: d.Start.all, values: values{}}
	maps.Copy(r.values, d.Baseline.ImmutableDefaults)
	maps.Copy(r.values, w.instance.Spec.Parameters)
	if last := len(w.runs) - 1; last >= 0 && w.runs[last].version == name {
		for _, p := range w.versions[name].Parameters {
			if p.IsImmutable() && w.runs[last].values[p.Name] != r.values[p.Name] {
				w.t.Fatalf("rule 6: %s was %q and is %q", p.Name, w.runs[last].values[p.Name], r.values[p.Name])
			}
		}
	}
	w.runs = append(w.runs, r)
	status.PlanStatus[d.Start.Plan] = plans.Start(d.Start.Plan, v1beta1.Plan{}, types.UID(fmt.Sprint("run-", len(w.runs))), int64(len(w.runs)), time.Unix(1700000000, 0))
}

// end lets the running plan end.
func (w *world) end() {
	if name := plans.Running(w.instance.Status.PlanStatus); name != "" {
		st := w.instance.Status.PlanStatus[name]
		st.Status = rapid.SampledFrom([]v1beta1.ExecutionStatus{v1beta1.Complete, v1beta1.FatalError}).Draw(w.t, "end")
		w.instance.Status.PlanStatus[name] = st
		w.store()
	}
}

// store sends the Instance through JSON, as a restart does.
func (w *world) store() {
	raw, err := json.Marshal(w.instance)
	if err != nil {
		w.t.Fatalf("encode: %v", err)
	}
	w.instance = &v1beta1.Instance{}
	if err := json.Unmarshal(raw, w.instance); err != nil {
		w.t.Fatalf("decode: %v", err)
	}
}

// settle runs all that is to be run.
func (w *world) settle() {
	for range 20 {
		w.pass(false)
		if plans.Running(w.instance.Status.PlanStatus) == "" {
			if d := w.pass(false); d.Start != nil || d.Queue != nil || d.Baseline != nil {
				w.t.Fatalf("no plan runs, and yet something is decided: %s, %+v", text(d, nil), d.Baseline)
			}
			return
		}
		w.end()
	}
	w.t.Fatalf("no end: %+v", w.instance.Status)
}

// trigger is the plan that a change of a parameter starts.
func (w *world) trigger(version string, p v1beta1.Parameter) string {
	if p.Trigger != "" {
		return p.Trigger
	}
	return plans.FirstDefined(w.versions[version].Plans, "update", "deploy")
}

// differs reports whether the baseline does not have the value that spec has.
func (w *world) differs(b *v1beta1.Baseline, name string) bool {
	value, set := w.instance.Spec.Parameters[name]
	hash, known := b.Parameters[name]
	return set != known || set && hash != plain("of ").Of(name, value)
}

// adopted checks that a value is taken over only by a run that answers it and has it.
func (w *world) adopted(d Decision) {
	old, name := w.instance.Status.Baseline, w.instance.Spec.OperatorVersion.Name
	if old == nil || d.Baseline == nil {
		return
	}
	for _, p := range w.versions[name].Parameters {
		if !w.differs(old, p.Name) || w.differs(d.Baseline, p.Name) {
			continue
		}
		if d.Start == nil || !d.Start.all && d.Start.Plan != w.trigger(name, p) {
			w.t.Fatalf("the change of %s is taken for answered by %s", p.Name, text(d, nil))
		}
	}
}

// answered checks that each change and each request has had its run.
func (w *world) answered() {
	final := w.instance.Spec.OperatorVersion.Name
	if got := w.instance.Status.Baseline.OperatorVersion; got != "ns/"+final || w.runs[len(w.runs)-1].version != final {
		w.t.Fatalf("version %s is not answered: %s, %+v", final, got, w.runs)
	}
	for _, p := range w.versions[final].Parameters {
		if w.differs(w.instance.Status.Baseline, p.Name) {
			w.t.Fatalf("the change of %s is not answered: %+v", p.Name, w.runs)
		}
	}
	for _, promise := range w.promises {
		if !slices.ContainsFunc(w.runs[promise.index:], func(r run) bool { return r.plan == promise.plan }) {
			w.t.Fatalf("rule 4: plan %s was asked for before run %d, and not run: %+v", promise.plan, promise.index, w.runs)
		}
	}
	if len(w.runs) > 1+w.changes {
		w.t.Fatalf("%d runs for %d changes and a creation: %+v", len(w.runs), w.changes, w.runs)
	}
}

// Whatever users edit, whatever ends how, and whenever the manager dies: every change is answered by a run with values
// at least as new, every request by hand by a run, none by two, and nothing runs at the end.
func TestPropertyEveryChangeIsAnswered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(0, 25).Draw(t, "acts") {
			switch rapid.IntRange(0, 5).Draw(t, "act") {
			case 0:
				w.end()
			case 1, 2:
				w.pass(rapid.Bool().Draw(t, "dies"))
			default:
				w.edit()
			}
		}
		w.settle()
		w.answered()
	})
}
