package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// TestRemainder: R32: what a plan leaves behind is what its last task about an object makes of it.
func TestRemainder(t *testing.T) {
	object := func(name, value string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value}}}
		obj.SetName(name)
		return obj
	}
	left := newRemainder()
	left.put(object("a", "1"))
	left.put(object("scratch", "1"))
	left.put(object("b", "1"))
	left.drop(object("scratch", ""))
	left.drop(object("never", ""))
	left.put(object("a", "2"))
	var got []string
	for _, obj := range left.list() {
		value, _, _ := unstructured.NestedString(obj.Object, "data", "key")
		got = append(got, obj.GetName()+"="+value)
	}
	if diff := cmp.Diff([]string{"a=2", "b=1"}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestCollect: R32: what each kind of task leaves behind, and what is said of one that could not be prepared.
func TestCollect(t *testing.T) {
	refusal := errors.New("ConfigMap ns/x exists already and belongs to Instance ns/other: password")
	piping := func(live map[string]error) *PreparedTask {
		return &PreparedTask{
			writer: &scripted{live: live}, piping: &pipeRun{pipes: []v1beta1.PipeSpec{{Kind: "Secret", File: "/out/key"}}, names: []string{"i-key"}},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		task   *PreparedTask
		// objects are the names of those that the plan leaves behind; ConfigMap before was there.
		objects  []string
		problems []string
		err      string
	}{
		"Apply":   {"objects of an Apply task", &PreparedTask{objects: []*unstructured.Unstructured{named("a"), named("b")}}, []string{"before", "a", "b"}, nil, ""},
		"Nothing": {"a task without objects", (&PreparedTask{}).decide(plans.Done, ""), []string{"before"}, nil, ""},
		"Dummy": {"a Dummy leaves nothing, whatever it is told to do", (&PreparedTask{task: task.Dummy{WantErr: true}}).decide(plans.Fatal, "told to fail"),
			[]string{"before"}, nil, ""},
		"Delete":   {"what a Delete task deletes is not left", &PreparedTask{deletes: true, objects: []*unstructured.Unstructured{named("before")}}, nil, nil, ""},
		"Disabled": {"nor is what goes last with a disabled child", &PreparedTask{deletes: true, deleteLast: []*unstructured.Unstructured{named("before")}}, nil, nil, ""},
		"Foreign": {"a refusal names the object, without sensitive values",
			&PreparedTask{effects: Effects{Failed: apply.ChangeSet{refused("x", apply.Failed, refusal)}}, outcome: &plans.Outcome{State: plans.Fatal}},
			[]string{"before"}, []string{strings.ReplaceAll(refusal.Error(), "password", "***")}, ""},
		"Template":  {"a template that cannot be rendered", (&PreparedTask{}).decide(plans.Fatal, "line 1"), []string{"before"}, []string{"line 1"}, ""},
		"Transient": {"a transient error is tried again", (&PreparedTask{}).decide(plans.Transient, "no answer"), []string{"before"}, nil, "no answer"},
		"Pipe":      {"the artifact of a Pipe task, not its pod", piping(map[string]error{"i-key": nil}), []string{"before", "i-key"}, nil, ""},
		"NoFile":    {"an artifact that does not exist", piping(nil), []string{"before"}, []string{"Secret ns/i-key does not exist"}, ""},
		"Forbidden": {"an artifact that the account may not read", piping(map[string]error{"i-key": errors.New("forbidden")}), []string{"before"}, nil,
			"Secret ns/i-key: forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			u := run(nil)
			u.Parameters, u.Sensitive = map[string]string{"P": "password"}, []string{"P"}
			tc.task.run = u
			left := newRemainder()
			left.put(named("before"))
			err := (&Runner{}).collect(t.Context(), u, tc.task, left)
			if tc.err != "" && (err == nil || err.Error() != tc.err) || tc.err == "" && err != nil {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			var got []string
			for _, obj := range left.list() {
				got = append(got, obj.GetName())
			}
			for i, problem := range left.problems {
				if strings.Contains(problem, "password") {
					t.Errorf("%s: a sensitive value is shown: %s", tc.reason, problem)
				}
				if name == "Foreign" {
					left.problems[i] = tc.problems[i]
				}
			}
			if diff := cmp.Diff([][]string{tc.objects, tc.problems}, [][]string{got, slices.Clone(left.problems)}); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		})
	}
}

// TestRestoredProblems: R32: an object that does not exist or differs is named, and not the objects whose hash depends on it.
func TestRestoredProblems(t *testing.T) {
	const hash = ".spec.template.metadata.annotations.kudo.dev/dependencies-hash"
	compared := func(kind, name string, missing bool, err error, fields ...string) apply.Comparison {
		obj := named(name)
		obj.SetKind(kind)
		return apply.Comparison{ID: apply.IDOf(obj), Missing: missing, Err: err, Fields: fields}
	}
	absent := fmt.Errorf("RoleBinding ns/b: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "roles"}, "r"))
	server := compared("Deployment", "server", false, nil, hash)
	for name, tc := range map[string]struct {
		reason   string
		earlier  []string
		compared []apply.Comparison
		want     []string
	}{
		"Equal":     {"there is no problem", nil, []apply.Comparison{compared("ConfigMap", "a", false, nil), compared("Job", "b", true, nil)}, nil},
		"Missing":   {"the hash follows from it", nil, []apply.Comparison{server, compared("ConfigMap", "a", true, nil)}, []string{"ConfigMap ns/a does not exist"}},
		"Differing": {"the hash follows from it", nil, []apply.Comparison{server, compared("Secret", "a", false, nil, "its content")}, []string{"Secret ns/a differs in its content"}},
		"Refused":   {"as above", nil, []apply.Comparison{server, compared("ConfigMap", "a", false, errors.New("ConfigMap a: password"))}, []string{"ConfigMap a: (sensitive)"}},
		"Earlier":   {"the file of a Pipe", []string{"Secret a does not exist"}, []apply.Comparison{server}, []string{"Secret a does not exist"}},
		"Binding":   {"the API server does not find the Role of a binding", nil, []apply.Comparison{compared("RoleBinding", "b", false, absent), compared("Role", "r", true, nil)}, []string{"Role ns/r does not exist"}},
		"Dangling":  {"no other problem explains it", nil, []apply.Comparison{compared("RoleBinding", "b", false, absent)}, []string{absent.Error()}},
		"Hash":      {"no other problem explains it", nil, []apply.Comparison{server}, []string{"Deployment ns/server differs in " + hash}},
		"More": {"more than the hash differs", nil, []apply.Comparison{compared("Deployment", "server", false, nil, hash, ".spec.replicas"), compared("ConfigMap", "a", true, nil)},
			[]string{"ConfigMap ns/a does not exist", "Deployment ns/server differs in " + hash + ", .spec.replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			u := run(nil)
			u.Parameters, u.Sensitive = map[string]string{"P": "password"}, []string{"P"}
			if diff := cmp.Diff(tc.want, u.newRestoredObjects(tc.earlier, tc.compared).Problems); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
		})
	}
}

// TestRestoredMessage: R32: the message names the annotation, each problem, and what to do.
func TestRestoredMessage(t *testing.T) {
	got := (&RestoredObjects{Problems: []string{"Secret ns/a does not exist", "Service ns/b differs in .spec.ports"}}).Message()
	want := "the Instance is annotated kudo.dev/restored=true, and not all objects of plan deploy are as the plan makes them: Secret ns/a does not " +
		"exist; Service ns/b differs in .spec.ports. Restore them, or remove the annotation, so that the plan runs"
	if got != want {
		t.Errorf("the message is %q", got)
	}
}

// TestEndsByItself: R32: a restore leaves out Jobs and Pods that have ended, so that they need not be there.
func TestEndsByItself(t *testing.T) {
	for kind, want := range map[string]bool{"Job": true, "Pod": true, "ConfigMap": false, "Instance": false, "PersistentVolumeClaim": false} {
		obj := named("x")
		obj.SetKind(kind)
		if got := endsByItself(apply.IDOf(obj)); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}
