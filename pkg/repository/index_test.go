package repository

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"kudo.dev/kudo/operators/versions"
)

const canonical = `apiVersion: v1
entries:
  mysql:
  - appVersion: "5.7"
    description: |
      A database.
        web:
    digest: 2CF24DBA5FB0A30E26E83B2AC5B9E29E1B161E5C1FA7425E73043362938B9824
    name: mysql
    operatorVersion: 0.2.0
    urls:
    - https://example.com/a.tgz
  - appVersion: "5.7"
    name: mysql
    operatorVersion: 0.10.0
    urls: [b.tgz]
  "1234":
  - operatorVersion: 1.0.0
    urls: []
generated: "2020-01-02T03:04:05Z"
`

func versionsIn(t *testing.T, x *Index, name string) []string {
	t.Helper()
	entries, err := x.Versions(name)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.AppVersion+"/"+e.OperatorVersion)
	}
	return got
}

// TestParseIndex: the layout of machines and others say the same.
func TestParseIndex(t *testing.T) {
	flow := "# by hand\napiVersion: v1\nentries: {mysql: [{operatorVersion: 0.2.0, appVersion: '5.7', urls: [x]}, {operatorVersion: 0.10.0, appVersion: '5.7'}], '1234': [{operatorVersion: 1.0.0}], none: []}\n"
	for name, text := range map[string]string{"Canonical": canonical, "Flow": flow, "NoEnd": strings.TrimRight(canonical, "\n"), "Anchors": canonical + "# &x\n"} {
		t.Run(name, func(t *testing.T) {
			x, err := ParseIndex([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"1234", "mysql"}, x.Names()); diff != "" {
				t.Errorf("names are sorted, and those without entries are none: %s", diff)
			}
			if diff := cmp.Diff([]string{"5.7/0.10.0", "5.7/0.2.0"}, versionsIn(t, x, "mysql")); diff != "" {
				t.Errorf("the highest version comes first, by number: %s", diff)
			}
			if got := versionsIn(t, x, "web"); got != nil {
				t.Errorf("text that looks like a package is none: %v", got)
			}
		})
	}
}

func TestParseIndexRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Empty":        {"nothing", "", "no index of a repository"},
		"HTML":         {"a page of a portal", "<html><body>Log in</body></html>", "no index of a repository"},
		"NoVersion":    {"apiVersion must be there", "entries: {}\n", "no apiVersion"},
		"OtherVersion": {"in the version that is known", "apiVersion: v2\nentries: {}\n", `apiVersion "v2"`},
		"NoOperator":   {"operatorVersion must be there", "apiVersion: v1\nentries:\n  a:\n  - name: a\n", "no operatorVersion"},
		"OtherName":    {"entries are of their package", "apiVersion: v1\nentries:\n  a:\n  - name: b\n    operatorVersion: 1.0.0\n", `is of package "b"`},
		"Digest":       {"a digest has its length", "apiVersion: v1\nentries:\n  a:\n  - operatorVersion: 1.0.0\n    digest: abc\n", "no SHA-256"},
		"Twice":        {"a package is there once", "apiVersion: v1\nentries:\n  a:\n  - operatorVersion: 1.0.0\n  a:\n  - operatorVersion: 2.0.0\n", "twice"},
		"Path":         {"names are no paths", "apiVersion: v1\nentries: {../x: [{operatorVersion: 1.0.0}]}\n", "no package can be called"},
		"Cut":          {"parts must be YAML", "apiVersion: v1\nentries:\n  a:\n  - operatorVersion: \"1.0.0\n", "package a in the index"},
		"Bomb":         {"aliases are bounded", "apiVersion: v1\nx: &a [1,1,1,1,1,1,1,1,1]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nz: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\ne: &d [*c,*c,*c,*c,*c,*c,*c,*c]\nentries: {a: [*d,*d,*d,*d,*d,*d,*d,*d,*d]}\n", "no index"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := ParseIndex([]byte(tc.text))
			if err == nil {
				_, err = x.Versions("a")
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestEncodeIndex: the same entries give the same bytes in any order, which can be read part by part.
func TestEncodeIndex(t *testing.T) {
	a := Entry{Name: "a", OperatorVersion: "1.0.0", Description: "two\n\nlines:\n  b:\n", URLs: []string{"a.tgz"}}
	b := Entry{Name: "a", OperatorVersion: "1.10.0", AppVersion: "yes", Description: strings.Repeat("long: \"text\" # ", 20), URLs: []string{"b.tgz"}}
	first, err := EncodeIndex(map[string][]Entry{"a": {a, b}, "true": {{OperatorVersion: "1e3"}}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	second, err := EncodeIndex(map[string][]Entry{"true": {{OperatorVersion: "1e3"}}, "a": {b, a}}, time.Unix(0, 0))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("%v:\n%s\n%s", err, first, second)
	}
	if _, plain := split(first); !plain {
		t.Errorf("what is written has the layout that is read fast:\n%s", first)
	}
	x, err := ParseIndex(first)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Versions("a")
	if diff := cmp.Diff([]Entry{b, a}, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
}

func TestChoose(t *testing.T) {
	entries := []Entry{}
	for _, v := range [][2]string{{"5.7", "0.2.0"}, {"5.7", "0.10.0"}, {"5.7.1", "0.3.0"}, {"8.0.0", "1.0.0-rc.1"}, {"", "3.0.0"}, {"latest", "2.0.0"}} {
		entries = append(entries, Entry{Name: "a", AppVersion: v[0], OperatorVersion: v[1], URLs: []string{"x"}})
	}
	entries = append(entries, Entry{Name: "a", AppVersion: "9.0.0", OperatorVersion: "9.0.0", Removed: true})
	if err := check("a", entries); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reason, app, operator, want string }{
		"Any":        {"the highest that was not removed", "", "", "8.0.0/1.0.0-rc.1"},
		"App":        {"a version means itself", "5.7", "", "5.7/0.10.0"},
		"Operator":   {"of the other, too", "", "0.2.0", "5.7/0.2.0"},
		"Caret":      {"ranges", "", "^0.2", "5.7/0.2.0"},
		"Tilde":      {"of appVersion, too", "~5.7", "", "5.7.1/0.3.0"},
		"Both":       {"both", "5.x", ">=0.3, <1", "5.7.1/0.3.0"},
		"Equal":      {"a version that is written otherwise", "5.7.0", "", "5.7/0.10.0"},
		"Text":       {"versions that are not semantic", "latest", "", "latest/2.0.0"},
		"Removed":    {"removed ones are not found", "9.0.0", "", ""},
		"None":       {"nothing fits", "", "^7", ""},
		"PreRelease": {"a range takes releases only", "", "^1.0", ""},
		"NoRange":    {"an error", "", "^abc", "error"},
	} {
		got := ""
		e, err := Choose(entries, tc.app, tc.operator)
		if e != nil {
			got = e.AppVersion + "/" + e.OperatorVersion
		}
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%s: %s: got %s, want %s (%v)", name, tc.reason, got, tc.want, err)
		}
	}
}

// FuzzParseIndex: reading part by part says what reading the whole says, or that a part is wrong.
// TestBest: the order in which versions are given does not matter, but for equal ones.
func TestBest(t *testing.T) {
	all := []Versions{{"5.7", "0.2.0"}, {"", "9.0.0"}, {"8.0.0", "0.9.0"}, {"latest", "2.0.0"}, {"8.0", "0.10.0"}, {"8.0.0", "0.10.0"}}
	for name, tc := range map[string]struct {
		reason string
		wanted Versions
		want   int
		text   string
	}{
		"Any":      {"the highest; of two that mean the same, one and the same each time", Versions{}, 5, ""},
		"Literal":  {"what is written as the wish is goes before what is equal to it", Versions{App: "8.0"}, 4, ""},
		"Range":    {"highest in the range", Versions{App: "^8"}, 5, ""},
		"Operator": {"by appVersion first, whatever is asked for", Versions{Operator: "<1"}, 5, ""},
		"NoApp":    {"one without appVersion is lowest, and in no range of it", Versions{Operator: ">=2"}, 3, ""},
		"None":     {"nothing fits", Versions{App: "9.x"}, -1, ""},
		"Wrong":    {"no range", Versions{Operator: "~"}, -1, "neither a version nor a range"},
	} {
		got, err := Best(all, tc.wanted)
		if got != tc.want || (err != nil) != (tc.text != "") || err != nil && !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %s: got %d, want %d (%v)", name, tc.reason, got, tc.want, err)
		}
	}
}

// FuzzBest: versions come from packages, indexes and clusters, and ranges from packages. The order is one, and what is
// picked fits, is the highest that does, and does not depend on the order in which versions are given.
func FuzzBest(f *testing.F) {
	for _, seed := range [][4]string{
		{"1.2.3", "1.10.0", "latest", "^1.2"}, {"5.7", "5.7.0", "v5.7", "5.7"}, {"1.0.0-rc.1", "1.0.0", "1.0.0+a", ">=1, <2"}, {"", "01.2", "1.x", "1.x"},
		{"1.0.0+b", "1.0.0+a", "1", "=1"}, {"a", "b", "c", "~1 || 2 - 3"}, {"99999999999999999999.0.0", "1.2.3.4", "1..2", "!=1"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, a, b, c, wanted string) {
		three := []string{a, b, c}
		for _, x := range three {
			for _, y := range three {
				if versions.Compare(x, y) != -versions.Compare(y, x) || (versions.Compare(x, y) == 0) != (x == y) {
					t.Fatalf("%q and %q: %d and %d", x, y, versions.Compare(x, y), versions.Compare(y, x))
				}
				for _, z := range three {
					if versions.Compare(x, y) > 0 && versions.Compare(y, z) > 0 && versions.Compare(x, z) <= 0 {
						t.Fatalf("%q > %q > %q, but %d", x, y, z, versions.Compare(x, z))
					}
				}
			}
		}
		at, err := Best([]Versions{{App: a}, {App: b}, {App: c}}, Versions{App: wanted})
		back, errBack := Best([]Versions{{App: c}, {App: b}, {App: a}}, Versions{App: wanted})
		if (err == nil) != (errBack == nil) || (at < 0) != (back < 0) || at >= 0 && three[at] != three[2-back] {
			t.Fatalf("%d and %d, %v and %v", at, back, err, errBack)
		}
		if at < 0 {
			return
		}
		for _, x := range three {
			if fits, _ := versions.Matches(x, wanted); fits && versions.Compare(x, three[at]) > 0 && three[at] != wanted {
				t.Fatalf("%q fits %q and is higher than %q", x, wanted, three[at])
			}
		}
		if fits, err := versions.Matches(three[at], wanted); !fits || err != nil {
			t.Fatalf("%q does not fit %q: %v", three[at], wanted, err)
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add(canonical)
	f.Add("apiVersion: v1\nentries: {a: [{operatorVersion: 1}]}\n")
	f.Add("apiVersion: v1\nentries:\n  a:\n  - operatorVersion: \"1\n  b:\n  - operatorVersion: 2\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseIndex([]byte(text))
		if err != nil {
			return
		}
		parts, err := x.All()
		if err != nil {
			return
		}
		if _, plain := split([]byte(text)); plain {
			whole, err := parseWhole([]byte(text))
			if err != nil {
				return
			}
			if diff := cmp.Diff(withEntries(whole), parts, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("-whole +parts: %s", diff)
			}
		}
		encoded, err := EncodeIndex(parts, time.Time{})
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := ParseIndex(encoded)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, encoded)
		}
		repeated, err := again.All()
		if diff := cmp.Diff(parts, repeated, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v: -first +again: %s", err, diff)
		}
	})
}

// large is an index of 10,000 packages with 10 versions each.
func large(b *testing.B) []byte {
	b.Helper()
	entries := map[string][]Entry{}
	for i := range 10_000 {
		name := fmt.Sprintf("package-%05d", i)
		for v := range 10 {
			entries[name] = append(entries[name], Entry{Name: name, OperatorVersion: fmt.Sprintf("1.%d.0", v), AppVersion: "5.7.1",
				Description: "An operator of an application that is known to many.", URLs: []string{"https://example.com/packages/" + name + ".tgz"},
				Digest: strings.Repeat("0123456789abcdef", 4)})
		}
	}
	text, err := EncodeIndex(entries, time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// BenchmarkParseIndex is a cold load; B/op is what it allocates.
func BenchmarkParseIndex(b *testing.B) {
	text := large(b)
	b.ReportAllocs()
	for b.Loop() {
		c := cache{b.TempDir()}
		x, err := ParseIndex(text)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.storeIndex(Repository{Name: "x"}, x, validators{ETag: "x"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(text))/(1<<20), "MiB")
}

// BenchmarkLookup opens the cached index and looks one package up.
func BenchmarkLookup(b *testing.B) {
	c := cache{b.TempDir()}
	x, err := ParseIndex(large(b))
	if err != nil {
		b.Fatal(err)
	}
	if err := c.storeIndex(Repository{Name: "x"}, x, validators{ETag: "x"}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		kept, _, ok := c.loadIndex(Repository{Name: "x"})
		if !ok {
			b.Fatal("not kept")
		}
		entries, err := kept.Versions("package-09876")
		if err != nil || len(entries) != 10 {
			b.Fatal(err, len(entries))
		}
		_ = kept.Close()
	}
	_ = os.Remove(c.indexFile(Repository{Name: "x"}))
}

// withEntries leaves out packages that have none.
func withEntries(all map[string][]Entry) map[string][]Entry {
	maps.DeleteFunc(all, func(_ string, list []Entry) bool { return len(list) == 0 })
	return all
}
