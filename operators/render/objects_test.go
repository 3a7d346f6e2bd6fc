package render

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecode(t *testing.T) {
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "
	for name, tc := range map[string]struct {
		reason, text string
		want         []string // kind/name
	}{
		"One":          {"one object", cm + "a\n", []string{"ConfigMap/a"}},
		"Order":        {"objects keep the order of the text", cm + "b\n---\n" + cm + "a\n---\n" + cm + "c\n", []string{"ConfigMap/b", "ConfigMap/a", "ConfigMap/c"}},
		"Nothing":      {"documents that render to nothing are skipped", "\n---\n\n---\n# comment\n---\n  \n", nil},
		"Empty":        {"no text at all", "", nil},
		"Edges":        {"--- at both ends, with comments and CRLF", "---\r\n" + cm + "a\r\n--- # next\r\n" + cm + "b\r\n---\r\n", []string{"ConfigMap/a", "ConfigMap/b"}},
		"BOM":          {"a byte order mark", "\ufeff" + cm + "a", []string{"ConfigMap/a"}},
		"List":         {"lists are replaced by their items, in order", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- apiVersion: v1\n  kind: List\n  items: [{apiVersion: v1, kind: B, metadata: {name: yy}}]\n---\n" + cm + "z", []string{"A/x", "B/yy", "ConfigMap/z"}},
		"TypedList":    {"items of typed lists need not say their kind", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: x}\n", []string{"ConfigMap/x"}},
		"EmptyList":    {"a list without items", "apiVersion: v1\nkind: List\nitems: []\n", nil},
		"JSON":         {"JSON is YAML", `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`, []string{"ConfigMap/a"}},
		"NullLabels":   {"labels without content", cm + "a\n  labels:\n  annotations: ~\n", []string{"ConfigMap/a"}},
		"DashesInText": {"dashes inside of a text are no separator", cm + "a\ndata:\n  x: |\n    ---\n    -----BEGIN\n", []string{"ConfigMap/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Decode("a.yaml", tc.text)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, object := range result.Objects {
				got = append(got, object.GetKind()+"/"+object.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecodeValues(t *testing.T) {
	result, err := Decode("a.yaml", "apiVersion: v1\nkind: X\nmetadata: {name: a}\nspec: {i: 12345678, f: 1.5, whole: 3.0, b: yes, big: 9223372036854775807, nil: ~, d: 2020-01-01, 1: x}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"i": int64(12345678), "f": 1.5, "whole": int64(3), "b": true, "big": int64(9223372036854775807), "nil": nil, "d": "2020-01-01", "1": "x"}
	if diff := cmp.Diff(want, result.Objects[0].Object["spec"]); diff != "" {
		t.Errorf("values are what the API machinery makes of YAML: -want +got:\n%s", diff)
	}
	// Would panic for types that are not JSON's.
	if !cmp.Equal(result.Objects[0].DeepCopy().Object, result.Objects[0].Object) {
		t.Error("objects can be copied")
	}
}

func TestDecodeErrors(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"NoName":     {"the name is missing", "# x\n---\n\napiVersion: v1\nkind: Secret\n", "template a.yaml, line 4 of what it renders to: document 1: Secret has no metadata.name"},
		"Second":     {"documents are counted", "apiVersion: v1\nkind: A\nmetadata: {name: a}\n---\nkind: B\n", "line 5 of what it renders to: document 2: B has no apiVersion"},
		"NoKind":     {"the kind is missing", "apiVersion: v1\nmetadata: {name: a}\n", "has no kind (its apiVersion is v1)"},
		"Neither":    {"both are missing", "a: 1\n", "has no apiVersion and no kind"},
		"Text":       {"plain text", "secret words\n", "is no object but text; it must begin with apiVersion and kind"},
		"Generate":   {"generateName", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n", "generateName cannot be used"},
		"NumberName": {"a name that YAML takes for a number", "apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\n", "metadata.name of Pod is no text but a number; quote it"},
		"BoolLabel":  {"a label that YAML takes for a boolean", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {x: yes}}\n", "metadata.labels.x of Pod a is no text but a boolean; quote it"},
		"ListLabels": {"labels that are a list", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: [x]}\n", "metadata.labels of Pod a is no map but a list"},
		"TextMeta":   {"metadata that is no map", "apiVersion: v1\nkind: Pod\nmetadata: x\n", "the metadata of Pod is no map but text"},
		"Malformed":  {"the line is that of the whole text", "a: 1\n---\nb: 2\nc: [\n", "line 4 of what it renders to: malformed YAML"},
		"NaN":        {"numbers that JSON does not have", "a: .nan\n", "cannot be written as JSON"},
		"ItemNoName": {"items of lists are checked", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n", "A has no metadata.name"},
		"ItemNoMap":  {"items of lists are objects", "apiVersion: v1\nkind: List\nitems: [x]\n", "is no object but text"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("a.yaml", tc.text)
			var got *Error
			if !errors.As(err, &got) || got.Kind != DecodeError {
				t.Fatalf("%s: error is %T %v", tc.reason, err, err)
			}
			if !strings.Contains(got.Error(), tc.want) {
				t.Errorf("%s: %q does not say %q", tc.reason, got.Error(), tc.want)
			}
			if strings.Contains(got.Error(), "secret words") {
				t.Error("what is rendered may be secret and is not shown")
			}
		})
	}
}

func TestDuplicateKeys(t *testing.T) {
	// Rule 21: keep the last of duplicate keys, each named in a warning.
	set := New(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: {{ .Name }}\n"})
	result, err := set.Objects("a.yaml", vars())
	if err != nil || result.Objects[0].GetName() != "inst" {
		t.Fatalf("the last one counts: %v, %v", result, err)
	}
	want := []Warning{{Template: "a.yaml", Line: 5, Message: "metadata.name is a duplicate of line 4, whose value is lost"}}
	if diff := cmp.Diff(want, result.Warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWithoutNames(t *testing.T) {
	// Rule 14: pipe pods have no name.
	result, err := Decode("a.yaml", "apiVersion: v1\nkind: Pod\nspec: {}\n", WithoutNames())
	if err != nil || len(result.Objects) != 1 || result.Objects[0].GetName() != "" {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestParameters(t *testing.T) {
	set := New(map[string]string{
		"ok.yaml":   "COUNT: {{ .Params.COUNT }}\nLIST:\n{{ toYaml .Params.LIST }}\nNAME: {{ .Name }}\nBIG: 1000000\n",
		"null.yaml": "A: {{ .Params.EMPTY }}\n",
		"bad.yaml":  "A: [\n",
	})
	got, err := set.Parameters("ok.yaml", vars())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"COUNT": "3", "LIST": "- a\n- 12345678\n", "NAME": "inst", "BIG": "1000000"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"null.yaml", "bad.yaml"} {
		_, err := set.Parameters(name, vars())
		var e *Error
		if !errors.As(err, &e) || e.Kind != DecodeError || e.Template != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"{{ .Params.A }}", "{{ range until 3 }}{{ . }}{{ end }}", `{{ define "x" }}{{ . }}{{ end }}{{ include "x" .Params.B | indent 2 }}`,
		"{{ toYaml .Params.B }}", `{{ printf "%*d" 5 (int .Params.A) }}`, `{{ $a := dict "a" 1 }}{{ set $a "b" $a }}`, "{{ with .Params }}{{ .A | quote | squote }}{{ end }}",
		`{{ list 1 2 | join "," | repeat 3 | replace "1" "22" | splitList "," }}`, "{{ regexReplaceAll `a` .Params.A `b` }}", "{{ range $i, $e := .Params.B }}{{ break }}{{ else }}{{ end }}"} {
		f.Add(seed, "7", "a: [1, {b: c}]")
	}
	f.Fuzz(func(t *testing.T, text, a, b string) {
		v := Variables{Name: "n", Params: map[string]any{"A": a}}
		v.Params["B"], _ = fromYaml(b)
		set := New(map[string]string{"a.yaml": text, "b.yaml": `{{ define "x" }}{{ . }}{{ end }}`})
		first, err := set.Text("a.yaml", v)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Template == "" || e.Reason == "" {
				t.Fatalf("error is %T %v", err, err)
			}
			return
		}
		second, err := New(map[string]string{"a.yaml": text}).Text("a.yaml", v)
		if err == nil && first != second {
			t.Errorf("rendering is not deterministic: %q, then %q", first, second)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add("apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {b: c}}\n---\nkind: List\napiVersion: v1\nitems: [{}]\n")
	f.Add("---\n# c\n--- x\n%YAML 1.1\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		result, err := Decode("a.yaml", text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error is %T %v", err, err)
			}
			return
		}
		for _, object := range result.Objects {
			_ = object.DeepCopy() // panics for types that are not JSON's
			if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
				t.Errorf("an object without kind, apiVersion or name: %v", object)
			}
		}
	})
}

// TestAll: several templates are rendered at a time as they are one by one; of several errors, the first name's counts.
func TestAll(t *testing.T) {
	templates, names := map[string]string{"broken.yaml": "{{ .Nothing }}", "wrong.yaml": "kind: X"}, []string{}
	for i := range 100 {
		name := fmt.Sprintf("t%d.yaml", i)
		templates[name] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}-%d'}\n{{ $_ := set .Params \"A\" \"%d\" }}data: {a: '{{ .Params.A }}'}\n", i, i)
		names = append(names, name)
	}
	v := vars()
	results, err := New(templates).All(names, v)
	if err != nil {
		t.Fatal(err)
	}
	one := New(templates)
	for i, name := range names {
		want, err := one.Objects(name, v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, results[i]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for range 20 {
		if _, err := New(templates).All(append([]string{"wrong.yaml", "broken.yaml"}, names...), v); err == nil || !strings.Contains(err.Error(), "wrong.yaml") {
			t.Errorf("the error of the first name: %v", err)
		}
	}
}

// deploymentText is a template as packages have them. %d is a number.
const deploymentText = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}-%d
  labels: {{ toYaml .Params.MAP | nindent 4 }}
spec:
  replicas: {{ int .Params.COUNT }}
  selector:
    matchLabels: {app: {{ .Name }}}
  template:
    metadata:
      labels: {app: {{ .Name }}}
    spec:
      containers:
      {{- range $i, $v := until 3 }}
      - name: c{{ $i }}
        image: nginx:{{ $.AppVersion }}
        ports:
        - containerPort: {{ add 8080 $i }}
      {{- end }}
`

// TestAllocations: a template that was parsed before is rendered to an object with no more allocations than this.
func TestAllocations(t *testing.T) {
	const most = 544
	set, v := New(map[string]string{"t.yaml": strings.Replace(deploymentText, "%d", "0", 1)}), vars()
	v.Params["MAP"] = map[string]any{"a": "x"}
	got := testing.AllocsPerRun(100, func() {
		if _, err := set.Objects("t.yaml", v); err != nil {
			t.Fatal(err)
		}
	})
	if got > most {
		t.Errorf("%g allocations, and not %d", got, most)
	}
}

func BenchmarkObjects(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		templates := map[string]string{}
		for i := range n {
			templates[fmt.Sprintf("t%d.yaml", i)] = strings.Replace(deploymentText, "%d", fmt.Sprint(i), 1)
		}
		v := vars()
		v.Params["MAP"] = map[string]any{"a": "x"}
		b.Run(fmt.Sprintf("cold/%d", n), func(b *testing.B) { benchmark(b, func() *Set { return New(templates) }, v) })
		warm := New(templates)
		b.Run(fmt.Sprintf("warm/%d", n), func(b *testing.B) { benchmark(b, func() *Set { return warm }, v) })
		checked := vars() // a value that is not plain: each rendering is compared with itself
		checked.Params["MAP"] = map[string]any{"a": "two words"}
		b.Run(fmt.Sprintf("checked/%d", n), func(b *testing.B) { benchmark(b, func() *Set { return warm }, checked) })
	}
}

func benchmark(b *testing.B, make func() *Set, v Variables) {
	b.ReportAllocs()
	for b.Loop() {
		set := make()
		if _, err := set.All(set.Names(), v); err != nil {
			b.Fatal(err)
		}
	}
}
