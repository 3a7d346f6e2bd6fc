package helmrelease

import (
	"fmt"
	"strings"
	"testing"
)

// aliased returns a document whose aliases repeat a text some ten thousand times.
func aliased(name, text string) string {
	ten := func(of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", 10), ",") + "]" }
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\na: &a '" + text + "'\nb: &b " + ten("*a") + "\nc: &c " + ten("*b") +
		"\nd: &d " + ten("*c") + "\ne: " + ten("*d") + "\n"
}

// TestConvertBounds is P31: the bounds are those of the whole release, however many manifests, files and hooks it has.
func TestConvertBounds(t *testing.T) {
	objects := func(n int) string {
		return strings.Repeat("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", n)
	}
	values := func(n int) (out string) {
		for i := range n {
			out += "---\n" + aliased(fmt.Sprintf("a%d", i), "x")
		}
		return out
	}
	for _, tc := range []struct {
		reason, manifest, crds, hook, want string
	}{
		{"P31: what fits", objects(1000), objects(500), objects(500), ""},
		{"P31: an object more in the manifest", objects(1001), objects(500), objects(500), "hook h: the release has more than 2000 objects"},
		{"P31: an object more in a file", objects(1000), objects(1001), "", "more than 2000 objects"},
		{"P31: values of many documents", values(200), "", "", "the manifest of the release: the release has more than 2000000 values"},
		{"P31: values of all parts", values(60), values(60), values(70), "hook h: the release has more than 2000000 values"},
		{"P31: a long text that aliases repeat", aliased("a", strings.Repeat("x", 10000)), "", "", "take more than 67108864 bytes"},
		{"P31: nested lines", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: " + strings.Repeat("[", 150) + strings.TrimSuffix(strings.Repeat("*d,", 30), ",") +
			strings.Repeat("]", 150) + "\n", "", "", "take more than 67108864 bytes"},
	} {
		r := testRelease(tc.manifest)
		if tc.hook != "" {
			r.Hooks = []Hook{{Name: "h", Events: []string{preInstall}, Manifest: tc.hook}}
		}
		if tc.crds != "" {
			r.Chart.Files = []File{{Name: "crds/a.yaml", Data: []byte(tc.crds)}}
		}
		_, err := Convert(r, testScope, nil)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestDecodeLists is P31: a list that is too long is refused before its entries take memory.
func TestDecodeLists(t *testing.T) {
	list := func(entry string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
	}
	for _, tc := range []struct{ reason, fields, want string }{
		{"P31: as many as may be", `"hooks": ` + list(`{}`, maxHooks) + `, "chart": {"files": ` + list(`{}`, maxFiles) + `}`, ""},
		{"P31: none", `"hooks": null, "chart": {"files": []}`, ""},
		{"P31: no list", `"hooks": {}`, "hooks are no list"},
		{"P31: files", `"chart": {"files": ` + list(`{}`, maxFiles+1) + `}`, "more than 5000 files of the chart"},
		{"P31: events", `"hooks": [{"events": ` + list(`""`, maxEvents+1) + `}]`, "more than 50 events of a hook"},
		{"P31: policies", `"hooks": [{"delete_policies": ` + list(`""`, maxEvents+1) + `}]`, "more than 50 deletion policies of a hook"},
		{"P31: an entry of another type", `"hooks": ["a"]`, "cannot unmarshal string"},
	} {
		_, err := Decode(stored(`{"name": "web", "version": 1, ` + tc.fields + `}`))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
		}
	}
	millions := stored(`{"name": "web", "version": 1, "hooks": ` + list(`{}`, 3_000_000) + `}`)
	result := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			if _, err := Decode(millions); err == nil {
				b.Fatal("millions of hooks were taken")
			}
		}
	})
	if used := result.AllocedBytesPerOp(); used > 4*MaxContent {
		t.Errorf("P31: millions of hooks take %d bytes", used)
	}
}

// TestFileNames is P31: each object has a file of its own, whatever its name is.
func TestFileNames(t *testing.T) {
	manifest := ""
	for _, name := range []string{"a", "a-2", "a", "a-2", "a", "A"} {
		manifest += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	converted, pkg := convert(t, testRelease(manifest))
	want := "objects[configmap-a.yaml configmap-a-2.yaml configmap-a-3.yaml configmap-a-2-2.yaml configmap-a-4.yaml configmap-a-5.yaml]"
	if got := tasksOf(pkg); got != want || len(converted.Files) != 8 {
		t.Errorf("the tasks are %s of %d files, want %s", got, len(converted.Files), want)
	}
}
