package enhance

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// emptied are the fields of metadata that a dump always has.
func emptied(more map[string]any) map[string]any {
	metadata := map[string]any{
		"annotations": map[string]any{}, "finalizers": []any{}, "managedFields": []any{}, "ownerReferences": []any{},
		"deletionGracePeriodSeconds": int64(0), "remainingItemCount": int64(0),
	}
	for key, value := range more {
		metadata[key] = value
	}
	return metadata
}

// TestSanitize checks what is left of an object before its digest is taken.
func TestSanitize(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, in string
		want       map[string]any
	}{
		"Kind": {"apiVersion and kind are emptied, and status is removed",
			`{apiVersion: example.org/v1, kind: X, metadata: {name: x}, status: {a: b}, spec: {c: d}}`,
			map[string]any{"metadata": emptied(map[string]any{"name": "x"}), "spec": map[string]any{"c": "d"}}},
		"NoMetadata": {"metadata is made", `{apiVersion: example.org/v1, kind: X}`, map[string]any{"metadata": emptied(nil)}},
		"Server": {"what the server writes is removed, labels stay", `{apiVersion: example.org/v1, kind: X, metadata: {name: x, namespace: n,
			resourceVersion: "1", uid: u, selfLink: l,
			generation: 2, generateName: g, creationTimestamp: t, deletionTimestamp: t, clusterName: c, labels: {a: b}, annotations: {c: d}, finalizers: [f],
			managedFields: [{}], ownerReferences: [{}], deletionGracePeriodSeconds: 30, remainingItemCount: 3, other: stays}}`,
			map[string]any{"metadata": emptied(map[string]any{"name": "x", "labels": map[string]any{"a": "b"}, "other": "stays"})}},
		"SecretType": {"a Secret without a type is Opaque", `{apiVersion: v1, kind: Secret}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque"}},
		"SecretNull": {"so is one whose type is null or empty", `{apiVersion: v1, kind: Secret, type: ""}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque"}},
		"SecretOwn": {"a type that is given stays", `{apiVersion: v1, kind: Secret, type: a/b}`,
			map[string]any{"metadata": emptied(nil), "type": "a/b"}},
		"StringData": {"stringData is encoded, and wins",
			`{apiVersion: v1, kind: Secret, data: {a: eA==, b: eQ==}, stringData: {a: z, c: "", m: null}}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque", "data": map[string]any{"a": "eg==", "b": "eQ==", "c": "", "m": ""}}},
		"StringDataText": {"stringData that is no map is dropped", `{apiVersion: v1, kind: Secret, stringData: x}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque"}},
		"DataText": {"data that is no map gives way to stringData", `{apiVersion: v1, kind: Secret, data: x, stringData: {a: b}}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque", "data": map[string]any{"a": "Yg=="}}},
		"NoBase64": {"what is not base64 stays", `{apiVersion: v1, kind: Secret, data: {a: "%%", m: 1}}`,
			map[string]any{"metadata": emptied(nil), "type": "Opaque", "data": map[string]any{"a": "%%", "m": int64(1)}}},
		"Lines": {"line breaks in base64 do not count", "apiVersion: v1\nkind: Secret\ndata: {a: \"eH\\nl6\\r\\n\"}",
			map[string]any{"metadata": emptied(nil), "type": "Opaque", "data": map[string]any{"a": "eHl6"}}},
		"SecretGroup": {"a Secret of another group is no Secret", `{apiVersion: example.org/v1, kind: Secret, stringData: {a: b}}`,
			map[string]any{"metadata": emptied(nil), "stringData": map[string]any{"a": "b"}}},
		"ConfigMap": {"empty maps of a ConfigMap are dropped, and nulls are empty",
			`{apiVersion: v1, kind: ConfigMap, data: {a: null, b: x}, binaryData: {}}`,
			map[string]any{"metadata": emptied(nil), "data": map[string]any{"a": "", "b": "x"}}},
		"ConfigMapNull": {"so are maps that are null", `{apiVersion: v1, kind: ConfigMap, data: null, binaryData: null}`,
			map[string]any{"metadata": emptied(nil)}},
		"Binary": {"binaryData is written as the server does, data is not",
			"apiVersion: v1\nkind: ConfigMap\ndata: {a: \"eH\\nl6\"}\nbinaryData: {a: \"eH\\nl6\", b: null}",
			map[string]any{"metadata": emptied(nil), "data": map[string]any{"a": "eH\nl6"}, "binaryData": map[string]any{"a": "eHl6", "b": ""}}},
		"ConfigMapText": {"data that is no map stays", `{apiVersion: v1, kind: ConfigMap, data: x}`,
			map[string]any{"metadata": emptied(nil), "data": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.in)
			before := object.DeepCopy()
			got, err := sanitize(object)
			if err != nil {
				t.Fatal(err)
			}
			tc.want["apiVersion"], tc.want["kind"] = "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Object, object.Object); diff != "" {
				t.Errorf("%s: the object is changed: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSanitizeAgain checks the law that what is sanitized is sanitized, for the kinds that are normalized.
func TestSanitizeAgain(t *testing.T) {
	for _, text := range []string{
		`{apiVersion: v1, kind: Secret, data: {a: "eH\nl6", b: null}, stringData: {a: z}}`,
		`{apiVersion: v1, kind: ConfigMap, data: {a: null}, binaryData: {b: "eH\nl6"}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {a: b}}, spec: {replicas: 1.0}}`,
	} {
		object := parse(t, text)
		once, err := sanitize(object)
		if err != nil {
			t.Fatal(err)
		}
		again := &unstructured.Unstructured{Object: map[string]any{}}
		for key, value := range once {
			again.Object[key] = value
		}
		again.SetAPIVersion(object.GetAPIVersion())
		again.SetKind(object.GetKind())
		twice, err := sanitize(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Errorf("%s: -once +twice:\n%s", text, diff)
		}
	}
}

// TestCopyValue checks the numbers of a copy, and that it shares nothing with what it is made of.
func TestCopyValue(t *testing.T) {
	root := rootOf(&unstructured.Unstructured{Object: map[string]any{"kind": "X"}})
	for name, tc := range map[string]struct {
		reason   string
		in, want any
		err      string
	}{
		"Int":       {"an int", 7, int64(7), ""},
		"Int32":     {"an int32", int32(-7), int64(-7), ""},
		"Whole":     {"a whole float", 7.0, int64(7), ""},
		"Negative":  {"a whole negative float", -7.0, int64(-7), ""},
		"Fraction":  {"a fraction", 7.5, 7.5, ""},
		"Exact":     {"the largest float whose neighbors are whole", float64(1<<53 - 1), int64(1<<53 - 1), ""},
		"Inexact":   {"a float that stands for several integers", float64(1 << 53), float64(1 << 53), ""},
		"Infinite":  {"infinity stays", math.Inf(1), math.Inf(1), ""},
		"Null":      {"a null", nil, nil, ""},
		"EmptyList": {"an empty list is no null", []any{}, []any{}, ""},
		"NilList":   {"a list without memory is an empty list", []any(nil), []any{}, ""},
		"NilMap":    {"a map without memory is an empty map", map[string]any(nil), map[string]any{}, ""},
		"Strange":   {"a type of Go has no JSON", uint8(1), nil, "X without a name: f is no JSON value, but uint8"},
		"InAMap": {"its path is named", map[string]any{"a": map[string]any{"b": struct{}{}}}, nil,
			"X without a name: f.a.b is no JSON value, but struct {}"},
		"InAList": {"a list is named as one", []any{map[string]any{"a": []any{[]string{}}}}, nil,
			"X without a name: f[].a[] is no JSON value, but []string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := copyValue(root, "f", tc.in)
			if message(err) != tc.err {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	inner := map[string]any{"a": []any{"x"}}
	got, err := copyValue(root, "", map[string]any{"m": inner})
	if err != nil {
		t.Fatal(err)
	}
	got.(map[string]any)["m"].(map[string]any)["a"].([]any)[0] = "changed"
	if inner["a"].([]any)[0] != "x" {
		t.Error("the copy shares a list with the object")
	}
}

// TestDumpErrors checks that an object that cannot be dumped is an error that names it.
func TestDumpErrors(t *testing.T) {
	for want, fields := range map[string]map[string]any{
		"ConfigMap without a name: metadata must be a map, not a string":   {"kind": "ConfigMap", "metadata": "x"},
		"ConfigMap without a name: data.a is no JSON value, but struct {}": {"kind": "ConfigMap", "data": map[string]any{"a": struct{}{}}},
	} {
		if text, err := dump(&unstructured.Unstructured{Object: fields}); message(err) != want || text != nil {
			t.Errorf("got %q, %v, want %s", text, err, want)
		}
	}
}

// TestDumpBytes checks the bytes of small objects: the order of keys, and how text is quoted and folded.
func TestDumpBytes(t *testing.T) {
	const tail = `  kind: ""
  metadata:
    annotations: {}
    deletionGracePeriodSeconds: 0
    finalizers: []
    managedFields: []
    ownerReferences: []
    remainingItemCount: 0
`
	for name, tc := range map[string]struct {
		reason string
		data   map[string]any
		want   string
	}{
		"Order": {"numbers in keys are compared as numbers", map[string]any{"a10": "x", "a9": "y", "B": "z"},
			"    B: z\n    a9: \"y\"\n    a10: x\n"},
		"Quotes": {"what yaml.v2 reads as something else is quoted", map[string]any{"a": "1", "b": "yes", "c": "", "d": "x: y"},
			"    a: \"1\"\n    b: \"yes\"\n    c: \"\"\n    d: 'x: y'\n"},
		"Lines": {"texts of several lines are blocks", map[string]any{"a": "x\ny\n"}, "    a: |\n      x\n      y\n"},
		"Fold": {"long lines are folded", map[string]any{"a": strings.Repeat("word ", 20) + "end"},
			"    a: " + strings.Repeat("word ", 14) + "word\n      word word word word word end\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := dump(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": tc.data}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("object:\n  apiVersion: \"\"\n  data:\n"+tc.want+tail, string(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
