package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const results = `{"Action":"start","Package":"a"}
go: a line of a build
{"Action":"pass","Package":"a","Test":"TestTable/one"}
{"Action":"pass","Package":"a","Test":"TestTable/two/deep"}
{"Action":"pass","Package":"a","Test":"TestTable/two"}
{"Action":"pass","Package":"a","Test":"TestTable"}
{"Action":"skip","Package":"a","Test":"TestCorpus"}
{"Action":"pass","Package":"a"}
{"Action":"skip","Package":"empty"}
`

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		reason, counts, skips string
		wants                 []string // parts of the error; none if it passes
		all                   bool
		except                string
	}{
		{"all tests ran", "a 2\n", "a TestCorpus 1 needs the corpus\n", nil, false, ""},
		{"more tests than before", "a 1\n", "a TestCorpus 1 needs the corpus\n", nil, false, ""},
		{"fewer tests, since one was skipped", "a 9\n", "a TestCorpus 7 needs the corpus\n", nil, false, ""},
		{"fewer tests than the skip excuses", "a 9\n", "a TestCorpus 6 needs the corpus\n", []string{"a ran 2 tests, and test/counts.txt records 9"}, false, ""},
		{"a skip that is not listed", "a 2\n", "a TestOther 1 needs the corpus\n", []string{"a: TestCorpus was skipped"}, false, ""},
		{"fewer tests", "a 3\n", "", []string{"a ran 2 tests, and test/counts.txt records 3", "TestCorpus"}, false, ""},
		{"an unknown package", "b 1\n", "a TestCorpus 1 x\n", []string{"a ran 2 tests, and test/counts.txt does not list it"}, false, ""},
		{"an absent package, whose results are elsewhere", "a 2\nb 1\n", "a TestCorpus 1 x\n", nil, false, ""},
		{"an absent package", "a 2\nb 1\n", "a TestCorpus 1 x\n", []string{"b has no results, and test/counts.txt records 1 tests"}, true, ""},
		{"an absent package that is not asked for", "a 2\nb 1\n", "a TestCorpus 1 x\n", nil, true, "b"},
		{"none is absent", "a 2\n", "a TestCorpus 1 x\n", nil, true, ""},
		{"a broken file of counts", "a\n", "", []string{"counts.txt:1: want a package and a number"}, false, ""},
		{"a skip without a reason", "a 2\n", "# none\na TestCorpus 1\n", []string{"skips.txt:2: want a package, a test, how many tests its skip excuses, and a reason"}, false, ""},
		{"a skip that excuses nothing", "a 2\n", "a TestCorpus 0 x\n", []string{"skips.txt:1: want 1 or more tests, not 0"}, false, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{"counts.txt": tc.counts, "skips.txt": tc.skips, "results.json": results} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out strings.Builder
			err := run([]string{filepath.Join(dir, "results.json")}, options{counts: filepath.Join(dir, "counts.txt"), skips: filepath.Join(dir, "skips.txt"), all: tc.all, except: tc.except}, &out)
			if (err != nil) != (len(tc.wants) > 0) {
				t.Fatalf("the error is %v, want %q", err, tc.wants)
			}
			for _, want := range tc.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, want %q", err, want)
				}
			}
		})
	}
}

// TestWrite checks that the counts of packages that did not run stay, and those that vary. The same holds for skips.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	counts, skips, json := filepath.Join(dir, "counts.txt"), filepath.Join(dir, "skips.txt"), filepath.Join(dir, "results.json")
	for name, content := range map[string]string{counts: "a 7\nb 3\nempty 5 varies\n", json: results,
		skips: "# a comment of four words\na TestTable 9 without the corpus\na TestCorpus 4 without it, too\nb TestOther 3 without it\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{json}, options{counts: counts, skips: skips, write: true}, os.Stdout); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(counts)
	if err != nil || !strings.HasSuffix(string(got), "\na 2\nb 3\nempty 5 varies\n") {
		t.Errorf("the file holds %q (%v)", got, err)
	}
	got, err = os.ReadFile(skips)
	if want := "# a comment of four words\na TestTable 2 without the corpus\na TestCorpus 4 without it, too\nb TestOther 3 without it\n"; err != nil || string(got) != want {
		t.Errorf("the file holds %q (%v), want %q", got, err, want)
	}
}

// TestFailures: a failure is printed with the first lines of its reason, at its deepest test, and what passes is not printed.
func TestFailures(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.json")
	text := `{"Action":"output","Package":"a","Test":"TestHub/Answers","Output":"=== RUN TestHub/Answers\n"}
{"Action":"output","Package":"a","Test":"TestHub/Answers","Output":"    answers_test.go:109: it does not answer:\n"}
{"Action":"output","Package":"a","Test":"TestHub/Answers","Output":"        no Config\n"}
{"Action":"output","Package":"a","Test":"TestHub/Place","Output":"    place_test.go:1: a log\n"}
{"Action":"pass","Package":"a","Test":"TestHub/Place"}
{"Action":"fail","Package":"a","Test":"TestHub/Answers"}
{"Action":"output","Package":"a","Test":"TestHub","Output":"    hub.go:55: a log\n"}
{"Action":"fail","Package":"a","Test":"TestHub"}
{"Action":"fail","Package":"b","Test":"TestPanic"}
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{name}, options{failures: true}, &out); err != nil {
		t.Fatal(err)
	}
	want := "FAILED a TestHub/Answers\n    answers_test.go:109: it does not answer:\n        no Config\nFAILED b TestPanic\n"
	if out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}
