package kudoinit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestParseOddValues has text that YAML accepts, and that the Deployment cannot have.
func TestParseOddValues(t *testing.T) {
	const arg = " must begin with -- and the name of a flag, and must not be a flag that init writes itself"
	for reason, tc := range map[string]struct{ text, want string }{
		"an empty document":                         {"--- \n", ""},
		"the end of a document":                     {"---\nreplicas: 2\n", ""},
		"null":                                      {"null", ""},
		"three dashes in a text":                    {"podAnnotations: {a: 'x --- y'}", ""},
		"three dashes in a block":                   {"podAnnotations:\n  a: |\n    x\n    ---\n", ""},
		"a second document":                         {"replicas: 2\n---\nimage: x\n", "the values must be one YAML document: remove the line --- and merge what is behind it"},
		"a second document behind a comment":        {"replicas: 2\n--- # more\nimage: x\n", "the values must be one YAML document: remove the line --- and merge what is behind it"},
		"an alias of itself":                        {"extraArgs: &a [*a]", "anchor 'a' value contains itself"},
		"a control character":                       {"image: \x00", "control characters are not allowed"},
		"a number in a fraction":                    {"replicas: 2.5", ".replicas of type int32"},
		"a number out of range":                     {"replicas: 2147483648", "cannot unmarshal number 2147483648 into"},
		"an amount that is none":                    {"resources: {limits: {cpu: many}}", "quantities must match the regular expression"},
		"an argument without a name":                {"extraArgs: ['--']", `extraArgs[0]: "--"` + arg},
		"an argument with a value only":             {"extraArgs: ['--=x']", `extraArgs[0]: "--=x"` + arg},
		"an argument of init with more dashes":      {"extraArgs: ['---namespace=x']", `extraArgs[0]: "---namespace=x"` + arg},
		"an empty argument":                         {"extraArgs: ['']", `extraArgs[0]: ""` + arg},
		"the pipe image as an argument":             {"extraArgs: ['--pipe-image=x']", `extraArgs[0]: "--pipe-image=x"` + arg},
		"a file of explore webhooks as an argument": {"extraArgs: ['--explore-client-key-file=x']", `extraArgs[0]: "--explore-client-key-file=x"` + arg},
		"a Secret with a path for a name":           {"exploreClientSecret: ../a", `exploreClientSecret: "../a" must be the name of a Secret: `},
		"an argument that begins as one of init's":  {"extraArgs: ['--namespaces=x']", ""},
		"a Secret without a name":                   {"imagePullSecrets: [{name: a}, {}]", "imagePullSecrets[1]: must have the name of a Secret"},
		"a selector that is no label":               {"nodeSelector: {a b: x}", `nodeSelector: Invalid value: "a b"`},
		"a selector for a value that is no label":   {"nodeSelector: {a: 'x y'}", `nodeSelector: Invalid value: "x y"`},
		"an annotation without a name":              {"podAnnotations: {a b: x}", `podAnnotations: Invalid value: "a b"`},
		"an annotation with a long text":            {"podAnnotations: {a: '" + strings.Repeat("x", 256<<10) + "'}", "podAnnotations: Too long"},
		"an annotation of any text":                 {"podAnnotations: {a: 'x y / z'}", ""},
		"a registry with a folder above":            {"imageRegistry: a/../b", `imageRegistry: "a/../b" must be a registry`},
		"a registry with a line behind":             {"imageRegistry: \"a\\nb\"", `imageRegistry: "a\nb" must be a registry`},
		"a registry of all the parts":               {"imageRegistry: 'a.example:5000/b/c_d'", ""},
		"a registry with a slash behind":            {"imageRegistry: a/", `imageRegistry: "a/" must be a registry`},
		"a log format that is none":                 {"logFormat: text", `logFormat: "text" must be json or console`},
		"a log format as an argument":               {"extraArgs: ['--zap-encoder=json']", `extraArgs[0]: "--zap-encoder=json"` + arg},
		"a proxy with a password":                   {"proxy: {https: 'http://u:secret@proxy:3128'}", "proxy.https: must be a URL such as http://proxy.example.org:3128; a user and a password would be readable in the Deployment"},
		"a proxy without a scheme":                  {"proxy: {http: 'proxy:3128'}", "proxy.http: must be a URL"},
		"a proxy with a variable":                   {"proxy: {http: 'http://$(HOSTNAME)'}", "proxy.http: must be a URL"},
		"a host that is a list":                     {"proxy: {noProxy: ['a,b']}", `proxy.noProxy[0]: "a,b" must be a host`},
		"hosts of all forms":                        {"proxy: {noProxy: [a.example, .example.org, '*.x', 10.0.0.0/8, '[fd00::1]:80', '*']}", ""},
		"a cache in a ConfigMap":                    {"cacheVolume: {configMap: {name: a}}", "cacheVolume: must be an emptyDir, a persistentVolumeClaim or an ephemeral volume"},
		"a cache on the node":                       {"cacheVolume: {hostPath: {path: /}}", "cacheVolume: must be an emptyDir, a persistentVolumeClaim or an ephemeral volume"},
		"a cache of two kinds":                      {"cacheVolume: {emptyDir: {}, secret: {secretName: a}}", "cacheVolume: must be an emptyDir"},
		"a cache of no kind":                        {"cacheVolume: {}", ""},
		"a pull policy in small letters":            {"imagePullPolicy: always", `imagePullPolicy: "always" must be Always, Never or IfNotPresent`},
	} {
		_, err := ParseValues([]byte(tc.text))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", reason, err, tc.want)
		}
	}
}

// TestParseValuesOrder checks that the error is always the same, though a map has no order.
func TestParseValuesOrder(t *testing.T) {
	const text = "podLabels: {a b: x, c d: x, e f: x, g h: x}\nnodeSelector: {a b: x, c d: x, e f: x}\npodAnnotations: {a b: x, c d: x, e f: x}\nreplicas: 0"
	_, first := ParseValues([]byte(text))
	if first == nil || !strings.HasPrefix(first.Error(), "replicas: 0 must be 1 or more\n[podLabels: Invalid value: \"a b\"") {
		t.Fatalf("the error is %v", first)
	}
	for range 50 {
		if _, err := ParseValues([]byte(text)); err == nil || err.Error() != first.Error() {
			t.Fatalf("another time the error is\n%v\nnot\n%v", err, first)
		}
	}
}

// TestSetOddValues has assignments as a shell may pass them on.
func TestSetOddValues(t *testing.T) {
	for reason, tc := range map[string]struct {
		set  string
		want Values
		fail string
	}{
		"a large number":                {"replicas=1000000", Values{Replicas: ptr.To[int32](1000000)}, ""},
		"a number for a text":           {"podLabels.a=5", Values{PodLabels: map[string]string{"a": "5"}}, ""},
		"a text of several lines":       {"podAnnotations.a=\"x\\ny\"", Values{PodAnnotations: map[string]string{"a": "x\ny"}}, ""},
		"a value that is quoted":        {`priorityClassName="high"`, Values{PriorityClassName: "high"}, ""},
		"a value with spaces around":    {"priorityClassName= high ", Values{PriorityClassName: "high"}, ""},
		"a key with an escaped dot":     {`podAnnotations.example\.org/a=x`, Values{PodAnnotations: map[string]string{"example.org/a": "x"}}, ""},
		"an object as the value":        {"nodeSelector={zone: a}", Values{NodeSelector: map[string]string{"zone": "a"}}, ""},
		"no value takes the key away":   {"priorityClassName=", Values{}, ""},
		"a tilde takes the key away":    {"priorityClassName=~", Values{}, ""},
		"an unknown key":                {"replica=3", Values{}, `unknown field "replica"`},
		"an empty part in front":        {".replicas=3", Values{}, `unknown field ""`},
		"an empty part behind":          {"podLabels.=x", Values{}, "podLabels: Invalid value"},
		"two dots":                      {"resources..cpu=1", Values{}, `unknown field ""`},
		"a backslash at the end":        {`replicas\=3`, Values{}, "must be KEY=VALUE"},
		"an element of a list":          {"imagePullSecrets[0].name=x", Values{}, `unknown field "imagePullSecrets[0]"`},
		"a text where an object stands": {"resources=x", Values{}, ".resources"},
		"a list where an object stands": {"nodeSelector=[a]", Values{}, ".nodeSelector of type map[string]string"},
	} {
		got, err := Values{}.Set([]string{tc.set})
		if tc.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fail) {
				t.Errorf("%s: the error is %v, want %q", reason, err, tc.fail)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", reason, err, diff)
		}
	}
}

// TestSetOrder checks that the last of several assignments counts, and that a part may be set below one that is set before it.
func TestSetOrder(t *testing.T) {
	got, err := Values{}.Set([]string{"replicas=2", "resources={requests: {cpu: 1}}", "resources.requests.cpu=250m", "resources.limits.memory=1Gi", "replicas=4"})
	want := Values{Replicas: ptr.To[int32](4), Resources: &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestValuesInDeployment checks where each of the Values stands in the Deployment, and that what is not set is as in the manifest.
func TestValuesInDeployment(t *testing.T) {
	plain, seconds := find(t, Options{}, "Deployment"), int64(30)
	values := Values{
		NodeSelector: map[string]string{"zone": "a"}, PriorityClassName: "high", PodLabels: map[string]string{"team": "x"}, PodAnnotations: map[string]string{"example.org/a": "b c"},
		Tolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: &seconds}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}},
		Affinity:  &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
		Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}}, ExtraArgs: []string{"--zap-log-level=debug"},
	}
	tuned := find(t, Options{Values: values}, "Deployment")
	pod := []string{"spec", "template", "spec"}
	for field, want := range map[string]any{
		"nodeSelector": map[string]any{"zone": "a"}, "priorityClassName": "high", "affinity": map[string]any{"nodeAffinity": map[string]any{}},
		"tolerations":      []any{map[string]any{"key": "k", "operator": "Exists", "tolerationSeconds": int64(30)}},
		"imagePullSecrets": []any{map[string]any{"name": "s"}},
	} {
		got, _, _ := unstructured.NestedFieldNoCopy(tuned.Object, append(pod, field)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
		unstructured.RemoveNestedField(tuned.Object, append(pod, field)...)
		if was, found, _ := unstructured.NestedFieldCopy(plain.Object, append(pod, field)...); found {
			if err := unstructured.SetNestedField(tuned.Object, was, append(pod, field)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	manager := func(obj *unstructured.Unstructured) map[string]any {
		return fieldAt(obj.Object, parsePath(`.spec.template.spec.containers[name="manager"]`)).(map[string]any)
	}
	if diff := cmp.Diff(map[string]any{"limits": map[string]any{"memory": "1Gi"}}, manager(tuned)["resources"]); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	args := manager(tuned)["args"].([]any)
	if args[len(args)-1] != "--zap-log-level=debug" || len(args) != len(manager(plain)["args"].([]any))+1 {
		t.Errorf("the arguments are %v", args)
	}
	manager(tuned)["resources"], manager(tuned)["args"] = manager(plain)["resources"], manager(plain)["args"]
	for path, want := range map[string]string{"labels": "x", "annotations": "b c"} {
		key := map[string]string{"labels": "team", "annotations": "example.org/a"}[path]
		if got, _, _ := unstructured.NestedString(tuned.Object, "spec", "template", "metadata", path, key); got != want {
			t.Errorf("%s %s is %q", path, key, got)
		}
		unstructured.RemoveNestedField(tuned.Object, "spec", "template", "metadata", path, key)
	}
	differs := differences(plain.Object, tuned.Object)
	if diff := cmp.Diff([]string(nil), differs); diff != "" {
		t.Errorf("other fields have changed: %s", diff)
	}
}

// TestExploreClientSecret checks C68: the Secret is mounted where the arguments of the manager say, and later calls of init keep it and the
// arguments of explore webhooks.
func TestExploreClientSecret(t *testing.T) {
	given, err := ParseValues([]byte("exploreClientSecret: hooks\nextraArgs: ['--explore-proxy=http://proxy:3128', --explore-max-timeout=5s]"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := ReadState(t.Context(), apitest.Start(t, &corev1.ConfigMap{ObjectMeta: gen.Meta(DefaultNamespace, ValuesConfigMap), Data: map[string]string{valuesKey: string(text)}}).Client())
	if diff := cmp.Diff(given, kept.Values); err != nil || diff != "" {
		t.Fatalf("kept values: %v (-want +got):\n%s", err, diff)
	}
	plain, adapted := find(t, Options{}, "Deployment"), find(t, Options{Values: kept.Values}, "Deployment")
	list := func(obj *unstructured.Unstructured, path string) []any {
		return fieldAt(obj.Object, parsePath(".spec.template.spec."+path)).([]any)
	}
	for path, want := range map[string][]any{
		"volumes": []any{map[string]any{"name": "explore-client", "secret": map[string]any{"secretName": "hooks"}}},
		`containers[name="manager"].volumeMounts`: []any{map[string]any{"name": "explore-client", "mountPath": "/etc/kudo/explore-client", "readOnly": true}},
		`containers[name="manager"].args`: []any{"--explore-client-cert-file=/etc/kudo/explore-client/tls.crt", "--explore-client-key-file=/etc/kudo/explore-client/tls.key",
			"--explore-proxy=http://proxy:3128", "--explore-max-timeout=5s"},
	} {
		if diff := cmp.Diff(append(list(plain, path), want...), list(adapted, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// TestProxyLogAndCache checks where the proxy, the format of the log and the volume of the cache stand in the Deployment. What the manager
// asks of the cluster passes no proxy.
func TestProxyLogAndCache(t *testing.T) {
	plain := find(t, Options{}, "Deployment")
	list := func(obj *unstructured.Unstructured, path string) []any {
		return fieldAt(obj.Object, parsePath(".spec.template.spec."+path)).([]any)
	}
	const env, args, cluster = `containers[name="manager"].env`, `containers[name="manager"].args`, "$(KUBERNETES_SERVICE_HOST),localhost,127.0.0.1,::1,.svc,.cluster.local"
	variable := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	for text, want := range map[string]struct {
		path  string
		added []any
	}{
		"logFormat: console": {args, []any{"--zap-encoder=console"}},
		"proxy: {http: 'http://p:1', https: 'http://q:2', noProxy: [.corp, 10.0.0.0/8]}": {env, []any{
			variable("HTTP_PROXY", "http://p:1"), variable("HTTPS_PROXY", "http://q:2"), variable("NO_PROXY", ".corp,10.0.0.0/8,"+cluster),
		}},
		"proxy: {https: 'http://q:2'}": {env, []any{variable("HTTPS_PROXY", "http://q:2"), variable("NO_PROXY", cluster)}},
		"proxy: {noProxy: [.corp]}":    {env, nil},
		"cacheVolume: {}":              {"volumes", nil},
	} {
		values, err := ParseValues([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(list(plain, want.path), want.added...), list(find(t, Options{Values: values}, "Deployment"), want.path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	values, err := ParseValues([]byte("cacheVolume: {persistentVolumeClaim: {claimName: tarballs}}\nexploreClientSecret: hooks"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := []any{
		map[string]any{"name": "cert", "emptyDir": map[string]any{}},
		map[string]any{"name": "cache", "persistentVolumeClaim": map[string]any{"claimName": "tarballs"}},
		map[string]any{"name": "explore-client", "secret": map[string]any{"secretName": "hooks"}},
	}
	if diff := cmp.Diff(wanted, list(find(t, Options{Values: values}, "Deployment"), "volumes")); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
}

// TestLookValues reads the Values that init has kept; what cannot be read is named with its object and key.
func TestLookValues(t *testing.T) {
	for reason, tc := range map[string]struct {
		data map[string]string
		want Values
		fail string
	}{
		"no keys":       {nil, Values{}, ""},
		"kept values":   {map[string]string{valuesKey: "replicas: 3\n", rulesKey: "{}"}, Values{Replicas: ptr.To[int32](3)}, ""},
		"a newer field": {map[string]string{valuesKey: "shade: red\n"}, Values{}, `ConfigMap kudo-system/kudo-values, key values.yaml: unknown field "shade"`},
		"a wrong edit":  {map[string]string{valuesKey: "replicas: 0\n"}, Values{}, "ConfigMap kudo-system/kudo-values, key values.yaml: replicas: 0 must be 1 or more"},
	} {
		live, err := ReadState(t.Context(), apitest.Start(t, &corev1.ConfigMap{ObjectMeta: gen.Meta(DefaultNamespace, ValuesConfigMap), Data: tc.data}).Client())
		if tc.fail != "" {
			if err == nil || err.Error() != tc.fail {
				t.Errorf("%s: the error is %v, want %q", reason, err, tc.fail)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, live.Values); err != nil || diff != "" || live.rules != tc.data[rulesKey] {
			t.Errorf("%s: %v, rules %q: %s", reason, err, live.rules, diff)
		}
	}
}
