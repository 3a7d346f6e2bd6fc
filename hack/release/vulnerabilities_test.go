package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFindVulnerabilities checks R38 with a database of two vulnerabilities: a function that is called counts, and one of a package
// that is only imported does not.
func TestFindVulnerabilities(t *testing.T) {
	database, err := filepath.Abs("testdata/vulndb")
	if err != nil {
		t.Fatal(err)
	}
	found, modified, err := findVulnerabilities(t.Context(), "file://"+database, "testdata/vulnerable", ".")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0].id != "GO-2026-0001" || found[0].function != "strings.ToUpper" || !strings.HasPrefix(found[0].module, "stdlib v") {
		t.Errorf("found %+v", found)
	}
	if want := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC); !modified.Equal(want) {
		t.Errorf("the database is of %s, want %s", modified, want)
	}
	if _, _, err := findVulnerabilities(t.Context(), "file://"+t.TempDir(), "testdata/vulnerable", "."); err == nil {
		t.Error("a folder without a database was taken for one without vulnerabilities")
	}
	if _, _, err := findVulnerabilities(t.Context(), "file://"+database, t.TempDir(), "."); err == nil {
		t.Error("a folder without a module was taken for one without vulnerabilities")
	}
}

// TestExcuses checks which rows of the page excuse a vulnerability, and until when.
func TestExcuses(t *testing.T) {
	found := []vulnerability{{"GO-2026-0001", "example.org/a v1.0.0", "v1.0.1", "example.org/a.F"}, {"GO-2026-0002", "example.org/b v1.0.0", "", "example.org/b.T.G"}}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	one := "GO-2026-0001 in example.org/a v1.0.0, of which example.org/a.F is reached: v1.0.1 corrects it"
	two := "GO-2026-0002 in example.org/b v1.0.0, of which example.org/b.T.G is reached: no version corrects it"
	for _, tc := range []struct {
		reason, page string
		want         []string
		wrong        string
	}{
		{"nothing is excused", "# Known issues\n", []string{one, two}, ""},
		{"one is", "| GO-2026-0001 | 2027-01-31 | only tests call it |\n", []string{two}, ""},
		{"on its last day, still", "|GO-2026-0002|2026-11-30|no input|\n|GO-2026-0001 | 2026-11-30 | no input\n", nil, ""},
		{"a day later, no more", "| GO-2026-0001 | 2026-11-29 | no input |\n", []string{one + "; its excuse ended on 2026-11-29", two}, ""},
		{"an excuse ends", "| GO-2026-0001 | | no input |\n", nil, `KNOWN-ISSUES.md: GO-2026-0001 has the day ""`},
		{"on a day that exists", "| GO-2026-0001 | 2026-02-30 | no input |\n", nil, `has the day "2026-02-30"`},
		{"an excuse has a reason", "| GO-2026-0001 | 2026-11-30 | |\n", nil, `and the reason ""`},
		{"text is no excuse", "GO-2026-0001 | 2027-01-31 | is bad\n", []string{one, two}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			excused, err := excuses(tc.page)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Fatalf("error %v, want %q", err, tc.wrong)
			}
			if got := unexcused(found, excused, noon); err == nil && !slices.Equal(got, tc.want) {
				t.Errorf("refused %q, want %q", got, tc.want)
			}
		})
	}
}
