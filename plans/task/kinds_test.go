package task

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestKinds checks that each kind of task has a value that says its kind, and that kinds are written exactly.
func TestKinds(t *testing.T) {
	full := spec{Resources: []string{"a"}, Parameter: "P", Pod: "p", Pipe: []v1beta1.PipeSpec{{File: "/x", Kind: "Secret", Key: "k"}},
		Package: "q"}
	for _, kind := range []string{"Apply", "Delete", "Toggle", "Dummy", "Pipe", "KudoOperator"} {
		got, err := New(v1beta1.Task{Name: "t", Kind: kind, Spec: full})
		if err != nil || got.Kind() != kind {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
		for _, other := range []string{strings.ToLower(kind), strings.ToUpper(kind), kind + " ", " " + kind, kind + "s", kind[1:]} {
			want := `task "t": kind "` + other + `" is unknown: use Apply, Delete, Toggle, Dummy, Pipe or KudoOperator`
			if got, err := New(v1beta1.Task{Name: "t", Kind: other, Spec: full}); got != nil || err == nil || err.Error() != want {
				t.Errorf("%q: %v, %v, want %s", other, got, err, want)
			}
		}
	}
}

// TestErrorsName checks that an error quotes the name of the task, whatever it holds, and that no value comes with it.
func TestErrorsName(t *testing.T) {
	for name, want := range map[string]string{
		"":          `task "" of kind Apply: spec.resources: is empty: name at least one template to apply`,
		"a b":       `task "a b" of kind Apply: spec.resources: is empty: name at least one template to apply`,
		"a\"\n\x1b": `task "a\"\n\x1b" of kind Apply: spec.resources: is empty: name at least one template to apply`,
	} {
		got, err := New(v1beta1.Task{Name: name, Kind: v1beta1.ApplyTask})
		if got != nil || err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v, want %s", name, got, err, want)
		}
		if errors.Unwrap(err) != nil {
			t.Errorf("%q: the error has a cause", name)
		}
	}
}

// TestFirstMistake checks that the error of a task with several mistakes always names the same one.
func TestFirstMistake(t *testing.T) {
	pipes := func(p ...v1beta1.PipeSpec) spec { return spec{Pod: "p", Pipe: p} }
	good := v1beta1.PipeSpec{EnvFile: "/x", Kind: "ConfigMap", Key: "k"}
	for name, tc := range map[string]struct {
		reason, kind string
		spec         spec
		want         string // the field
	}{
		"Toggle":   {"resources before the parameter", v1beta1.ToggleTask, spec{}, "spec.resources"},
		"Pipe":     {"the pod before the pipes", v1beta1.PipeTask, spec{}, "spec.pod"},
		"PipeSpec": {"the file before kind and key", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{}), "spec.pipe[0]"},
		"PipeKind": {"the kind before the key", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/x"}), "spec.pipe[0].kind"},
		"PipeOrder": {"the first pipe before the second", v1beta1.PipeTask, pipes(good, v1beta1.PipeSpec{File: "/x", Kind: "Secret"},
			v1beta1.PipeSpec{}), "spec.pipe[1].key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(v1beta1.Task{Name: "t", Kind: tc.kind, Spec: tc.spec})
			if err == nil || !strings.HasPrefix(err.Error(), `task "t" of kind `+tc.kind+": "+tc.want+": ") {
				t.Errorf("%s: error %v does not name %s", tc.reason, err, tc.want)
			}
		})
	}
}

// TestPipeKeys checks the characters of a key one by one: it becomes a part of the name of an object.
func TestPipeKeys(t *testing.T) {
	for c := rune(0); c < 0x180; c++ {
		want := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		for _, key := range []string{string(c), "a" + string(c), string(c) + "a", "a" + string(c) + "a"} {
			_, err := New(v1beta1.Task{Name: "t", Kind: v1beta1.PipeTask, Spec: spec{Pod: "p", Pipe: []v1beta1.PipeSpec{{File: "/x",
				Kind: "Secret", Key: key}}}})
			if (err == nil) != want {
				t.Errorf("key %q: error %v", key, err)
			}
		}
	}
}

// TestEmptyNames checks that names of templates are not looked at here: the renderer knows which of them exist.
func TestEmptyNames(t *testing.T) {
	got, err := New(v1beta1.Task{Name: "t", Kind: v1beta1.DeleteTask, Spec: spec{Resources: []string{""}}})
	if diff := cmp.Diff(Task(Delete{[]string{""}}), got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
