package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/plans"
)

// scripted is a writer with given answers.
type scripted struct {
	changes apply.ChangeSet
	// removals are the answers to the calls of remove, in order.
	removals [][]apply.Removal
	// removed are the names of the objects of each call.
	removed [][]string
	// live are the objects that lookup finds; the error is that of an object that may not be read.
	live map[string]error
}

func (s *scripted) enhance(context.Context, render.Variables, []*unstructured.Unstructured) error {
	return nil
}

func (s *scripted) preflight(context.Context, []*unstructured.Unstructured) apply.ChangeSet {
	return nil
}

func (s *scripted) apply(context.Context, []*unstructured.Unstructured) apply.ChangeSet {
	return s.changes
}

func (s *scripted) remove(_ context.Context, objs []*unstructured.Unstructured) []apply.Removal {
	var names []string
	for _, obj := range objs {
		names = append(names, obj.GetName())
	}
	s.removed = append(s.removed, names)
	return s.removals[len(s.removed)-1]
}

func (s *scripted) lookup(_ context.Context, id apply.ID) (*unstructured.Unstructured, error) {
	err, found := s.live[id.Name]
	if !found || err != nil {
		return nil, err
	}
	return id.Object(), nil
}

// interpreter answers each operation for the objects of a name.
type interpreter map[explore.Operation]map[string]any

// Explore implements Interpreter. An answer that is an error is returned as such.
func (i interpreter) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	switch answer := i[r.Operation][r.Object.GetName()].(type) {
	case explore.Answer:
		return answer, true, nil
	case error:
		return explore.Answer{}, false, answer
	}
	return explore.Answer{}, false, nil
}

// named builds a live object whose health only an interpreter knows.
func named(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetUID(types.UID("uid-of-" + name))
	return obj
}

// failedJob builds a Job that has failed.
func failedJob(name string) *unstructured.Unstructured {
	obj := named(name)
	obj.SetAPIVersion("batch/v1")
	obj.SetKind("Job")
	obj.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "too often"}}}
	return obj
}

// noEngine is an engine of a cluster that serves no kind.
func noEngine() *apply.Engine {
	return apply.New(nil, nil, apply.NewKinds(meta.NewDefaultRESTMapper(nil), nil, nil), nil, nil)
}

// wrote is the change of an object that was written.
func wrote(obj *unstructured.Unstructured) apply.Change {
	return apply.Change{ID: apply.IDOf(obj), Action: apply.Configured, Live: obj, Record: apply.Record{UID: obj.GetUID()}}
}

// refused is the change of an object that was not.
func refused(name string, action apply.Action, err error) apply.Change {
	return apply.Change{ID: apply.IDOf(named(name)), Action: action, Err: err}
}

// TestApplyOutcome has what is made of the objects of a task: the worst of them decides, and of equals the first.
func TestApplyOutcome(t *testing.T) {
	waits := explore.Answer{Message: "is slow"}
	all := interpreter{
		explore.Healthy: {"slow": waits, "slower": explore.Answer{Message: "is slower"}, "unknown": errors.New("no answer"), "mute": explore.Answer{Layer: "user", Who: "Config/c"}},
		explore.Dependencies: {"slow": explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{
			{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "absent"}, {APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "there"}}}},
	}
	awaited := refused("later", apply.Awaited, errors.New("ConfigMap ns/later is not written yet"))
	dropped := wrote(named("d"))
	dropped.Dropped = []apply.Dropped{{Path: "spec.x"}}
	for name, tc := range map[string]struct {
		reason  string
		changes apply.ChangeSet
		want    plans.Outcome
		// written are the names of the objects that the inventory takes, failed of those that could not be written.
		written, failed []string
		events          [][2]string
	}{
		"Done":    {"all are ready", apply.ChangeSet{wrote(named("a")), wrote(named("b"))}, plans.Outcome{State: plans.Done, Ready: 2, Total: 2}, []string{"a", "b"}, nil, nil},
		"Waiting": {"one is not, and what it depends on is absent", apply.ChangeSet{wrote(named("a")), wrote(named("slow"))}, plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/slow: needs Secret ns/absent: missing: is slow", Ready: 1, Total: 2}, []string{"a", "slow"}, nil, nil},
		"First":   {"of two the first is named", apply.ChangeSet{wrote(named("slower")), wrote(named("slow"))}, plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/slower: is slower", Total: 2}, []string{"slower", "slow"}, nil, nil},
		"Mute":    {"an interpreter that gives no reason is named", apply.ChangeSet{wrote(named("mute"))}, plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/mute: is not healthy, as user Config/c says", Total: 1}, []string{"mute"}, nil, nil},
		"Awaited": {"an object that is not written yet", apply.ChangeSet{wrote(named("a")), awaited}, plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/later is not written yet", Ready: 1, Total: 2}, []string{"a"}, nil, nil},
		"Unknown": {"a health that is not known is asked for again", apply.ChangeSet{wrote(named("unknown"))}, plans.Outcome{State: plans.Transient, Message: "ConfigMap ns/unknown: its health is not known: no answer", Total: 1}, []string{"unknown"}, nil, nil},
		"Transient": {
			"an error that may not occur again, and the others are written", apply.ChangeSet{refused("x", apply.Failed, errors.New("conflict")), wrote(named("a"))},
			plans.Outcome{State: plans.Transient, Message: "conflict", Ready: 1, Total: 2}, []string{"a"}, []string{"x"}, nil,
		},
		"Fatal": {
			"a fatal error comes before one that is not", apply.ChangeSet{refused("x", apply.Failed, errors.New("conflict")), refused("y", apply.Failed, &apply.FatalError{Err: errors.New("immutable")})},
			plans.Outcome{State: plans.Fatal, Message: "immutable", Total: 2}, nil, []string{"x", "y"}, nil,
		},
		"Job":     {"an object that has failed permanently", apply.ChangeSet{wrote(named("a")), wrote(failedJob("j"))}, plans.Outcome{State: plans.Fatal, Message: "Job ns/j: ", Ready: 1, Total: 2}, []string{"a", "j"}, nil, nil},
		"Dropped": {"a field that was left out", apply.ChangeSet{dropped}, plans.Outcome{State: plans.Done, Ready: 1, Total: 1}, []string{"d"}, nil, [][2]string{{v1beta1.EventFieldDropped, "ConfigMap ns/d: spec.x is left out, since the schema of this cluster does not have it: correct the package's template"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{all: all, external: all, engine: noEngine()}
			w := &PreparedTask{run: run(nil), writer: &scripted{changes: tc.changes}}
			w.run.begin(clocktesting.NewFakePassiveClock(time.Unix(1, 0)))
			for secret, exists := range map[string]bool{"absent": false, "there": true} {
				id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}}
				id.Namespace, id.Name = "ns", secret
				w.run.depends.note(id, exists)
			}
			for _, change := range tc.changes {
				w.objects = append(w.objects, change.ID.Object())
			}
			got, effects := r.apply(t.Context(), w)
			if name == "Job" && strings.HasPrefix(got.Message, tc.want.Message) {
				got.Message = tc.want.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([][]string{tc.written, tc.failed}, [][]string{changed(effects.Written), changed(effects.Failed)}); diff != "" {
				t.Errorf("%s: written and failed (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.events, effects.Events); diff != "" {
				t.Errorf("%s: events (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func changed(changes []apply.Change) (names []string) {
	for _, c := range changes {
		names = append(names, c.ID.Name)
	}
	return names
}

// TestReadopted shows P26: the event names what a task has taken over again, with secrets masked and bounded.
func TestReadopted(t *testing.T) {
	change := func(name string, readopted bool) apply.Change {
		c := wrote(named(name))
		c.Readopted = readopted
		return c
	}
	var many, long []apply.Change
	for n := range 12 {
		many = append(many, change(fmt.Sprintf("kept-%d", n), true))
		long = append(long, change(strings.Repeat("x", 250), true))
	}
	u := run(nil)
	u.Plan, u.Parameters, u.Sensitive = "deploy", map[string]string{"PIN": "77345"}, []string{"PIN"}
	w := &PreparedTask{run: u}
	for _, tc := range []struct {
		reason  string
		changes []apply.Change
		want    string
	}{
		{"none", []apply.Change{change("new", false)}, ""},
		{"one of two", []apply.Change{change("new", false), change("kept", true)}, "Plan deploy took over again what was kept: ConfigMap ns/kept"},
		{"a name with a secret", []apply.Change{change("of-77345", true)}, "Plan deploy took over again what was kept: ConfigMap ns/of-(sensitive)"},
		{"many", many, "Plan deploy took over again what was kept: ConfigMap ns/kept-0, "},
	} {
		if got := w.describeReadopted(tc.changes); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (got == "") || strings.Contains(got, "77345") {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
	if got := w.describeReadopted(many); strings.Contains(got, "kept-11") || len(w.describeReadopted(long)) > maxReadoptedText {
		t.Errorf("it is not bounded: %q", got)
	}
}

// TestAllWritten checks that what was written beside an object that has failed is in the inventory, wherever it stands.
func TestAllWritten(t *testing.T) {
	r := &Runner{all: interpreter{}, external: interpreter{}, engine: noEngine()}
	changes := apply.ChangeSet{wrote(named("a")), wrote(failedJob("j")), wrote(named("b")), refused("x", apply.Failed, errors.New("conflict")), wrote(failedJob("k"))}
	changes[2].Dropped = []apply.Dropped{{Path: "spec.x"}}
	got, effects := r.apply(t.Context(), &PreparedTask{run: run(nil), writer: &scripted{changes: changes}})
	if got.State != plans.Fatal || !strings.HasPrefix(got.Message, "Job ns/j: ") || got.Total != 5 {
		t.Errorf("the first that has failed decides: %+v", got)
	}
	if diff := cmp.Diff([][]string{{"a", "j", "b", "k"}, {"x"}}, [][]string{changed(effects.Written), changed(effects.Failed)}); diff != "" || len(effects.Events) != 1 {
		t.Errorf("events %v, written and failed (-want +got):\n%s", effects.Events, diff)
	}
}

// TestStaleStatus checks that the status of an object counts only if it is of the last write.
func TestStaleStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object, stale string
		want                  plans.Outcome
	}{
		"Current": {"the status is current", "a", "", plans.Outcome{State: plans.Done, Ready: 1, Total: 1}},
		"Stale":   {"it is older", "a", "waits for the status", plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/a: waits for the status", Total: 1}},
		"Slow":    {"an object that is not ready says itself what it waits for", "slow", "waits for the status", plans.Outcome{State: plans.Waiting, Message: "ConfigMap ns/slow: is slow", Total: 1}},
	} {
		i := interpreter{explore.Healthy: {"slow": explore.Answer{Message: "is slow"}}}
		w := &PreparedTask{run: run(nil), writer: &scripted{changes: apply.ChangeSet{wrote(named(tc.object))}},
			staleStatus: func(*unstructured.Unstructured) string { return tc.stale }}
		if got, _ := (&Runner{all: i, external: i}).apply(t.Context(), w); got != tc.want {
			t.Errorf("%s: %s: %+v, want %+v", name, tc.reason, got, tc.want)
		}
	}
}

// TestDeleteOutcome has what is made of the deletions of a task.
func TestDeleteOutcome(t *testing.T) {
	id := func(name string) apply.ID { return apply.IDOf(named(name)) }
	gone := func(name string) apply.Removal { return apply.Removal{ID: id(name), Done: true} }
	for name, tc := range map[string]struct {
		reason   string
		removals [][]apply.Removal
		// last are the objects that are deleted after all others.
		last    []*unstructured.Unstructured
		want    plans.Outcome
		deleted []string
		events  []string
		removed [][]string
	}{
		"Gone": {"all are deleted", [][]apply.Removal{{gone("a"), gone("b")}}, nil, plans.Outcome{State: plans.Done, Ready: 2, Total: 2}, []string{"a", "b"}, nil, [][]string{{"a", "b"}}},
		"Waiting": {
			"one has a finalizer: the first that waits is named", [][]apply.Removal{{{ID: id("a"), Waiting: "a has finalizers"}, {ID: id("b"), Waiting: "b too"}}}, nil,
			plans.Outcome{State: plans.Waiting, Message: "a has finalizers", Total: 2}, nil, nil, [][]string{{"a", "b"}},
		},
		"Foreign": {
			"an object of others stays, which is no failure", [][]apply.Removal{{{ID: id("a"), ForeignOwner: "Instance ns/o", Done: true}, gone("b")}}, nil,
			plans.Outcome{State: plans.Done, Ready: 2, Total: 2}, []string{"b"}, []string{"ConfigMap ns/a belongs to Instance ns/o: task t did not delete it"}, [][]string{{"a", "b"}},
		},
		"Kept": {
			"an object that is annotated to be kept stays, which is no failure", [][]apply.Removal{{{ID: id("a"), KeepAnnotated: true, Done: true}, gone("b")}}, nil,
			plans.Outcome{State: plans.Done, Ready: 2, Total: 2}, []string{"b"}, []string{"ConfigMap ns/a is annotated to be kept: task t did not delete it"}, [][]string{{"a", "b"}},
		},
		"Error": {
			"an error, and the others are deleted", [][]apply.Removal{{{ID: id("a"), Err: errors.New("timeout")}, gone("b")}}, nil,
			plans.Outcome{State: plans.Transient, Message: "timeout", Ready: 1, Total: 2}, []string{"b"}, nil, [][]string{{"a", "b"}},
		},
		"Fatal": {
			"a fatal error comes before one that is not",
			[][]apply.Removal{{{ID: id("a"), Err: errors.New("timeout")}, {ID: id("b"), Err: &apply.FatalError{Err: errors.New("refused")}}}}, nil,
			plans.Outcome{State: plans.Fatal, Message: "refused", Total: 2}, nil, nil, [][]string{{"a", "b"}},
		},
		"Last": {
			"what is deleted last, after the others", [][]apply.Removal{{gone("a"), gone("b")}, {gone("z")}}, []*unstructured.Unstructured{named("z")},
			plans.Outcome{State: plans.Done, Ready: 1, Total: 1}, []string{"a", "b", "z"}, nil, [][]string{{"a", "b"}, {"z"}},
		},
		"NotYet": {
			"which stays while another exists", [][]apply.Removal{{gone("a"), {ID: id("b"), Waiting: "b has finalizers"}}}, []*unstructured.Unstructured{named("z")},
			plans.Outcome{State: plans.Waiting, Message: "b has finalizers", Ready: 1, Total: 2}, []string{"a"}, nil, [][]string{{"a", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{removals: tc.removals}
			w := &PreparedTask{Name: "t", run: run(nil), writer: s, objects: []*unstructured.Unstructured{named("a"), named("b")}, deletes: true, deleteLast: tc.last}
			got, effects := (&Runner{}).Do(t.Context(), w.run, w)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var deleted, events []string
			for _, id := range effects.Deleted {
				deleted = append(deleted, id.Name)
			}
			for _, e := range effects.Events {
				events = append(events, e[1])
			}
			if diff := cmp.Diff([][]string{tc.deleted, tc.events}, [][]string{deleted, events}); diff != "" {
				t.Errorf("%s: deleted and events (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.removed, s.removed); diff != "" {
				t.Errorf("%s: asked to delete (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPack has objects that the interpreter changes, and those of a suspended Instance.
func TestPack(t *testing.T) {
	packed, none := named("packed"), named("none")
	packed.SetLabels(map[string]string{"packed": "yes"})
	for name, tc := range map[string]struct {
		reason  string
		suspend bool
		all     interpreter
		labels  map[string]string
		stopped bool
		err     string
	}{
		"Unknown":   {"no layer answers", true, interpreter{}, nil, false, ""},
		"Packed":    {"the object of the answer", false, interpreter{explore.Packing: {"a": explore.Answer{Object: packed}}}, packed.GetLabels(), false, ""},
		"Suspended": {"the object without replicas is marked", true, interpreter{explore.ReplicaRevising: {"a": explore.Answer{Object: none}}}, nil, true, ""},
		"Running":   {"an Instance that is not suspended keeps its replicas", false, interpreter{explore.ReplicaRevising: {"a": explore.Answer{Object: none}}}, nil, false, ""},
		"Both": {
			"the packed object is asked for its replicas", true,
			interpreter{explore.Packing: {"a": explore.Answer{Object: packed}}, explore.ReplicaRevising: {"packed": explore.Answer{Object: packed.DeepCopy()}}}, packed.GetLabels(), true, "",
		},
		"Error":   {"an answer that cannot be had", false, interpreter{explore.Packing: {"a": errors.New("no")}}, nil, false, "no"},
		"Revised": {"and one about replicas", true, interpreter{explore.ReplicaRevising: {"a": errors.New("no")}}, nil, false, "no"},
	} {
		u, objs := run(nil), []*unstructured.Unstructured{named("a")}
		u.Suspend = tc.suspend
		err := (&Runner{all: tc.all}).pack(t.Context(), u, objs)
		if text := fmt.Sprint(err); text != tc.err && (err != nil || tc.err != "") {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
		if diff := cmp.Diff(tc.labels, objs[0].GetLabels()); diff != "" || Suspended(objs[0]) != tc.stopped {
			t.Errorf("%s: %s: suspended %v, labels (-want +got):\n%s", name, tc.reason, Suspended(objs[0]), diff)
		}
	}
}

// TestReflect distinguishes an object without status from one whose status is not known.
func TestReflect(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		answer any
		want   any
		err    bool
	}{
		"None":   {"no layer answers", nil, nil, false},
		"Empty":  {"the object has no status", explore.Answer{}, nil, false},
		"Status": {"what the layer takes", explore.Answer{Status: map[string]any{"a": "x"}}, map[string]any{"a": "x"}, false},
		"Error":  {"an answer that cannot be had is not an empty one", errors.New("no"), nil, true},
	} {
		r := &Runner{external: interpreter{explore.Status: {"a": tc.answer}}}
		got, err := r.Reflect(t.Context(), named("a"))
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.err {
			t.Errorf("%s: %s: %v, -want +got:\n%s", name, tc.reason, err, diff)
		}
	}
}

// TestMarked has objects of an inventory, of which the live object must show that the Instance has written it.
func TestMarked(t *testing.T) {
	kudo := map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "i"}
	for name, tc := range map[string]struct {
		reason, namespace string
		uid               types.UID
		labels            map[string]string
		manager           string
		want              bool
	}{
		"Manager":       {"it is written by the field manager", "ns", "x", nil, "kudo/ns/i", true},
		"Labels":        {"it has the labels", "ns", "x", kudo, "kubectl", true},
		"Neither":       {"the status alone says so", "ns", "x", nil, "kubectl", false},
		"OtherUID":      {"another object has its name", "ns", "y", kudo, "kudo/ns/i", false},
		"OtherInstance": {"the labels of another Instance", "ns", "x", map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "o"}, "kubectl", false},
		"Heritage":      {"the name of the Instance without the heritage", "ns", "x", map[string]string{v1beta1.InstanceLabel: "i"}, "kubectl", false},
		"ClusterScoped": {"labels without a namespace may be those of a namesake", "", "x", kudo, "kubectl", false},
		"ClusterOwn":    {"the field manager has the namespace in its name", "", "x", nil, "kudo/ns/i", true},
	} {
		live := named("a")
		live.SetNamespace(tc.namespace)
		live.SetUID(tc.uid)
		live.SetLabels(tc.labels)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: tc.manager}})
		inventory := map[apply.ID]apply.Record{apply.IDOf(live): {UID: "x"}}
		if got := marked(inventory, "kudo/ns/i", "i")(live); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
	if marked(nil, "kudo/ns/i", "i")(named("a")) {
		t.Error("an object that is not in the inventory is marked")
	}
}

// TestHealthByKind checks that kudo's own rules answer where no layer does.
func TestHealthByKind(t *testing.T) {
	r := &Runner{external: interpreter{explore.Healthy: {"good": explore.Answer{Healthy: true}}}}
	for obj, want := range map[*unstructured.Unstructured]health.State{named("a"): health.Ready, failedJob("bad"): health.Failed, failedJob("good"): health.Ready} {
		if got, err := r.Health(t.Context(), obj); err != nil || got.State != want {
			t.Errorf("%s: %+v, %v", apply.IDOf(obj), got, err)
		}
	}
}

// TestNamespaceTerminating: a run ends if its own namespace is being deleted, and waits for another one, which may be created again.
func TestNamespaceTerminating(t *testing.T) {
	for _, tc := range []struct {
		reason string
		err    error
		want   plans.State
		ends   bool
	}{
		{"it is that of the Instance", &apply.NamespaceTerminatingError{Namespace: "ns", Err: errors.New("x")}, plans.Fatal, true},
		{"it is named by an error around it", fmt.Errorf("a: %w", &apply.NamespaceTerminatingError{Namespace: "ns", Err: errors.New("x")}), plans.Fatal, true},
		{"it is one that an install plan writes to", &apply.NamespaceTerminatingError{Namespace: "shared", Err: errors.New("x")}, plans.Transient, false},
		{"another error is transient", errors.New("x"), plans.Transient, false},
	} {
		w := (&PreparedTask{run: &Run{Subject: Subject{Namespace: "ns"}}}).failed(tc.err)
		if w.outcome.State != tc.want || w.effects.NamespaceTerminating != tc.ends || w.outcome.Message != tc.err.Error() {
			t.Errorf("%s: %v %q, ends %v, want %v, %v", tc.reason, w.outcome.State, w.outcome.Message, w.effects.NamespaceTerminating, tc.want, tc.ends)
		}
	}
}
