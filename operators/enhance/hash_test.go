package enhance

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files")

// cluster is a Lookup over a list.
func cluster(objects ...*unstructured.Unstructured) Lookup {
	return func(kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
		for _, object := range objects {
			if object.GroupVersionKind() == kind && object.GetNamespace() == namespace && object.GetName() == name {
				return object, nil
			}
		}
		return nil, nil
	}
}

// hashOf enhances a task and returns the hash on its first object.
func hashOf(t testing.TB, lookup Lookup, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var task []*unstructured.Unstructured
	for _, object := range objects {
		task = append(task, object.DeepCopy())
	}
	if err := Enhance(task, testContext(), lookup); err != nil {
		t.Fatal(err)
	}
	hash, _, err := unstructured.NestedString(task[0].Object, "spec", "template", "metadata", "annotations", v1beta1.DependenciesHashAnnotation)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func enhanced(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	object = object.DeepCopy()
	if err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil); err != nil {
		t.Fatal(err)
	}
	return object
}

const longLine = "a line that is longer than the eighty characters at which yaml.v2 folds, which the recipe keeps as it is"

func TestDump(t *testing.T) {
	for _, c := range []struct{ name, object string }{
		{"configmap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: x}, creationTimestamp: null},
			data: {a10: "x", a9: "1", b: "two\nlines\n", "yes": "true", long: "` + longLine + `"}, immutable: true}`},
		{"secret", `{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: s}, data: {tls.crt: YQ==, tls.key: Yg==}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := dump(enhanced(t, parse(t, c.object)))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("2.5: the dump is exact (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHashIsOfDigests(t *testing.T) {
	zero := make([]byte, 32)
	sum := md5.Sum(zero)
	if diff := cmp.Diff(hex.EncodeToString(sum[:]), hashOf(t, nil, withVolumes(t, "{configMap: {name: a}}", "{secret: {secretName: a}}"))); diff != "" {
		t.Errorf("2.5: what is not found counts as 16 zero bytes (-want +got):\n%s", diff)
	}

	config, secret := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: z}, data: {a: b}}`), parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: Yg==}}`)
	var digests []byte
	for _, object := range []*unstructured.Unstructured{config, secret} {
		text, err := dump(enhanced(t, object))
		if err != nil {
			t.Fatal(err)
		}
		digest := md5.Sum(text)
		if object == secret {
			digest = keyed(text)
		}
		digests = append(digests, digest[:]...)
	}
	sum = md5.Sum(digests)
	got := hashOf(t, nil, withVolumes(t, "{secret: {secretName: a}}", "{configMap: {name: z}}"), secret, config)
	if diff := cmp.Diff(hex.EncodeToString(sum[:]), got); diff != "" {
		t.Errorf("2.5: sorted by kind, then name; the enhanced objects of the task count (-want +got):\n%s", diff)
	}
}

// TestSecretsNeedAKey is T27: the hash of pods that read a Secret does not fall back to a digest that can be guessed.
func TestSecretsNeedAKey(t *testing.T) {
	without := testContext()
	without.Digest = nil
	secret := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: Yg==}}`)
	if err := Enhance([]*unstructured.Unstructured{withVolumes(t, "{secret: {secretName: a}}"), secret}, without, nil); err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("a Secret without a key: %v", err)
	}
	config := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}`)
	if err := Enhance([]*unstructured.Unstructured{withVolumes(t, "{configMap: {name: a}}"), config}, without, nil); err != nil {
		t.Errorf("a ConfigMap needs none: %v", err)
	}
}

// TestHashOfKUDO: the hash that KUDO wrote for pods that read a Secret stays while it is right, and any other one is replaced.
func TestHashOfKUDO(t *testing.T) {
	secret := func(value string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: `+value+`}}`)
	}
	hash := func(object *unstructured.Unstructured) string {
		template, ok, err := podTemplate(object)
		if err != nil || !ok {
			t.Fatal(err)
		}
		out, _, _ := unstructured.NestedString(template.fields, "metadata", "annotations", v1beta1.DependenciesHashAnnotation)
		return out
	}
	enhance := func(digest digester, live *unstructured.Unstructured, failure error, value string) (string, error) {
		asked, ctx := 0, testContext()
		ctx.Digest = digest
		ctx.Live = func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
			asked++
			return live, failure
		}
		pods, config := withVolumes(t, "{secret: {secretName: a}}", "{configMap: {name: z}}"), withVolumes(t, "{configMap: {name: z}}")
		err := Enhance([]*unstructured.Unstructured{pods, config, secret(value)}, ctx, nil)
		if asked != 1 {
			t.Errorf("the live object was asked for %d times, want once, for the pods that read a Secret", asked)
		}
		return hash(pods), err
	}
	plain := func(text []byte) ([16]byte, error) { return md5.Sum(text), nil }
	digest := func(text []byte) ([16]byte, error) { return keyed(text), nil }
	withHash := func(hash string) *unstructured.Unstructured {
		pods := withVolumes(t, "{secret: {secretName: a}}")
		if err := unstructured.SetNestedField(pods.Object, hash, "spec", "template", "metadata", "annotations", v1beta1.DependenciesHashAnnotation); err != nil {
			t.Fatal(err)
		}
		return pods
	}
	ofKUDO, _ := enhance(plain, nil, nil, "Yg==")
	own, _ := enhance(digest, nil, nil, "Yg==")
	for _, tc := range []struct {
		reason, value, want string
		live                *unstructured.Unstructured
	}{
		{"there is no live object", "Yg==", own, nil},
		{"KUDO wrote it, and the Secret is the same", "Yg==", ofKUDO, withHash(ofKUDO)},
		{"the live one is kudo's own", "Yg==", own, withHash(own)},
		{"the live one is of another content", "Yg==", own, withHash("0")},
		{"the live pods have no hash", "Yg==", own, withVolumes(t, "{secret: {secretName: a}}")},
		{"the live object has no pods", "Yg==", own, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")},
	} {
		if got, err := enhance(digest, tc.live, nil, tc.value); err != nil || got != tc.want || got == "" {
			t.Errorf("%s: hash %q (%v), want %q", tc.reason, got, err, tc.want)
		}
	}
	changed, _ := enhance(digest, nil, nil, "Yw==")
	if got, err := enhance(digest, withHash(ofKUDO), nil, "Yw=="); err != nil || got != changed || got == ofKUDO {
		t.Errorf("the Secret has changed since: hash %q (%v), want %q", got, err, changed)
	}
	down := errors.New("down")
	if _, err := enhance(digest, nil, down, "Yg=="); !errors.Is(err, down) {
		t.Errorf("the live object cannot be read: %v, want %v", err, down)
	}
}

func TestWhatIsADependency(t *testing.T) {
	for _, c := range []struct {
		reason, spec string
		want         bool
	}{
		{"a volume of a ConfigMap", `{volumes: [{configMap: {name: c}}]}`, true},
		{"a volume of a Secret", `{volumes: [{secret: {secretName: c}}]}`, true},
		{"an image pull secret", `{imagePullSecrets: [{name: c}]}`, true},
		{"2.5: not the environment", `{containers: [{envFrom: [{configMapRef: {name: c}}]}]}`, false},
		{"2.5: not projected volumes", `{volumes: [{projected: {sources: [{configMap: {name: c}}]}}]}`, false},
		{"a source without a name", `{volumes: [{configMap: {}}, {secret: null}], imagePullSecrets: [{}]}`, false},
		{"no pod spec", `null`, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			object := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: `+c.spec+`}}}`)
			if got := hashOf(t, nil, object) != ""; got != c.want {
				t.Errorf("%s: hash is there: %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

// TestLiveAgrees is rule 24: whether a dependency is in the task, live, or in KUDO's annotation, the hash is the same.
func TestLiveAgrees(t *testing.T) {
	const server = `namespace: prod, uid: u, resourceVersion: "7", generation: 3, selfLink: /x, creationTimestamp: "2026-01-01T00:00:00Z",
		labels: {heritage: kudo, kudo.dev/operator: web, kudo.dev/instance: shop, app: x}, finalizers: [a/b], managedFields: [{manager: m}],
		annotations: {kudo.dev/plan: update, other: thing}, ownerReferences: [{apiVersion: kudo.dev/v1beta1, kind: Instance, name: shop, uid: u}]`
	config, secret := withVolumes(t, "{configMap: {name: c}}"), withVolumes(t, "{secret: {secretName: c}}")
	for _, c := range []struct {
		reason, rendered, live string
		pod                    *unstructured.Unstructured
	}{
		{"what the server adds to metadata", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: x}, creationTimestamp: null}, data: {a: b}, status: {}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ` + server + `}, data: {a: b}}`, config},
		{"being deleted, held by a finalizer", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: x}}, immutable: true}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30, ` + server + `}, immutable: true}`, config},
		{"stringData, which wins over data", `{apiVersion: v1, kind: Secret, metadata: {name: c, labels: {app: x}}, data: {a: eA==, b: eQ==}, stringData: {a: z}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: c, ` + server + `}, data: {a: eg==, b: eQ==}}`, secret},
		{"stringData only", `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: c, labels: {app: x}}, stringData: {a: z}}`,
			`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: c, ` + server + `}, data: {a: eg==}}`, secret},
		{"base64 in lines", "apiVersion: v1\nkind: Secret\nmetadata: {name: c, labels: {app: x}}\ndata:\n  a: |\n    e\n    g==\n",
			`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: c, ` + server + `}, data: {a: eg==}}`, secret},
		{"empty maps and null values", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {app: x}}, data: {a: null}, binaryData: {}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, ` + server + `}, data: {a: ""}}`, config},
	} {
		t.Run(c.reason, func(t *testing.T) {
			rendered, live := parse(t, c.rendered), parse(t, c.live)
			want := hashOf(t, nil, c.pod, rendered)
			if got := hashOf(t, cluster(live), c.pod); got != want {
				t.Errorf("rule 24: %s: in the task %s, live %s", c.reason, want, got)
			}
			if got := hashOf(t, cluster(ofKUDO(t, enhanced(t, rendered), live)), c.pod); got != want {
				t.Errorf("rule 24: %s: in the task %s, in KUDO's annotation %s", c.reason, want, got)
			}
		})
	}
}

// ofKUDO is the live object with an annotation that says that KUDO applied the other.
func ofKUDO(t *testing.T, applied, live *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(applied.Object)
	if err != nil {
		t.Fatal(err)
	}
	live = live.DeepCopy()
	live.SetAnnotations(map[string]string{
		v1beta1.LastAppliedAnnotation: string(text),
		v1beta1.PlanUIDAnnotation:     applied.GetAnnotations()[v1beta1.PlanUIDAnnotation],
	})
	return live
}

func TestLastApplied(t *testing.T) {
	pod := withVolumes(t, "{configMap: {name: c}}")
	rendered := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`)
	live := enhanced(t, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: edited}}`))
	inTask := hashOf(t, nil, pod, rendered)

	annotated := ofKUDO(t, enhanced(t, rendered), live)
	if got := hashOf(t, cluster(annotated), pod); got != inTask {
		t.Error("2.5: what KUDO applied counts, not what was edited since")
	}
	stale := annotated.DeepCopy()
	all := stale.GetAnnotations()
	all[v1beta1.PlanUIDAnnotation] = "run-2"
	stale.SetAnnotations(all)
	if got := hashOf(t, cluster(stale), pod); got != hashOf(t, cluster(live), pod) {
		t.Error("an annotation of a run before the last write is out of date: the live object counts")
	}
	all[v1beta1.LastAppliedAnnotation] = "{"
	stale.SetAnnotations(all)
	if got := hashOf(t, cluster(stale), pod); got != hashOf(t, cluster(live), pod) {
		t.Error("an annotation that is no JSON does not count")
	}
}

func TestSkip(t *testing.T) {
	pod := withVolumes(t, "{configMap: {name: c}}")
	skipped := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: prod, annotations: {kudo.dev/skip-hash-calculation: "false"}}, data: {a: b}}`)
	missing := hashOf(t, nil, pod)
	if got := hashOf(t, nil, pod, skipped); got != missing {
		t.Error("2.5: the annotation skips an object of the task, whatever its value")
	}
	if got := hashOf(t, cluster(skipped), pod); got != missing {
		t.Error("2.5: the annotation skips a live object")
	}
}

// TestSameDependency checks which changes of a dependency leave the hash as it is.
func TestSameDependency(t *testing.T) {
	live := parse(t, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: s, uid: u}, data: {a: eA==}}`)
	for name, tc := range map[string]struct {
		reason, other string
		want          bool
	}{
		"Rendered":   {"the same as a package says it", `{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: x}}`, true},
		"Annotation": {"annotations do not count", `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {a: b}}, data: {a: eA==}}`, true},
		"Label":      {"labels count", `{apiVersion: v1, kind: Secret, metadata: {name: s, labels: {a: b}}, data: {a: eA==}}`, false},
		"Data":       {"data counts", `{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: eQ==}}`, false},
		"Skipped":    {"left out on one side", `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {kudo.dev/skip-hash-calculation: ""}}, data: {a: eA==}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SameDependency(live, parse(t, tc.other)); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

func TestLastOfTwoCounts(t *testing.T) {
	pod := withVolumes(t, "{configMap: {name: c}}")
	first, second := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "1"}}`), parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "2"}}`)
	if hashOf(t, nil, pod, first, second) != hashOf(t, nil, pod, second) {
		t.Error("an object that is rendered twice ends as the last one")
	}
}

func TestHashProperties(t *testing.T) {
	volumes := map[string]string{
		"a": "{configMap: {name: a}}", "b": "{configMap: {name: b}}", "c": "{secret: {secretName: a}}", "d": "{secret: {secretName: b}}",
	}
	rapid.Check(t, func(r *rapid.T) {
		object := func(kind, name, value string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, "data": map[string]any{"key": value},
			}}
		}
		value := rapid.StringMatching(`[a-z]{1,100}`)
		task := []*unstructured.Unstructured{
			object("ConfigMap", "a", value.Draw(r, "a")), object("ConfigMap", "b", value.Draw(r, "b")),
			object("Secret", "a", value.Draw(r, "c")), object("Secret", "b", value.Draw(r, "d")),
		}
		order := rapid.Permutation([]string{"a", "b", "c", "d"}).Draw(r, "order")
		shuffled := withVolumes(t, volumes[order[0]], volumes[order[1]], volumes[order[2]], volumes[order[3]])
		sorted := withVolumes(t, volumes["a"], volumes["b"], volumes["c"], volumes["d"])
		want := hashOf(t, nil, append([]*unstructured.Unstructured{sorted}, task...)...)
		if got := hashOf(t, nil, append([]*unstructured.Unstructured{shuffled}, task...)...); got != want {
			r.Fatal("the hash depends on the order of the volumes")
		}
		changed := rapid.IntRange(0, 3).Draw(r, "changed")
		data := task[changed].Object["data"].(map[string]any)
		data["key"] = data["key"].(string) + "x"
		if got := hashOf(t, nil, append([]*unstructured.Unstructured{sorted}, task...)...); got == want {
			r.Fatal("the hash does not change with the data")
		}
	})
}

func TestNumbers(t *testing.T) {
	object := func(number any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "X", "spec": map[string]any{"n": []any{number}}}}
	}
	want, err := dump(object(int64(12345678)))
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []any{12345678, int32(12345678), float64(12345678)} {
		if got, err := dump(object(number)); err != nil || string(got) != string(want) {
			t.Errorf("%T: a whole number is written as such: %s, %v", number, got, err)
		}
	}
	if _, err := dump(object(struct{}{})); err == nil {
		t.Error("what is no JSON value is an error, not a panic")
	}
}

func FuzzEnhance(f *testing.F) {
	for _, kind := range []string{"apps/v1\",\"kind\":\"StatefulSet", "batch/v1\",\"kind\":\"CronJob", "v1\",\"kind\":\"Secret", "v1\",\"kind\":\"ConfigMap"} {
		f.Add([]byte(`{"apiVersion":"` + kind + `","metadata":{"name":"x","labels":{"a":"b"},"ownerReferences":[{"controller":true}]},"data":{"a":"eA=="},"stringData":{"b":null},
			"spec":{"template":{"spec":{"volumes":[{"secret":{"secretName":"x"}},{"configMap":{"name":"y"}}]}},"volumeClaimTemplates":[{}],"jobTemplate":{"spec":{"template":{}}}}}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fields map[string]any
		if json.Unmarshal(data, &fields) != nil {
			return
		}
		object := &unstructured.Unstructured{Object: fields}
		var whatever Lookup = func(schema.GroupVersionKind, string, string) (*unstructured.Unstructured, error) { return object, nil }
		if Enhance([]*unstructured.Unstructured{object}, testContext(), whatever) != nil {
			return
		}
		once := object.DeepCopy()
		if err := Enhance([]*unstructured.Unstructured{object}, testContext(), cluster()); err != nil {
			t.Fatalf("enhancing again: %v", err)
		}
		if once.GetName() != object.GetName() || !cmp.Equal(once.GetLabels(), object.GetLabels()) {
			t.Error("enhancing again changes the object")
		}
	})
}
