package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/dryrun"
)

// TestWholeValues checks that a value whose beginning is also that of a sensitive one is shown, and is part of the digest, as a whole: a
// package could hide a part of an object behind its own default (P7, P16).
func TestWholeValues(t *testing.T) {
	secret := strings.Repeat("a", 3000)
	of := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": value}}}
	}
	d := compare(of("x"), of(secret[:2000]+"… payload …"), params.NewMask([]string{secret + "b"}))
	if len(d.fields) != 1 || !strings.Contains(d.fields[0].whole, "payload") {
		t.Errorf("%+v", d.fields)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestCompare checks the fields of differences (P7).
func TestCompare(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, resourceVersion: '1'}\n"
	for name, tc := range map[string]struct {
		reason, before, after string
		want                  []string
		metadata              int
	}{
		"Scalar":    {"a scalar", deployment + "spec: {replicas: 1}", deployment + "spec: {replicas: 2}", []string{".spec.replicas: 1 -> 2"}, 0},
		"Server":    {"what the API server keeps does not count", deployment + "status: {replicas: 1}", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, resourceVersion: '2', generation: 3, uid: x}\nstatus: {}\n", nil, 0},
		"Keyed":     {"items of lists are told apart by their names", deployment + "spec: {c: [{name: a, image: x}, {name: b, image: w}]}", deployment + "spec: {c: [{name: b, image: z}, {name: a, image: x}]}", []string{".spec.c[name=b].image: w -> z"}, 0},
		"Ports":     {"or by port and protocol", deployment + "spec: {p: [{port: 1, protocol: TCP, nodePort: 5}]}", deployment + "spec: {p: [{port: 1, protocol: TCP, nodePort: 6}]}", []string{".spec.p[port=1,protocol=TCP].nodePort: 5 -> 6"}, 0},
		"Unkeyed":   {"other lists change as a whole", deployment + "spec: {args: [a]}", deployment + "spec: {args: [a, b]}", []string{`.spec.args: ["a"] -> ["a","b"]`}, 0},
		"Twice":     {"so do lists with two items of a key", deployment + "spec: {c: [{name: a}, {name: a}]}", deployment + "spec: {c: [{name: a}]}", []string{`.spec.c: [{"name":"a"},{"name":"a"}] -> [{"name":"a"}]`}, 0},
		"Added":     {"a field that was not there", deployment, deployment + "spec: {paused: true}", []string{".spec.paused: (none) -> true"}, 0},
		"Removed":   {"and one that goes", deployment + "spec: {paused: true}", deployment, []string{".spec.paused: true -> (none)"}, 0},
		"Own":       {"kudo's own metadata is counted, but for what every run writes", "kind: X\nmetadata: {annotations: {kudo.dev/plan: a, kudo.dev/operator: a}, labels: {heritage: kudo, mine: a}}", "kind: X\nmetadata: {annotations: {kudo.dev/plan: b, kudo.dev/operator: b}, labels: {mine: b}}", []string{".metadata.labels.mine: a -> b"}, 2},
		"Keep":      {"but what a user means by it is shown", "kind: X\nmetadata: {annotations: {kudo.dev/keep: 'true'}}", "kind: X\nmetadata: {}", []string{`.metadata.annotations["kudo.dev/keep"]: true -> (none)`}, 0},
		"Secret":    {"data of a Secret is not shown, nor are its keys", "apiVersion: v1\nkind: Secret\ndata: {k: YQ==, l: YQ==}", "apiVersion: v1\nkind: Secret\ndata: {k: Yg==, m: Yg==}", []string{".data: (masked, changed)"}, 0},
		"Sensitive": {"nor are sensitive values elsewhere", deployment + "spec: {a: former}", deployment + "spec: {a: hunter2!}", []string{".spec.a: (masked, changed)"}, 0},
		"Long":      {"a long value is cut", deployment + "spec: {a: x}", deployment + "spec: {a: " + strings.Repeat("y", 500) + "}", []string{".spec.a: x -> " + strings.Repeat("y", maxValue-3) + "…"}, 0},
		"Hostile":   {"control characters do not reach a terminal", deployment + "spec: {a: x}", deployment + `spec: {a: "y\x1b[31m"}`, []string{".spec.a: x -> y[31m"}, 0},
		"Empty":     {"an empty list is none", deployment + "spec: {a: [], b: 1}", deployment + "spec: {b: 1}", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := compare(parse(t, tc.before), parse(t, tc.after), params.NewMask([]string{"hunter2!"}))
			var got []string
			for _, f := range d.fields {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if d.metadata != tc.metadata {
				t.Errorf("%s: %d labels and annotations of kudo, want %d", tc.reason, d.metadata, tc.metadata)
			}
		})
	}
}

// TestRestartOf checks which pods are replaced, and why (P9).
func TestRestartOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured
		uncertain     string
		want          string
	}{
		"Image":     {"another template", workload("a", "1"), workload("b", "1"), "", "restarts 3 pods (rolling): the pod template changes"},
		"Hash":      {"another hash of what the pods use", workload("a", "1"), workload("a", "2"), "", "restarts 3 pods (rolling): a ConfigMap or Secret that the pods use changes"},
		"Uncertain": {"what is not known is said", workload("a", "1"), workload("a", "2"), "Secret login was changed", "may restart 3 pods (rolling): Secret login was changed"},
		"None": {"replicas alone replace no pod", workload("a", "1"), func() *unstructured.Unstructured {
			w := workload("a", "1")
			_ = unstructured.SetNestedField(w.Object, int64(5), "spec", "replicas")
			return w
		}(), "", ""},
		"Scaled": {"none are there to be replaced", func() *unstructured.Unstructured {
			w := workload("a", "1")
			_ = unstructured.SetNestedField(w.Object, int64(0), "spec", "replicas")
			return w
		}(), workload("b", "1"), "", ""},
		"Upgrade":  {"another version of the operator alone", workload("a", "1"), annotated(v1beta1.OperatorVersionAnnotation), "", "restarts 3 pods (rolling): an upgrade replaces all pods"},
		"Metadata": {"kudo's own metadata alone", workload("a", "1"), annotated("kudo.dev/another"), "", "restarts 3 pods (rolling): kudo's own metadata on the pod template changes"},
		"Recreate": {"all pods go at once", workload("a", "1"), func() *unstructured.Unstructured {
			w := workload("b", "1")
			_ = unstructured.SetNestedField(w.Object, "Recreate", "spec", "strategy", "type")
			return w
		}(), "", "restarts 3 pods (recreate): the pod template changes"},
		"OnDelete": {"a StatefulSet may wait for its user", statefulSet("a"), statefulSet("b"), "", "restarts 1 pod (on delete): the pod template changes"},
	} {
		t.Run(name, func(t *testing.T) {
			d := compare(tc.before, tc.after, params.Mask{})
			got := ""
			if r := restartOf(dryrun.Change{Before: tc.before, After: tc.after}, d, tc.uncertain); r != nil {
				got = r.String()
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// annotated is a workload whose pods have one more annotation.
func annotated(key string) *unstructured.Unstructured {
	w := workload("a", "1")
	_ = unstructured.SetNestedField(w.Object, "2", "spec", "template", "metadata", "annotations", key)
	return w
}

// TestFieldsAreBounded checks that a text shows at most 20 fields of an object, and counts the others, which JSON has (P7).
func TestFieldsAreBounded(t *testing.T) {
	object := Object{Kind: "ConfigMap", Name: "c", Effect: Modify}
	for n := range 25 {
		object.Fields = append(object.Fields, Field{Path: fmt.Sprintf(".data.key%02d", n), From: "a", To: "b"})
	}
	p := &Preview{Verb: "update", Subject: "Instance ns/i", Objects: []Object{object}}
	var text, comment strings.Builder
	if err := errors.Join(p.WriteText(&text), p.WriteMarkdown(&comment)); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"text": text.String(), "markdown": comment.String()} {
		if !strings.Contains(got, ".data.key19") || strings.Contains(got, ".data.key20") || !strings.Contains(got, "and 5 more fields") {
			t.Errorf("%s shows\n%s", name, got)
		}
	}
	content, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(content), ".data.key24") {
		t.Errorf("JSON has %s, %v", content, err)
	}
}

func statefulSet(image string) *unstructured.Unstructured {
	w := workload(image, "1")
	w.SetKind("StatefulSet")
	unstructured.RemoveNestedField(w.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(w.Object, "OnDelete", "spec", "updateStrategy", "type")
	return w
}

// TestMarkdownIsHarmless checks that text of packages does not act in a comment, and that a comment is bounded (P15).
func TestMarkdownIsHarmless(t *testing.T) {
	p := &Preview{Verb: "update", Subject: "Instance a/b --> <script>", Warnings: []string{"@everyone [x](javascript:y) | `z` <img src=q>"}}
	for range 2000 {
		p.Objects = append(p.Objects, Object{Kind: "ConfigMap", Name: "c", Effect: Modify, Fields: []Field{{Path: ".data.k", From: "a", To: "<b>|" + strings.Repeat("x", 50)}}})
	}
	var out strings.Builder
	if err := p.WriteMarkdown(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, bad := range []string{"<script>", "<img", "@everyone", "](", "<b>", "b -->"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is not escaped", bad)
		}
	}
	if len(text) > maxMarkdown+1000 || !strings.Contains(text, "are left out") {
		t.Errorf("%d bytes", len(text))
	}
}

// FuzzCompare checks that a difference of any two objects is found, bounded and free of what is masked.
func FuzzCompare(f *testing.F) {
	f.Add(`{"kind":"A","spec":{"a":[{"name":"x"}]}}`, `{"kind":"A","spec":{"a":[{"name":"y"},1,null]}}`)
	f.Add(`{"kind":"Secret","apiVersion":"v1","data":{"hunter2!":"hunter2!"}}`, `{"kind":"Secret","apiVersion":"v1"}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		before, after := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if before.UnmarshalJSON([]byte(a)) != nil || after.UnmarshalJSON([]byte(b)) != nil {
			t.Skip()
		}
		for _, field := range compare(before, after, params.NewMask([]string{"hunter2!"})).fields {
			if strings.Contains(field.String(), "hunter2!") || len(field.From) > maxValue || len(field.To) > maxValue {
				t.Errorf("got %q", field)
			}
		}
	})
}

// TestMerge checks what is shown of a write that was refused: what it would have changed (P8).
func TestMerge(t *testing.T) {
	live := parse(t, "spec: {a: 1, server: x, claims: [{metadata: {name: data}, spec: {size: 1Gi, mode: server}}], args: [a], list: [{v: 1, s: server}]}")
	body := parse(t, "spec: {a: 2, claims: [{metadata: {name: data}, spec: {size: 5Gi}}], args: [b, c], list: [{v: 2}]}")
	merged, _ := merge(live.Object, body.Object).(map[string]any)
	var got []string
	for _, f := range compare(live, &unstructured.Unstructured{Object: merged}, params.Mask{}).fields {
		got = append(got, f.String())
	}
	want := []string{".spec.a: 1 -> 2", `.spec.args: ["a"] -> ["b","c"]`, ".spec.claims[metadata.name=data].spec.size: 1Gi -> 5Gi", `.spec.list: [{"s":"server","v":1}] -> [{"s":"server","v":2}]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSeal (P16): the digest covers what does not run now: the content of the OperatorVersion, and the account.
func TestSeal(t *testing.T) {
	seen := map[string]string{}
	for name, p := range map[string]*Preview{
		"nothing": {}, "a version": {Content: "sha256:a"}, "another version": {Content: "sha256:b"}, "an account": {Account: "sha256:a"},
		"both": {Content: "sha256:a", Account: "kudo"},
	} {
		if err := p.seal(); err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[p.Digest]; twice {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[p.Digest] = name
	}
}
