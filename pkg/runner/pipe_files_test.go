package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/podexec"
)

// TestPipeMount has the pods of Pipe tasks, and what is refused.
func TestPipeMount(t *testing.T) {
	const volumes = "volumes: [{name: v, emptyDir: {}}]"
	for name, tc := range map[string]struct{ reason, spec, mount, err string }{
		"Whole": {
			"the mount of the emptyDir",
			"{initContainers: [{volumeMounts: [{name: x, mountPath: /x}, {name: v, mountPath: /out}]}], " + volumes + "}",
			"/out",
			"",
		},
		"Policy": {
			"OnFailure may be written",
			"{restartPolicy: OnFailure, initContainers: [{volumeMounts: [{name: v, mountPath: /out}]}], " + volumes + "}",
			"/out",
			"",
		},
		"Others": {
			"other volumes do not matter",
			"{initContainers: [{volumeMounts: [{name: v, mountPath: /out}]}], volumes: [{name: a, configMap: {}}, {name: v, emptyDir: {}}]}",
			"/out",
			"",
		},
		"Containers": {
			"no containers",
			"{containers: [{}], initContainers: [{}]}",
			"",
			"spec.containers must be empty: the files are made by the initContainer",
		},
		"NoInit": {"an initContainer", "{}", "", "spec.initContainers must hold one container, and holds 0"},
		"Inits":  {"only one", "{initContainers: [{}, {}]}", "", "spec.initContainers must hold one container, and holds 2"},
		"Restart": {
			"no other policy",
			"{restartPolicy: Never, initContainers: [{}]}",
			"",
			"spec.restartPolicy is Never: leave it out, or set OnFailure",
		},
		"NoVolume": {
			"an emptyDir",
			"{initContainers: [{}], volumes: [{name: v, configMap: {}}]}",
			"",
			"spec.volumes must hold an emptyDir for the files",
		},
		"Volumes": {
			"only one",
			"{initContainers: [{}], volumes: [{name: v, emptyDir: {}}, {name: w, emptyDir: {}}]}",
			"",
			"spec.volumes must hold one emptyDir, and holds several",
		},
		"NoName": {
			"with a name",
			"{initContainers: [{}], volumes: [{emptyDir: {}}]}",
			"",
			"spec.volumes must hold an emptyDir for the files",
		},
		"NoMount": {
			"that is mounted",
			"{initContainers: [{volumeMounts: [{name: w, mountPath: /out}]}], " + volumes + "}",
			"",
			"spec.initContainers[0].volumeMounts must mount volume v",
		},
		"Malformed": {
			"values of other types",
			"{initContainers: [x], volumes: [y, {name: v, emptyDir: {}}]}",
			"",
			"spec.initContainers[0].volumeMounts must mount volume v",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &unstructured.Unstructured{Object: map[string]any{}}
			var spec map[string]any
			if err := yaml.Unmarshal([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			pod.Object["spec"] = spec
			mount, err := pipeMount(pod)
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if got, _ := mount["mountPath"].(string); got != tc.mount {
				t.Errorf("%s: mounted at %q, want %q", tc.reason, got, tc.mount)
			}
		})
	}
}

// TestPipeFiles has paths of files, also those that lead out of the volume.
func TestPipeFiles(t *testing.T) {
	for name, tc := range map[string]struct{ reason, root, file, err string }{
		"Below":  {"a file in the volume", "/out", "/out/a.txt", ""},
		"Deep":   {"in a folder of it", "/out/", "/out/b/a-1_x", ""},
		"Root":   {"a volume that is the root", "/", "/a", ""},
		"Detour": {"a path that comes back", "/out", "/out/b/../a", ""},
		"Out": {
			"one that leads out",
			"/out",
			"/out/../etc/passwd",
			"pipe[1]: file /out/../etc/passwd is not below the volume's mountPath /out",
		},
		"Prefix":   {"a folder whose name begins alike", "/out", "/output/a", "pipe[1]: file /output/a is not below the volume's mountPath /out"},
		"Itself":   {"the volume itself", "/out", "/out", "pipe[1]: file /out is not below the volume's mountPath /out"},
		"Relative": {"a relative path", "/out", "out/a", "pipe[1]: file out/a is not below the volume's mountPath /out"},
		"Empty":    {"no path", "/out", "", "pipe[1]: file  is not below the volume's mountPath /out"},
		"Space": {
			"a name that is no key of a Secret",
			"/out",
			"/out/a b",
			"pipe[1]: file name a b must be of letters, digits, dot, dash and underscore",
		},
		"Newline": {"a name of two lines", "/out", "/out/a\nb", "pipe[1]: file name a\nb must be of letters, digits, dot, dash and underscore"},
	} {
		t.Run(name, func(t *testing.T) {
			pipes := []v1beta1.PipeSpec{{EnvFile: strings.TrimSuffix(tc.root, "/") + "/first"}, {File: tc.file}}
			if got := fmt.Sprint(pipeFiles(pipes, map[string]any{"mountPath": tc.root})); got != tc.err && (tc.err != "" || got != "<nil>") {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         map[string]string
		err          string
	}{
		"Lines":    {"lines, comments and empty lines", "A=1\n\n # x\n  B_b.c-d=2=3 \n", map[string]string{"A": "1", "B_b.c-d": "2=3"}, ""},
		"Returns":  {"lines that end with a return", "A=1\r\nB=\r\n", map[string]string{"A": "1", "B": ""}, ""},
		"Quotes":   {"quotes belong to the value", `A="x"`, map[string]string{"A": `"x"`}, ""},
		"Twice":    {"the last value of a key counts", "A=1\nA=2", map[string]string{"A": "2"}, ""},
		"Empty":    {"nothing", "", map[string]string{}, ""},
		"NoSign":   {"a line without a sign", "A=1\nexport", nil, "line 2 is not KEY=VALUE"},
		"Export":   {"a line of a shell", "export A=1", nil, "line 1 is not KEY=VALUE"},
		"NoKey":    {"a line without a key", "# x\n=1", nil, "line 2 is not KEY=VALUE"},
		"Path":     {"a key that leads out", "..=1", nil, "line 1 is not KEY=VALUE"},
		"Space":    {"a space in front of the sign", "A =1", nil, "line 1 is not KEY=VALUE"},
		"LongLine": {"one line of 1 MiB", "A=" + strings.Repeat("x", maxPipe-2), map[string]string{"A": strings.Repeat("x", maxPipe-2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := environment([]byte(tc.text))
			if err != nil || tc.err != "" {
				if got := fmt.Sprint(err); got != tc.err {
					t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
				}
				return
			}
			got := map[string]string{}
			for key, value := range data {
				got[key] = string(value)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// file is an Executor that has one content, or an error.
type file struct {
	content string
	err     error
}

// Output implements Executor.
func (f file) Output(_ context.Context, _ string, _ podexec.Container, command []string, _ int) ([]byte, error) {
	if got := strings.Join(command, " "); f.err == nil && got != "/manager pipe read /out/f" {
		return nil, fmt.Errorf("the command is %s", got)
	}
	return []byte(f.content), f.err
}

// TestArtifacts checks which objects a Pipe task makes of files, and which of its errors are fatal.
func TestArtifacts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		pipe   v1beta1.PipeSpec
		file   file
		want   map[string]any
		err    string
		fatal  bool
	}{
		"Secret": {
			"a file in a Secret",
			v1beta1.PipeSpec{File: "/out/f", Kind: "Secret"},
			file{content: "x"},
			map[string]any{"type": "Opaque", "data": map[string]any{"f": "eA=="}},
			"",
			false,
		},
		"ConfigMap": {
			"a file in a ConfigMap is binary",
			v1beta1.PipeSpec{File: "/out/f", Kind: "ConfigMap"},
			file{content: "\xff"},
			map[string]any{"binaryData": map[string]any{"f": "/w=="}},
			"",
			false,
		},
		"Environment": {
			"variables in a ConfigMap are text",
			v1beta1.PipeSpec{EnvFile: "/out/f", Kind: "ConfigMap"},
			file{content: "A=1"},
			map[string]any{"data": map[string]any{"A": "1"}},
			"",
			false,
		},
		"EnvSecret": {
			"in a Secret",
			v1beta1.PipeSpec{EnvFile: "/out/f", Kind: "Secret"},
			file{content: "A=1"},
			map[string]any{"type": "Opaque", "data": map[string]any{"A": "MQ=="}},
			"",
			false,
		},
		"NoVariables": {
			"a file that holds no variables",
			v1beta1.PipeSpec{EnvFile: "/out/f", Kind: "Secret"},
			file{content: "x"},
			nil,
			"envFile /out/f: line 1 is not KEY=VALUE",
			true,
		},
		"Command": {
			"a command that fails",
			v1beta1.PipeSpec{File: "/out/f"},
			file{err: fmt.Errorf("exec: %w", &podexec.CommandError{})},
			nil,
			"file /out/f: exec: " + (&podexec.CommandError{}).Error(),
			true,
		},
		"Large": {
			"a file that is too large",
			v1beta1.PipeSpec{File: "/out/f"},
			file{err: &podexec.TooLargeError{}},
			nil,
			"file /out/f: " + (&podexec.TooLargeError{}).Error(),
			true,
		},
		"Network": {
			"another error is tried again",
			v1beta1.PipeSpec{File: "/out/f"},
			file{err: errors.New("connection refused")},
			nil,
			"read file /out/f: connection refused",
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{exec: tc.file}
			objs, err := r.artifacts(t.Context(), apply.Account{}, &pipeRun{
				pod: &unstructured.Unstructured{Object: map[string]any{}}, pipes: []v1beta1.PipeSpec{tc.pipe}, names: []string{"n"},
			})
			if err != nil || tc.err != "" {
				if got := fmt.Sprint(err); got != tc.err || apply.IsFatal(err) != tc.fatal {
					t.Errorf("%s: error %q (fatal %v), want %q", tc.reason, got, apply.IsFatal(err), tc.err)
				}
				return
			}
			tc.want["apiVersion"], tc.want["kind"], tc.want["metadata"] = "v1", tc.pipe.Kind, map[string]any{"name": "n"}
			if diff := cmp.Diff(tc.want, objs[0].Object); diff != "" || len(objs) != 1 {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
