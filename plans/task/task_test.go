package task

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

type spec = v1beta1.TaskSpec

// TestNew is the validation column of docs/packages.md.
func TestNew(t *testing.T) {
	one := []string{"a.yaml", "b.yaml", "a.yaml"}
	digest := "sha256:" + strings.Repeat("a", 64)
	pipes := func(p ...v1beta1.PipeSpec) spec { return spec{Pod: "pod.yaml", Pipe: p} }
	file := v1beta1.PipeSpec{File: "/tmp/x", Kind: "Secret", Key: "a-Z_9"}
	env := v1beta1.PipeSpec{EnvFile: "/tmp/x", Kind: "ConfigMap", Key: "k"}
	for name, tc := range map[string]struct {
		reason string
		kind   string
		spec   spec
		want   Task
		err    string
	}{
		"Apply":           {"resources in their order", v1beta1.ApplyTask, spec{Resources: one}, Apply{one}, ""},
		"ApplyOthers":     {"the fields of other kinds are ignored, since spec is flat", v1beta1.ApplyTask, spec{Resources: one, Parameter: "P", Pod: "x", Fatal: true}, Apply{one}, ""},
		"ApplyEmpty":      {"needs resources", v1beta1.ApplyTask, spec{}, nil, `task "t" of kind Apply: spec.resources: is empty: name at least one template to apply`},
		"Delete":          {"resources in their order", v1beta1.DeleteTask, spec{Resources: one}, Delete{one}, ""},
		"DeleteEmpty":     {"needs resources", v1beta1.DeleteTask, spec{Resources: []string{}}, nil, `task "t" of kind Delete: spec.resources: is empty: name at least one template whose objects are deleted`},
		"Toggle":          {"resources and parameter", v1beta1.ToggleTask, spec{Resources: one, Parameter: "P"}, Toggle{one, "P"}, ""},
		"ToggleEmpty":     {"needs resources", v1beta1.ToggleTask, spec{Parameter: "P"}, nil, `task "t" of kind Toggle: spec.resources: is empty: name at least one template to toggle`},
		"ToggleBare":      {"needs a parameter", v1beta1.ToggleTask, spec{Resources: one}, nil, `task "t" of kind Toggle: spec.parameter: is empty: name the boolean parameter that decides`},
		"Dummy":           {"needs nothing", v1beta1.DummyTask, spec{}, Dummy{}, ""},
		"DummyAll":        {"rule 10: ends as its fields say", v1beta1.DummyTask, spec{WantErr: true, Fatal: true, Done: true}, Dummy{true, true, true}, ""},
		"Pipe":            {"files and env files", v1beta1.PipeTask, pipes(file, env), Pipe{"pod.yaml", []v1beta1.PipeSpec{file, env}, false}, ""},
		"PipeOnce":        {"G2: objects that are made once, with a name of the package", v1beta1.PipeTask, spec{Pod: "pod.yaml", Once: true, Pipe: []v1beta1.PipeSpec{{File: "/a", Kind: "Secret", Key: "k", NameSuffix: "tls-1"}}}, Pipe{"pod.yaml", []v1beta1.PipeSpec{{File: "/a", Kind: "Secret", Key: "k", NameSuffix: "tls-1"}}, true}, ""},
		"PipeSuffix":      {"a suffix that ends a name", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/a", Kind: "Secret", Key: "k", NameSuffix: "-{{ x }}"}), nil, `task "t" of kind Pipe: spec.pipe[0].nameSuffix: must be of lower-case letters, digits and -, at most 63, and begin and end with a letter or digit`},
		"PipeNoPod":       {"needs a pod", v1beta1.PipeTask, spec{Pipe: []v1beta1.PipeSpec{file}}, nil, `task "t" of kind Pipe: spec.pod: is empty: name the template of the pod`},
		"PipeEmpty":       {"needs pipes", v1beta1.PipeTask, pipes(), nil, `task "t" of kind Pipe: spec.pipe: is empty: list at least one file`},
		"PipeBoth":        {"file xor envFile", v1beta1.PipeTask, pipes(file, v1beta1.PipeSpec{File: "/a", EnvFile: "/b", Kind: "Secret", Key: "k"}), nil, `task "t" of kind Pipe: spec.pipe[1]: set one of file and envFile`},
		"PipeNeither":     {"file xor envFile", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{Kind: "Secret", Key: "k"}), nil, `task "t" of kind Pipe: spec.pipe[0]: set one of file and envFile`},
		"PipeKind":        {"Secret or ConfigMap", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/a", Kind: "secret", Key: "k"}), nil, `task "t" of kind Pipe: spec.pipe[0].kind: must be Secret or ConfigMap`},
		"PipeKey":         {"letters, digits, _ and -", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/a", Kind: "Secret", Key: "a.b"}), nil, `task "t" of kind Pipe: spec.pipe[0].key: must be of letters, digits, _ and -`},
		"PipeNoKey":       {"a key", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/a", Kind: "Secret"}), nil, `task "t" of kind Pipe: spec.pipe[0].key: must be of letters, digits, _ and -`},
		"PipeKeyLines":    {"the whole key", v1beta1.PipeTask, pipes(v1beta1.PipeSpec{File: "/a", Kind: "Secret", Key: "a\nb"}), nil, `task "t" of kind Pipe: spec.pipe[0].key: must be of letters, digits, _ and -`},
		"Operator":        {"package alone: versions are filled in at installation", v1beta1.KudoOperatorTask, spec{Package: "zookeeper"}, KudoOperator{Package: "zookeeper"}, ""},
		"OperatorAll":     {"all its fields", v1beta1.KudoOperatorTask, spec{Package: "p", AppVersion: "1", OperatorVersion: "2", InstanceName: "i", ParameterFile: "f", EnablingParameter: "e", Content: digest}, KudoOperator{"p", "1", "2", "i", "f", "e", digest, false}, ""},
		"OperatorShared":  {"an Instance that others use", v1beta1.KudoOperatorTask, spec{Package: "p", OperatorVersion: "^1", InstanceName: "i", EnablingParameter: "e", Shared: true}, KudoOperator{Package: "p", OperatorVersion: "^1", InstanceName: "i", EnablingParameter: "e", Shared: true}, ""},
		"OperatorContent": {"a content is a digest", v1beta1.KudoOperatorTask, spec{Package: "p", Content: "latest"}, nil, `task "t" of kind KudoOperator: spec.content: must be a content digest, sha256:<hex>: kubectl kudo package lock finds it`},
		"SharedPath":      {"a shared Instance is installed by itself", v1beta1.KudoOperatorTask, spec{Package: "../p", InstanceName: "i", Shared: true}, nil, `task "t" of kind KudoOperator: spec.package: must be the name of an operator, since a shared Instance is installed by itself`},
		"SharedNameless":  {"a shared Instance has a name", v1beta1.KudoOperatorTask, spec{Package: "p", Shared: true}, nil, `task "t" of kind KudoOperator: spec.instanceName: must be the name of the Instance that is shared`},
		"SharedFile":      {"its parameters are its own", v1beta1.KudoOperatorTask, spec{Package: "p", InstanceName: "i", ParameterFile: "f", Shared: true}, nil, `task "t" of kind KudoOperator: spec.parameterFile: cannot be used with shared: the Instance has parameters of its own`},
		"SharedContent":   {"its content may change", v1beta1.KudoOperatorTask, spec{Package: "p", InstanceName: "i", Content: digest, Shared: true}, nil, `task "t" of kind KudoOperator: spec.content: cannot be used with shared: the Instance is upgraded by itself`},
		"SharedOperator":  {"a shared Instance is of an operator", v1beta1.KudoOperatorTask, spec{InstanceName: "i", Shared: true}, nil, `task "t" of kind KudoOperator: spec.package: is empty: name the operator to install`},
		"SharedSpace":     {"an Instance of the namespace", v1beta1.KudoOperatorTask, spec{Package: "p", InstanceName: "a/i", Shared: true}, nil, `task "t" of kind KudoOperator: spec.instanceName: must be the name of the Instance that is shared`},
		"SharedApp":       {"of the application, too", v1beta1.KudoOperatorTask, spec{Package: "p", InstanceName: "i", AppVersion: "<<1", Shared: true}, nil, `task "t" of kind KudoOperator: spec.appVersion: must be a version or a range such as ^1.2 or ">=1.0, <3"`},
		"SharedURL":       {"no URL", v1beta1.KudoOperatorTask, spec{Package: "oci://r.example/p", InstanceName: "i", Shared: true}, nil, `task "t" of kind KudoOperator: spec.package: must be the name of an operator, since a shared Instance is installed by itself`},
		"SharedUnset":     {"ranges are for shared Instances only", v1beta1.KudoOperatorTask, spec{Package: "p", OperatorVersion: "^x^"}, KudoOperator{Package: "p", OperatorVersion: "^x^"}, ""},
		"SharedRange":     {"a range that can be read", v1beta1.KudoOperatorTask, spec{Package: "p", InstanceName: "i", OperatorVersion: "^x^", Shared: true}, nil, `task "t" of kind KudoOperator: spec.operatorVersion: must be a version or a range such as ^1.2 or ">=1.0, <3"`},
		"OperatorNone":    {"needs a package", v1beta1.KudoOperatorTask, spec{InstanceName: "i"}, nil, `task "t" of kind KudoOperator: spec.package: is empty: name the operator to install`},
		"Unknown":         {"kinds are those", "apply", spec{Resources: one}, nil, `task "t": kind "apply" is unknown: use Apply, Delete, Toggle, Dummy, Pipe or KudoOperator`},
		"WithoutAnyKind":  {"a kind is needed", "", spec{}, nil, `task "t": kind "" is unknown: use Apply, Delete, Toggle, Dummy, Pipe or KudoOperator`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := New(v1beta1.Task{Name: "t", Kind: tc.kind, Spec: tc.spec})
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.err {
				t.Errorf("%s: error %q, want %q", tc.reason, message, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got != nil && got.Kind() != tc.kind {
				t.Errorf("%s: a %s says that it is a %s", tc.reason, tc.kind, got.Kind())
			}
		})
	}
}

// TestNameSuffix is G2: a suffix ends the name of an object, after the name of the Instance and a dash.
func TestNameSuffix(t *testing.T) {
	for _, tc := range []struct {
		reason string
		suffix string
		valid  bool
	}{
		{"none: the name is made of the plan's", "", true},
		{"a word", "tls", true},
		{"digits and dashes", "tls-1-a", true},
		{"upper-case letters", "TLS", false},
		{"a dot, which KUDO's names have", "a.b", false},
		{"a dash at the end", "tls-", false},
		{"a path", "../tls", false},
		{"a template", "{{ .Params.X }}", false},
		{"two lines", "a\nb", false},
		{"64 characters", strings.Repeat("a", 64), false},
		{"63 characters", strings.Repeat("a", 63), true},
	} {
		pipe := v1beta1.PipeSpec{
			File: "/out/a", Kind: "Secret", Key: "k", NameSuffix: tc.suffix,
		}
		_, err := New(v1beta1.Task{
			Name: "t", Kind: v1beta1.PipeTask, Spec: spec{Pod: "pod.yaml", Pipe: []v1beta1.PipeSpec{pipe}},
		})
		if (err == nil) != tc.valid {
			t.Errorf("%s: %q: %v", tc.reason, tc.suffix, err)
		}
	}
}
