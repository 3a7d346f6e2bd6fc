package testsuite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

// folder writes files, named by their paths.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
	head   = "apiVersion: kuttl.dev/v1beta1\nkind: "
)

func TestLoad(t *testing.T) {
	type step struct {
		Index                    int
		Name                     string
		Applies, Asserts, Errors int
		Commands                 []string
		Seconds                  float64
	}
	for _, tc := range []struct {
		reason string
		files  map[string]string
		want   []step
		err    string
	}{
		{"roles are the word after the number, whatever its case", map[string]string{"00-install.yaml": object, "00-assert.yaml": object, "00-Errors-x.yaml": object}, []step{{Name: "install", Applies: 1, Asserts: 1, Errors: 1}}, ""},
		{"numbers order steps, not texts", map[string]string{"2-b.yaml": object, "10-c.yaml": object, "01-a.yaml": object}, []step{{Index: 1, Name: "a", Applies: 1}, {Index: 2, Name: "b", Applies: 1}, {Index: 10, Name: "c", Applies: 1}}, ""},
		{"names keep their dashes", map[string]string{"00-a-b-c.yaml": object}, []step{{Name: "a-b-c", Applies: 1}}, ""},
		{"other endings and names are no steps", map[string]string{"00-a.yaml": object, "00-b.yml": "x", "00-a.b.yaml": "x", "README.md": "x", "values.yaml": "x"}, []step{{Name: "a", Applies: 1}}, ""},
		{"a folder is a step", map[string]string{"00-a/cm.yaml": object, "00-a/assert.yaml": object, "00-a/01-errors.yaml": object}, []step{{Name: "a", Applies: 1, Asserts: 1, Errors: 1}}, ""},
		{"index moves a step", map[string]string{"00-a.yaml": head + "TestStep\nindex: 3", "01-b.yaml": object}, []step{{Index: 1, Name: "b", Applies: 1}, {Index: 3, Name: "a"}}, ""},
		{"metadata.name names a step", map[string]string{"00-a.yaml": head + "TestStep\nmetadata: {name: named}"}, []step{{Name: "named"}}, ""},
		{"kubectl is the older way of commands", map[string]string{"00-a.yaml": "apiVersion: kudo.dev/v1alpha1\nkind: TestStep\nkubectl: [get pods]"}, []step{{Name: "a", Commands: []string{"kubectl get pods"}}}, ""},
		{"the last timeout counts, also a smaller one", map[string]string{"00-assert-1.yaml": head + "TestAssert\ntimeout: 9", "00-assert-2.yaml": head + "TestAssert\ntimeout: 2"}, []step{{Seconds: 2}}, ""},
		{"paths are relative to the case", map[string]string{"00-a.yaml": head + "TestStep\napply: [../00-case/f.yaml]\nassert: [f.yaml]\nerror: [d]", "f.yaml": object, "d/x.yaml": object}, nil, "no such file"},
		{"a file without kind is a mistake", map[string]string{"00-a.yaml": "a: b"}, nil, "lacks apiVersion or kind"},
		{"URLs are not read", map[string]string{"00-a.yaml": head + "TestStep\napply: ['https://example.com/a.yaml']"}, nil, "read from files only"},
		{"types are checked", map[string]string{"00-a.yaml": head + "TestStep\ncommands: {}"}, nil, "TestStep"},
		{"an empty folder is no case", nil, nil, "holds no step"},
	} {
		c, err := Load(folder(t, tc.files), nil)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		var got []step
		for _, s := range c.Steps {
			o := step{Index: s.Index, Name: s.Name, Applies: len(s.Applies), Asserts: len(s.Asserts), Errors: len(s.Errors), Seconds: s.Timeout.Seconds()}
			for _, c := range s.Commands {
				o.Commands = append(o.Commands, c.Command)
			}
			got = append(got, o)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

func TestTestFile(t *testing.T) {
	dir := folder(t, map[string]string{"00-a.yaml": head + "TestFile\ntestRunSelector: {matchLabels: {a: b}}\n---\n" + object, "00-b.yaml": object})
	for _, tc := range []struct {
		run  labels.Set
		want int
	}{{nil, 1}, {labels.Set{"a": "c"}, 1}, {labels.Set{"a": "b"}, 2}} {
		c, err := Load(dir, tc.run)
		if err != nil || len(c.Steps[0].Applies) != tc.want {
			t.Errorf("labels %v: %+v, %v, want %d objects", tc.run, c, err, tc.want)
		}
	}
}

func TestCases(t *testing.T) {
	dir := folder(t, map[string]string{
		"suite/01-first/00-a.yaml": object, "suite/second/00-x/a.yaml": object, "suite/none/a.yaml": object, "suite/.hidden/00-a.yaml": object,
		"folders/00-x/a.yaml": object,
	})
	for _, tc := range []struct {
		reason, dir, name string
		want              []string
	}{
		{"numbered cases are cases", "suite", "", []string{"suite/01-first", "suite/second"}},
		{"a name chooses exactly", "suite", "second", []string{"suite/second"}},
		{"a case itself", "suite/01-first", "", []string{"suite/01-first"}},
		{"a case of folders", "folders", "", []string{"folders"}},
		{"part of a name chooses nothing", "suite", "sec", nil},
	} {
		found, err := Cases([]string{filepath.Join(dir, tc.dir)}, tc.name)
		var got []string
		for _, f := range found {
			rel, _ := filepath.Rel(dir, f)
			got = append(got, rel)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tc.reason, err, diff)
		}
	}
}

func TestDecodeNotes(t *testing.T) {
	dir := folder(t, map[string]string{"00-a.yaml": head + "TestStep\nsurprise: 1\ncommands: [{command: x, color: red}]"})
	c, err := Load(dir, nil)
	if err != nil || len(c.Notes) != 2 {
		t.Fatalf("%v, notes %q", err, c.Notes)
	}
	for _, want := range []string{`"surprise"`, `color`} {
		if !strings.Contains(strings.Join(c.Notes, "\n"), want) {
			t.Errorf("no note of %s: %q", want, c.Notes)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{object, "---\n# x\n---\n" + object, "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret}]", `{"apiVersion":"v1","kind":"A","metadata":null}`, "[]", "a: &a [*a]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		objs, err := parse(content)
		if err != nil {
			return
		}
		for _, obj := range objs {
			if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
				t.Errorf("an object without kind or version: %v", obj.Object)
			}
			if d := Differences(obj.Object, obj.DeepCopy().Object, ""); len(d) > 0 {
				t.Errorf("an object must contain itself: %v", d)
			}
		}
	})
}
