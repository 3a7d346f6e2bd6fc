package kudoinit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// TestParseValues shows R26: Values are read from YAML, and an error names each wrong field.
func TestParseValues(t *testing.T) {
	for reason, tc := range map[string]struct{ text, want string }{
		"nothing":                  {"", ""},
		"an unknown key":           {"replica: 1", `unknown field "replica"`},
		"a key twice":              {"replicas: 1\nreplicas: 2", `key "replicas" already set`},
		"no object":                {"[1]", "cannot unmarshal array"},
		"a type":                   {"replicas: many", ".replicas of type int32"},
		"no replicas":              {"replicas: 0", "replicas: 0 must be 1 or more"},
		"a pull policy":            {"imagePullPolicy: Sometimes", `imagePullPolicy: "Sometimes" must be Always, Never or IfNotPresent`},
		"two images":               {"image: a@sha256:1\nimageRegistry: b", "imageRegistry: excludes image"},
		"a registry":               {"imageRegistry: https://b", `imageRegistry: "https://b" must be a registry`},
		"a Pipe image by its tag":  {"pipeImage: a:1", "pipeImage: "},
		"an argument without --":   {"extraArgs: [workers]", `extraArgs[0]: "workers" must begin with --`},
		"an argument of init":      {"extraArgs: [--workers=1, --namespace=x]", `extraArgs[1]: "--namespace=x" must begin with -- and the name of a flag, and must not be a flag that init writes itself`},
		"an argument of an option": {"extraArgs: [--metrics-secure=false]", "extraArgs[0]"},
		"a label of the selector":  {"podLabels: {app: x}", "podLabels: app is init's own"},
		"init's annotation":        {"podAnnotations: {kudo.dev/version: x}", "podAnnotations: kudo.dev/version is init's own"},
		"no label":                 {"podLabels: {a b: x}", "podLabels: Invalid value"},
		"several at once":          {"replicas: -1\nimagePullPolicy: x", `imagePullPolicy: "x" must be Always, Never or IfNotPresent` + "\nreplicas: -1 must be 1 or more"},
	} {
		_, err := ParseValues([]byte(tc.text))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", reason, err, tc.want)
		}
	}
}

func TestSetValues(t *testing.T) {
	base := Values{Replicas: ptr.To[int32](2), NodeSelector: map[string]string{"kubernetes.io/os": "linux"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "a"}}}
	for reason, tc := range map[string]struct {
		set        []string
		want, fail string
	}{
		"none":                  {nil, "replicas: 2\nnodeSelector: {kubernetes.io/os: linux}\nimagePullSecrets: [{name: a}]", ""},
		"a number":              {[]string{"replicas=3"}, "replicas: 3\nnodeSelector: {kubernetes.io/os: linux}\nimagePullSecrets: [{name: a}]", ""},
		"a key with dots":       {[]string{`nodeSelector.kubernetes\.io/os=null`, `nodeSelector.zone=a`}, "replicas: 2\nnodeSelector: {zone: a}\nimagePullSecrets: [{name: a}]", ""},
		"a list":                {[]string{"imagePullSecrets=[{name: b}]", "replicas=null", "nodeSelector=null"}, "imagePullSecrets: [{name: b}]", ""},
		"a value with =":        {[]string{"podAnnotations.a=b=c", "replicas=null", "nodeSelector=null", "imagePullSecrets=null"}, "podAnnotations: {a: b=c}", ""},
		"what does not exist":   {[]string{"affinity=null"}, "replicas: 2\nnodeSelector: {kubernetes.io/os: linux}\nimagePullSecrets: [{name: a}]", ""},
		"no assignment":         {[]string{"replicas"}, "", `"replicas": must be KEY=VALUE`},
		"no key":                {[]string{"=3"}, "", `"=3": must be KEY=VALUE`},
		"a part of a number":    {[]string{"replicas.x=3"}, "", `"replicas.x=3": replicas is no object`},
		"a value that is wrong": {[]string{"replicas=0"}, "", "replicas: 0 must be 1 or more"},
		"no YAML":               {[]string{"image=["}, "", "the value is not YAML"},
	} {
		got, err := base.Set(tc.set)
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: the error is %v, want %q", reason, err, tc.fail)
			}
			continue
		}
		want := Values{}
		if err := yaml.UnmarshalStrict([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", reason, err, diff)
		}
	}
	if *base.Replicas != 2 || base.NodeSelector["kubernetes.io/os"] != "linux" {
		t.Errorf("the values that were given have changed: %+v", base)
	}
}

func TestMergeRules(t *testing.T) {
	rule := func(resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs), ResourceNames: names}
	}
	type rules = []rbacv1.PolicyRule
	url := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	for reason, tc := range map[string]struct{ last, live, wanted, want rules }{
		"nothing has changed":            {rules{rule("a", "get")}, rules{rule("a", "get")}, rules{rule("a", "get")}, rules{rule("a", "get")}},
		"a verb was taken away":          {rules{rule("a b", "get list")}, rules{rule("a", "get list"), rule("b", "get")}, rules{rule("a b", "get list")}, rules{rule("a", "get"), rule("b", "get"), rule("a", "list")}},
		"all was taken away":             {rules{rule("a", "get"), url}, nil, rules{rule("a", "get"), url}, nil},
		"a new right comes":              {rules{rule("a", "get")}, rules{rule("a", "get")}, rules{rule("a", "get list")}, rules{rule("a", "get list")}},
		"a new one beside a lost one":    {rules{rule("a", "get list")}, rules{rule("a", "get")}, rules{rule("a", "get list watch")}, rules{rule("a", "get"), rule("a", "watch")}},
		"an added right is reset":        {rules{rule("a", "get")}, rules{rule("a", "get"), rule("secrets", "get")}, rules{rule("a", "get")}, rules{rule("a", "get")}},
		"an old right goes":              {rules{rule("a", "get"), rule("b", "get")}, rules{rule("a", "get"), rule("b", "get")}, rules{rule("a", "get")}, rules{rule("a", "get")}},
		"a right on one name":            {rules{rule("a", "get", "x", "y")}, rules{rule("a", "get", "x")}, rules{rule("a", "get", "x", "y")}, rules{rule("a", "get", "x")}},
		"a right on all names covers it": {rules{rule("a", "get", "x")}, rules{rule("a", "get")}, rules{rule("a", "get", "x")}, rules{rule("a", "get", "x")}},
		"a star covers verbs":            {rules{rule("a", "get list")}, rules{rule("a", "*")}, rules{rule("a", "get list")}, rules{rule("a", "get list")}},
		"a path":                         {rules{url}, nil, rules{url, rule("a", "get")}, rules{rule("a", "get")}},
	} {
		if diff := cmp.Diff(tc.want, mergeRules(tc.last, tc.live, tc.wanted)); diff != "" {
			t.Errorf("%s: %s", reason, diff)
		}
	}
}

func TestFieldAt(t *testing.T) {
	obj := map[string]any{"spec": map[string]any{"replicas": int64(2), "ports": []any{
		map[string]any{"port": int64(1), "protocol": "TCP", "name": "a"}, map[string]any{"port": int64(1), "protocol": "UDP", "name": "b"},
	}, "list": []any{"x"}}}
	for path, want := range map[string]any{
		".spec.replicas": int64(2), `.spec.ports[port=1,protocol="UDP"].name`: "b", `.spec.ports[port=2,protocol="UDP"].name`: nil,
		".spec.none.deeper": nil, ".spec.replicas.deeper": nil, `.spec.list["x"]`: nil, "": obj, ".spec.ports[": obj["spec"].(map[string]any)["ports"],
	} {
		if diff := cmp.Diff(want, fieldAt(obj, parsePath(path))); diff != "" {
			t.Errorf("%q: %s", path, diff)
		}
	}
	removeField(obj, parsePath(`.spec.ports[port=1,protocol="TCP"].name`))
	removeField(obj, parsePath(".spec.replicas"))
	removeField(obj, parsePath(".spec.none.deeper"))
	want := map[string]any{"spec": map[string]any{"ports": []any{
		map[string]any{"port": int64(1), "protocol": "TCP"}, map[string]any{"port": int64(1), "protocol": "UDP", "name": "b"},
	}, "list": []any{"x"}}}
	if diff := cmp.Diff(want, obj); diff != "" {
		t.Error(diff)
	}
}

// FuzzValues checks that values that are accepted are the same after they were kept, and that no text makes the functions panic.
func FuzzValues(f *testing.F) {
	f.Add("replicas: 2\nresources: {limits: {memory: 1Gi}}", "podLabels.a=b")
	f.Add("tolerations: [{key: a}]", `nodeSelector.kubernetes\.io/os=linux`)
	f.Fuzz(func(t *testing.T, text, set string) {
		v, err := ParseValues([]byte(text))
		if err != nil {
			return
		}
		kept, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseValues(kept)
		if diff := cmp.Diff(v, again); err != nil || diff != "" {
			t.Errorf("kept as %q: %v %s", kept, err, diff)
		}
		if _, err := v.Set([]string{set}); err == nil {
			fieldAt(map[string]any{}, parsePath(set))
		}
	})
}
