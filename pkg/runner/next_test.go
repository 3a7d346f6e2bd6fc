package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/plans"
)

// nextRecorder keeps, of each intent, the names of the objects of later steps, and whether the steps before must not be done again.
type nextRecorder struct {
	*bench
	next []string
	done []bool
}

func (r *nextRecorder) RecordIntent(_ context.Context, _ v1beta1.PlanStatus, intent Intent) error {
	var names []string
	for _, id := range intent.Next() {
		names = append(names, id.Kind+" "+id.Namespace+"/"+id.Name)
	}
	r.next, r.done = append(r.next, strings.Join(names, ", ")), append(r.done, intent.Done)
	return nil
}

// recordNext executes a plan that has a serial step for each task.
func recordNext(t *testing.T, templates map[string]string, tasks []v1beta1.Task) (*nextRecorder, v1beta1.PlanStatus) {
	t.Helper()
	b := newBench(t, explore.Chain{})
	u, _ := b.install(t)
	u.Version = version(t, templates, tasks...)
	plan := u.Version.Spec.Plans["deploy"]
	plan.Phases[0].Strategy = v1beta1.Serial
	st := plans.Start("deploy", plan, u.UID, 1, b.clock.Now())
	hooks := &nextRecorder{bench: b}
	if _, err := b.Execute(t.Context(), u, b.inventory, &st, b.clock, hooks); err != nil {
		t.Fatal(err)
	}
	return hooks, st
}

// TestNextObjects: before a step, the objects of the steps behind it are named that can be.
func TestNextObjects(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"
	many := "{{ range until 257 }}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"b-{{ . }}\"}\n{{ end }}"
	apply := func(name string) v1beta1.Task {
		return v1beta1.Task{Name: name, Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{name}}}
	}
	for _, tc := range []struct {
		reason    string
		templates map[string]string
		tasks     []v1beta1.Task
		next      []string
		done      []bool
	}{
		{"objects of the namespace, and of none", map[string]string{"a": configMap("a", ""), "b": configMap("b", ""), "c": role, "d": configMap("d", "")},
			[]v1beta1.Task{apply("a"), apply("b"), apply("c"), apply("d")},
			[]string{"ConfigMap ns/b, ClusterRole /r, ConfigMap ns/d", "ClusterRole /r, ConfigMap ns/d", "ConfigMap ns/d", ""},
			[]bool{false, false, false, true}}, // the uid of the ClusterRole is not to be lost
		{"a task of another kind comes before", map[string]string{"a": configMap("a", ""), "b": configMap("b", "")},
			[]v1beta1.Task{apply("a"), {Name: "wait", Kind: v1beta1.DummyTask, Spec: v1beta1.TaskSpec{Done: true}}, apply("b")},
			[]string{"", "ConfigMap ns/b", ""}, []bool{false, false, false}},
		{"templates that cannot be rendered", map[string]string{"a": configMap("a", ""), "b": `{{ fail "not yet" }}`, "c": configMap("c", "")},
			[]v1beta1.Task{apply("a"), apply("b"), apply("c")}, []string{"", "ConfigMap ns/c"}, []bool{false, false}},
		{"a kind that is not served", map[string]string{"a": configMap("a", ""), "b": "apiVersion: x.example.org/v1\nkind: X\nmetadata: {name: x}\n"},
			[]v1beta1.Task{apply("a"), apply("b")}, []string{"", ""}, []bool{false, false}},
		{"more objects than are named", map[string]string{"a": configMap("a", ""), "b": many}, []v1beta1.Task{apply("a"), apply("b")},
			[]string{"", ""}, []bool{false, false}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hooks, _ := recordNext(t, tc.templates, tc.tasks)
			if !slices.Equal(hooks.next, tc.next) || !slices.Equal(hooks.done, tc.done) {
				t.Errorf("before the steps, %q are named, and the steps before must not be done again: %v", hooks.next, hooks.done)
			}
		})
	}
}

// TestNextWork: renderings that only find names have a budget. When it is spent, no later step is named.
func TestNextWork(t *testing.T) {
	templates, tasks := map[string]string{}, []v1beta1.Task(nil)
	loop := strings.Repeat("{{ range until 100000 }}{{ $x := . }}{{ end }}", 2)
	for n := range 40 {
		name := fmt.Sprintf("t%d", n)
		templates[name] = loop + configMap(name, "")
		tasks = append(tasks, v1beta1.Task{Name: name, Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{name}}})
	}
	hooks, st := recordNext(t, templates, tasks)
	if named := len(strings.Split(hooks.next[0], ", ")); named < 2 || named > 35 || strings.Join(hooks.next[1:], "") != "" {
		t.Errorf("%d objects are named, and then %q", named, hooks.next[1:])
	}
	if st.Status != v1beta1.Complete {
		t.Errorf("the plan is %s: %s", st.Status, st.Message)
	}
}
