package content

import (
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// version returns an OperatorVersion with something in most of its fields.
func version() *v1beta1.OperatorVersion {
	yes, text, lines := true, "1 < 2 & \"quoted\"\n\t\u2028\u00e9", int32(3)
	return &v1beta1.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1.0.0", Namespace: "default"},
		Spec: v1beta1.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Kind: "Operator", Name: "web"}, Version: "1.0.0",
			Templates:   map[string]string{"b.yaml": "kind: ConfigMap\n", "a.yaml": "{{ .Params.X }}"},
			Tasks:       []v1beta1.Task{{Name: "app", Kind: "Apply", Spec: v1beta1.TaskSpec{Resources: []string{"b.yaml", "a.yaml"}}}},
			Parameters:  []v1beta1.Parameter{{Name: "X", Required: &yes, Default: &text, MaxLines: &lines, Enum: &[]string{}}},
			Plans:       map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{{Name: "a", Steps: []v1beta1.Step{{Name: "b", Tasks: []string{"app"}}}}}}},
			CRDTarball:  &v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: "https://example.org/x.tgz", CABundle: []byte("ca")}},
			InstallPlan: "install",
		},
	}
}

// TestText checks S6 against RFC 8785: keys are sorted, nothing is escaped that need not be, and there is no space.
func TestText(t *testing.T) {
	v := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: "web-1.0.0"}}
	v.Spec = v1beta1.OperatorVersionSpec{Operator: corev1.ObjectReference{Kind: "Operator", Name: "web"}, Version: "1.0.0",
		Templates: map[string]string{"é": "é", "b": "<&>\u2028\x01\n", "a": `"\`}}
	got, err := Text(v)
	want := `{"apiVersion":"kudo.dev/v1beta1","kind":"OperatorVersion","name":"web-1.0.0","spec":{"operator":{"name":"web"},` +
		`"templates":{"a":"\"\\","b":"<&>` + "\u2028" + `\u0001\n","é":"é"},"version":"1.0.0"}}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

// TestDigest checks S6: what changes the digest, and what does not.
func TestDigest(t *testing.T) {
	want, err := Digest(version())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		same   bool
		change func(v *v1beta1.OperatorVersion)
	}{
		{"the namespace", true, func(v *v1beta1.OperatorVersion) { v.Namespace = "other" }},
		{"metadata", true, func(v *v1beta1.OperatorVersion) { v.UID, v.Generation, v.Labels = "x", 4, map[string]string{"a": "b"} }},
		{"status", true, func(v *v1beta1.OperatorVersion) { v.Status.Revision = 3 }},
		{"type", true, func(v *v1beta1.OperatorVersion) { v.Kind, v.APIVersion = "X", "y" }},
		{"install parameters, which are the administrator's", true, func(v *v1beta1.OperatorVersion) { v.Spec.InstallParameters = map[string]string{"X": "1"} }},
		{"provenance", true, func(v *v1beta1.OperatorVersion) { v.Spec.Provenance = &v1beta1.Provenance{Source: "oci://x"} }},
		{"the operator but for its name", true, func(v *v1beta1.OperatorVersion) {
			v.Spec.Operator = corev1.ObjectReference{Name: "web", UID: "1", Namespace: "x"}
		}},
		{"the default of the API server", true, func(v *v1beta1.OperatorVersion) { v.Spec.CRDTarball.CRDDownloadPolicy = v1beta1.DownloadIfNotPresent }},
		{"an empty list in place of none", true, func(v *v1beta1.OperatorVersion) { v.Spec.UpgradableFrom = []corev1.ObjectReference{} }},
		{"another download policy", false, func(v *v1beta1.OperatorVersion) { v.Spec.CRDTarball.CRDDownloadPolicy = v1beta1.DownloadAlways }},
		{"the name", false, func(v *v1beta1.OperatorVersion) { v.Name = "web-1.0.1" }},
		{"the operator", false, func(v *v1beta1.OperatorVersion) { v.Spec.Operator.Name = "db" }},
		{"the version", false, func(v *v1beta1.OperatorVersion) { v.Spec.Version = "1.0.1" }},
		{"one byte of a template", false, func(v *v1beta1.OperatorVersion) { v.Spec.Templates["b.yaml"] = "kind: ConfigMap\n\n" }},
		{"the order of resources", false, func(v *v1beta1.OperatorVersion) { v.Spec.Tasks[0].Spec.Resources = []string{"a.yaml", "b.yaml"} }},
		{"a default", false, func(v *v1beta1.OperatorVersion) { v.Spec.Parameters[0].Default = nil }},
		{"an empty enum, which is another rule than none", false, func(v *v1beta1.OperatorVersion) { v.Spec.Parameters[0].Enum = nil }},
		{"a number", false, func(v *v1beta1.OperatorVersion) { *v.Spec.Parameters[0].MaxLines = 4 }},
		{"a plan", false, func(v *v1beta1.OperatorVersion) { v.Spec.Plans["cleanup"] = v1beta1.Plan{} }},
		{"the install plan", false, func(v *v1beta1.OperatorVersion) { v.Spec.InstallPlan = "" }},
		{"the install policy", false, func(v *v1beta1.OperatorVersion) {
			v.Spec.InstallPolicy = &v1beta1.InstallPolicy{SharedUpdates: "SameOperator"}
		}},
		{"certificates", false, func(v *v1beta1.OperatorVersion) { v.Spec.CRDTarball.HTTPSource.CABundle = []byte("cb") }},
	} {
		v := version()
		tc.change(v)
		got, err := Digest(v)
		if err != nil || (got == want) != tc.same {
			t.Errorf("%s: digest %s, %v; want the same: %v", tc.reason, got, err, tc.same)
		}
		if same, err := Same(version(), v); err != nil || same != tc.same {
			t.Errorf("%s: the same: %t, %v; want %t", tc.reason, same, err, tc.same)
		}
	}
}

// TestTextRefuses checks S7: what has no canonical text of its own.
func TestTextRefuses(t *testing.T) {
	big := int32(1<<31 - 1)
	for _, tc := range []struct {
		reason, want string
		change       func(v *v1beta1.OperatorVersion)
	}{
		{"a template that is not UTF-8", "spec.templates.b.yaml is not UTF-8: convert the file to UTF-8", func(v *v1beta1.OperatorVersion) { v.Spec.Templates["b.yaml"] = "\xff" }},
		{"a name that is not UTF-8", "which is not UTF-8: rename it", func(v *v1beta1.OperatorVersion) { v.Spec.Templates["\xff"] = "x" }},
		{"a text in a list", "spec.tasks[0].name is not UTF-8", func(v *v1beta1.OperatorVersion) { v.Spec.Tasks[0].Name = "\xc3\x28" }},
		{"the largest number", "", func(v *v1beta1.OperatorVersion) { v.Spec.Parameters[0].MaxLines = &big }},
	} {
		v := version()
		tc.change(v)
		_, err := Text(v)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	for _, value := range []any{1.5, int64(maxInteger + 1), int64(-maxInteger - 1)} {
		if check(map[string]any{"x": value}, "") == nil {
			t.Errorf("%v is taken", value)
		}
	}
}

// TestSameRefuses checks that a version without a canonical text is the same as no other, nor as itself, on either side.
func TestSameRefuses(t *testing.T) {
	broken := version()
	broken.Spec.Templates["b.yaml"] = "\xff"
	for _, tc := range []struct {
		reason      string
		left, right *v1beta1.OperatorVersion
	}{
		{"on the left", broken, version()},
		{"on the right", version(), broken},
		{"on both sides", broken, broken},
	} {
		same, err := Same(tc.left, tc.right)
		if err == nil || !strings.Contains(err.Error(), "spec.templates.b.yaml is not UTF-8") {
			t.Errorf("%s: %v, want that the template is not UTF-8", tc.reason, err)
		}
		if same {
			t.Errorf("%s: the versions count as the same", tc.reason)
		}
	}
}

// TestNumbers checks S7: RFC 8785 reads numbers as float64, so that no field of spec is a number that float64 does not hold exactly.
func TestNumbers(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(at reflect.Type, path string)
	walk = func(at reflect.Type, path string) {
		switch at.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			if at.Kind() == reflect.Map && at.Key().Kind() != reflect.String {
				t.Errorf("%s has keys of %s", path, at.Key())
			}
			walk(at.Elem(), path)
		case reflect.Struct:
			if seen[at] {
				return
			}
			seen[at] = true
			for i := range at.NumField() {
				walk(at.Field(i).Type, path+"."+at.Field(i).Name)
			}
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Uint8:
		default:
			t.Errorf("%s is of type %s, which the canonical text of some values cannot hold: use text", path, at)
		}
	}
	walk(reflect.TypeFor[v1beta1.OperatorVersionSpec](), "spec")
}

// TestDigestOfRoundTrip checks S6 for the packages of the catalog: what a client reads from an API server, which keeps JSON, has the
// digest of the package.
func TestDigestOfRoundTrip(t *testing.T) {
	const catalog = "../catalog"
	files := os.DirFS(catalog)
	found, err := fs.Glob(files, "*/operator/operator.yaml")
	if err != nil || len(found) == 0 {
		t.Fatalf("no packages in %s: %v", catalog, err)
	}
	for _, file := range found {
		dir, err := fs.Sub(files, path.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := operators.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, v, err := operators.Convert(pkg, "default")
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := &v1beta1.OperatorVersion{}
		if err := json.Unmarshal(encoded, back); err != nil {
			t.Fatal(err)
		}
		want, err := Digest(v)
		got, errBack := Digest(back)
		if err != nil || errBack != nil || got != want {
			t.Errorf("%s: the package has %s, %v, and the object %s, %v", file, want, err, got, errBack)
		}
	}
}

// FuzzText checks that texts of any OperatorVersion that JSON can hold are the same for what is read from them.
func FuzzText(f *testing.F) {
	f.Add("web", "a.yaml", "x")
	f.Add("web", "\u2028", "\ufffd\\ufffd")
	f.Add("\U0001f600", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, name, key, value string) {
		v := version()
		v.Name, v.Spec.Templates = name, map[string]string{key: value}
		text, err := Text(v)
		if err != nil {
			return
		}
		var back v1beta1.OperatorVersion
		var read struct {
			Name string                      `json:"name"`
			Spec v1beta1.OperatorVersionSpec `json:"spec"`
		}
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatalf("the text %q is no JSON: %v", text, err)
		}
		back.Name, back.Spec = read.Name, read.Spec
		if read.Name != name || read.Spec.Templates[key] != value {
			t.Fatalf("the text %q does not hold %q, %q, %q", text, name, key, value)
		}
		if again, err := Text(&back); err != nil || string(again) != string(text) {
			t.Fatalf("%q became %q, %v", text, again, err)
		}
	})
}

// TestCheck shows which values have a canonical text that no other value has, and how the field of one without is named.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		reason string
		value  any
		want   string
	}{
		{"a null and a boolean", []any{nil, true}, ""},
		{"the largest integers of a float64", []any{int64(maxInteger), int64(-maxInteger)}, ""},
		{"an integer beyond them", int64(maxInteger + 1), "a is 9007199254740993, which is no integer of at most 53 bits: make it smaller"},
		{"the smallest integer", []any{int64(math.MinInt64)}, "a[0] is -9223372036854775808, which is no integer of at most 53 bits: make it smaller"},
		{"a float, which no field has", map[string]any{"b": 1.5}, "a.b is of type float64, which has no canonical text"},
		{"a text below a list", []any{"x", map[string]any{"b": "\xff"}}, "a[1].b is not UTF-8: convert the file to UTF-8"},
	} {
		got := ""
		if err := check(map[string]any{"a": tc.value}, ""); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}
