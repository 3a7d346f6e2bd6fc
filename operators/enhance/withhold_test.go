package enhance

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: `

// TestLacksMetadata is P27: which live objects have none of kudo's metadata in their pods.
func TestLacksMetadata(t *testing.T) {
	for _, tc := range []struct {
		reason, live string
		want         bool
	}{
		{"P27: of another tool", deployment + `{metadata: {labels: {app: d}}}}}`, true},
		{"P27: without metadata", deployment + `{}}}`, true},
		{"P27: the label heritage is of others, too", deployment + `{metadata: {labels: {heritage: Helm}}}}}`, true},
		{"P27: kudo's", deployment + `{metadata: {labels: {kudo.dev/instance: shop}}}}}`, false},
		{"P27: a part of kudo's", deployment + `{metadata: {annotations: {kudo.dev/operator-version: 1.0.0}}}}}`, false},
		{"P27: KUDO's", deployment + `{metadata: {annotations: {kudo.dev/dependencies-hash: x}}}}}`, false},
		{"P27: a kind without pods", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`, false},
		{"P27: nothing that can be read", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: x}`, false},
	} {
		if got := LacksMetadata(parse(t, tc.live)); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestWithoutTemplateMetadata is P27: the copy has the pod template of the package, and the live one's value of heritage.
func TestWithoutTemplateMetadata(t *testing.T) {
	for _, tc := range []struct{ reason, in, live, template, hash string }{
		{"P27: nothing of kudo's stays", deployment + `{spec: {a: b}}}}`, deployment + `{}}}`, `{spec: {a: b}}`, "none"},
		{"P27: the package's own stays", deployment + `{metadata: {labels: {app: d}, annotations: {own: x}}}}}`, deployment + `{}}}`,
			`{metadata: {labels: {app: d}, annotations: {own: x}}}`, "none"},
		{"P27: heritage is what it was", deployment + `{metadata: {labels: {heritage: Helm}}}}}`,
			deployment + `{metadata: {labels: {heritage: Helm}}}}}`, `{metadata: {labels: {heritage: Helm}}}`, "none"},
	} {
		in := parse(t, tc.in)
		if err := Enhance([]*unstructured.Unstructured{in}, testContext(), nil); err != nil {
			t.Fatal(err)
		}
		before := in.DeepCopy()
		got := WithoutTemplateMetadata(in, parse(t, tc.live))
		template, _, _ := unstructured.NestedMap(got.Object, "spec", "template")
		if diff := cmp.Diff(parse(t, `{apiVersion: v1, kind: X, t: `+tc.template+`}`).Object["t"], any(template)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if hash := got.GetAnnotations()["kudo.dev/withheld-hash"]; hash != tc.hash || WithheldHash(in) != tc.hash {
			t.Errorf("%s: the hash is %q, and %q of the object", tc.reason, hash, WithheldHash(in))
		}
		if diff := cmp.Diff(before.Object, in.Object); diff != "" {
			t.Errorf("%s: the object was changed: %s", tc.reason, diff)
		}
	}
}

// TestWithheldHash is P27: a change of what pods read changes the annotation.
func TestWithheldHash(t *testing.T) {
	hash := func(value string) string {
		pods := parse(t, deployment+`{spec: {volumes: [{configMap: {name: c}}]}}}}`)
		objects := []*unstructured.Unstructured{parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: `+value+`}}`), pods}
		if err := Enhance(objects, testContext(), nil); err != nil {
			t.Fatal(err)
		}
		return WithheldHash(pods)
	}
	if a, b := hash("x"), hash("y"); a == b || a == noDependencies || a != hash("x") {
		t.Errorf("%q for one value, %q for another", a, b)
	}
	if got := WithheldHash(parse(t, `{apiVersion: v1, kind: ConfigMap}`)); got != "" {
		t.Errorf("an object without pods has %q", got)
	}
}

// TestWithoutClaimMetadata is P27: claim templates cannot be changed.
func TestWithoutClaimMetadata(t *testing.T) {
	set := func(claims string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {template: {}, volumeClaimTemplates: [`+claims+`]}}`)
	}
	for _, tc := range []struct{ reason, in, live, want string }{
		{"P27: of another tool", `{metadata: {name: a}}`, `{metadata: {name: a}}`, `{metadata: {name: a}}`},
		{"P27: its labels stay", `{metadata: {name: a, labels: {app: s, heritage: Helm}}}`, `{metadata: {name: a, labels: {app: s, heritage: Helm}}}`,
			`{metadata: {name: a, labels: {app: s, heritage: Helm}}}`},
		{"P27: kudo's", `{metadata: {name: a}}`, `{metadata: {name: a, labels: ` + labels + `}}`, `{metadata: {name: a, labels: ` + labels + `}}`},
		{"P27: one that the live one lacks", `{metadata: {name: a}}, {metadata: {name: b}}`, `{metadata: {name: a}}`,
			`{metadata: {name: a}}, {metadata: {name: b, labels: ` + labels + `}}`},
	} {
		in := set(tc.in)
		if err := Enhance([]*unstructured.Unstructured{in}, testContext(), nil); err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedSlice(WithoutClaimMetadata(in, set(tc.live)).Object, "spec", "volumeClaimTemplates")
		want, _, _ := unstructured.NestedSlice(set(tc.want).Object, "spec", "volumeClaimTemplates")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
	other := parse(t, deployment+`{}}}`)
	if WithoutClaimMetadata(other, other) != other {
		t.Error("an object without claims was copied")
	}
}

// TestSamePods is P27: what counts as a change of pods.
func TestSamePods(t *testing.T) {
	for _, tc := range []struct {
		reason, a, b string
		want         bool
	}{
		{"equal", deployment + `{spec: {a: b}}}}`, deployment + `{spec: {a: b}}, replicas: 3}}`, true},
		{"another image", deployment + `{spec: {a: b}}}}`, deployment + `{spec: {a: c}}}}`, false},
		{"no pods", `{apiVersion: v1, kind: ConfigMap}`, `{apiVersion: v1, kind: ConfigMap}`, false},
	} {
		if got := SamePods(parse(t, tc.a), parse(t, tc.b)); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestOwnSelector is P27: a label of pods that the object's own selector names keeps the value of the package.
func TestOwnSelector(t *testing.T) {
	object := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {selector: {matchLabels: {heritage: Helm, app: d}},
		template: {metadata: {labels: {heritage: Helm, app: d}}}}}`)
	if err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	want := map[string]string{"heritage": "Helm", "app": "d", "kudo.dev/operator": "web", "kudo.dev/instance": "shop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWithholdOfEachKind is P27: the kinds that have pods, wherever their template stands.
func TestWithholdOfEachKind(t *testing.T) {
	pods := `{metadata: {labels: {app: d}}, spec: {containers: []}}`
	for _, tc := range []struct {
		reason, apiVersion, kind, before, after string
	}{
		{"P27: a Deployment", "apps/v1", "Deployment", `template: `, ``},
		{"P27: a StatefulSet", "apps/v1", "StatefulSet", `template: `, ``},
		{"P27: a DaemonSet", "apps/v1", "DaemonSet", `template: `, ``},
		{"P27: a ReplicaSet", "apps/v1", "ReplicaSet", `template: `, ``},
		{"P27: a Job, whose template cannot be changed", "batch/v1", "Job", `template: `, ``},
		{"P27: a CronJob", "batch/v1", "CronJob", `jobTemplate: {spec: {template: `, `}}`},
	} {
		live := parse(t, `{apiVersion: `+tc.apiVersion+`, kind: `+tc.kind+`, metadata: {name: d}, spec: {`+tc.before+pods+tc.after+`}}`)
		object := live.DeepCopy()
		if err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil); err != nil {
			t.Fatal(err)
		}
		if !LacksMetadata(live) || LacksMetadata(object) {
			t.Errorf("%s: the live object lacks metadata %t, the enhanced one %t", tc.reason, LacksMetadata(live), LacksMetadata(object))
		}
		if SamePods(object, live) {
			t.Errorf("%s: the metadata is no change of the pods", tc.reason)
		}
		if got := WithoutTemplateMetadata(object, live); !SamePods(got, live) {
			t.Errorf("%s: without the metadata, the pods are %v", tc.reason, got.Object["spec"])
		}
	}
}

// TestWithholdLeavesTheRest is P27: labels, annotations and owners of the object itself are those of the enhanced one.
func TestWithholdLeavesTheRest(t *testing.T) {
	live := parse(t, deployment+`{metadata: {labels: {app: d}}}}}`)
	object := live.DeepCopy()
	if err := Enhance([]*unstructured.Unstructured{object}, testContext(), nil); err != nil {
		t.Fatal(err)
	}
	got := WithoutTemplateMetadata(object, live)
	if diff := cmp.Diff(object.GetLabels(), got.GetLabels()); diff != "" {
		t.Errorf("labels: %s", diff)
	}
	if diff := cmp.Diff(object.GetOwnerReferences(), got.GetOwnerReferences()); diff != "" {
		t.Errorf("owners: %s", diff)
	}
	want := object.GetAnnotations()
	want["kudo.dev/withheld-hash"] = noDependencies
	if diff := cmp.Diff(want, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations: %s", diff)
	}
	again := WithoutTemplateMetadata(object, live)
	if diff := cmp.Diff(got.Object, again.Object); diff != "" {
		t.Errorf("a second time gives another object: %s", diff)
	}
}

// TestWithholdOfMalformedObjects is P27: what cannot be read is left as it is, and the API server says what is wrong.
func TestWithholdOfMalformedObjects(t *testing.T) {
	good := parse(t, deployment+`{metadata: {labels: {kudo.dev/instance: shop}}}}}`)
	for _, tc := range []struct{ reason, text string }{
		{"P27: no spec", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}`},
		{"P27: a template that is text", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: x}}`},
		{"P27: no template", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {volumeClaimTemplates: x}}`},
		{"P27: a claim that is text", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {volumeClaimTemplates: [x]}}`},
	} {
		bad := parse(t, tc.text)
		if LacksMetadata(bad) || SamePods(bad, bad) || WithheldHash(bad) != "" {
			t.Errorf("%s: it counts as an object with pods", tc.reason)
		}
		if diff := cmp.Diff(bad.Object, WithoutTemplateMetadata(bad, good).Object); diff != "" {
			t.Errorf("%s: it was changed: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(good.Object, WithoutTemplateMetadata(good, bad).Object); diff != "" {
			t.Errorf("%s: over it, another object was changed: %s", tc.reason, diff)
		}
		if WithoutClaimMetadata(bad, bad) != bad {
			t.Errorf("%s: its claims were changed", tc.reason)
		}
	}
}
