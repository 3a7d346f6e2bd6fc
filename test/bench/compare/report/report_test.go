package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		reason string
		values []float64
		q      float64
		want   float64
	}{
		{"no value has no quantile", nil, 0.5, 0},
		{"the lowest is the minimum", []float64{3, 1, 2}, 0, 1},
		{"the p99 of few is the highest", []float64{1, 2, 3, 9}, 0.99, 9},
		{"the p99 of a hundred leaves one above", hundred(), 0.99, 99},
	} {
		if got := Quantile(c.values, c.q); got != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}

func hundred() []float64 {
	var out []float64
	for i := range 100 {
		out = append(out, float64(100-i))
	}
	return out
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		reason string
		values []float64
		want   float64
	}{
		{"none", nil, 0},
		{"the middle one of three", []float64{9, 1, 2}, 2},
		{"between the middle two of four", []float64{9, 1, 2, 4}, 3},
	} {
		if got := Median(c.values); got != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
		}
	}
}

func section() Section {
	return Section{Name: "b", Series: []Series{
		{Case: "install", Size: 10, Subject: "kudo", Samples: []Sample{{Seconds: 1}, {Seconds: 3}, {Seconds: 2}}},
		{Case: "install", Size: 10, Subject: "other", Samples: []Sample{{Seconds: 5}}},
		{Case: "install", Size: 100, Subject: "kudo", Samples: []Sample{{Seconds: 4}}},
		{Case: "install", Size: 100, Subject: "other", Samples: []Sample{{Seconds: 2}}},
	}}
}

func TestFaster(t *testing.T) {
	s := section()
	want := []Figure{
		{What: "install, 10: times as fast as other", Value: "2.50", Aim: "over 1", Met: true},
		{What: "install, 100: times as fast as other", Value: "0.50", Aim: "over 1"},
	}
	if diff := cmp.Diff(want, s.Faster()); diff != "" {
		t.Error("each case is compared with its own first contestant", diff)
	}
}

func TestPut(t *testing.T) {
	r, order := &Report{}, []string{"a", "b"}
	for _, s := range []Section{{Name: "b", Title: "old"}, {Name: "a"}, {Name: "b", Title: "new"}} {
		r.Put(s, order)
	}
	want := []Section{{Name: "a"}, {Name: "b", Title: "new"}}
	if diff := cmp.Diff(want, r.Sections); diff != "" {
		t.Error("a workload that runs again replaces its section, in the order of all", diff)
	}
}

func TestDocument(t *testing.T) {
	r := &Report{Machine: Machine{CPU: "some", Cores: 2}, Versions: map[string]string{"Helm": "v4"}}
	s := section()
	s.Title, s.Kudo, s.Quick, s.Figures = "Installing", "1.2.3", true, append(s.Faster(), AtMost("requests", 12, 10, "%.0f"), Told("all", "%s", strings.Repeat("x", 100)))
	r.Put(s, nil)
	var out strings.Builder
	if err := r.Document(&out, []string{"Rest", "Installing"}, ParsePage("# Benchmarks\n\n## Rest\n\nfrom before\n\n## Other\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Installing", "| Helm    | v4", ", kudo 1.2.3, **provisional**", "| install | 10   | other | 5.00 s", "at most 10", "**missed**", "\n* all: xxx", "\n## Rest\n\nfrom before\n\n## Installing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}

func TestMissed(t *testing.T) {
	required := func(f Figure) Figure {
		f.Required = true
		return f
	}
	s := Section{Title: "Installing", Figures: []Figure{AtMost("time", 2, 1, "%.0f s"), required(AtMost("few", 10, 10, "%.0f")), required(AtMost("requests", 12, 10, "%.0f"))}}
	if diff := cmp.Diff([]string{"Installing: requests: 12, at most 10"}, s.Missed()); diff != "" {
		t.Error(diff)
	}
}

func TestRegressions(t *testing.T) {
	measured := func(kudo, other float64, requests int) Section {
		return Section{Title: "Installing", Series: []Series{
			{Case: "install", Size: 10, Subject: "kudo", Samples: []Sample{{Seconds: kudo, Requests: requests}}},
			{Case: "install", Size: 10, Subject: "other", Samples: []Sample{{Seconds: other, Requests: 1}}},
		}}
	}
	page := func(s Section) Page {
		r := &Report{Machine: Machine{Cores: 2}, Sections: []Section{s}}
		var out strings.Builder
		if err := r.Document(&out, []string{s.Title}, nil); err != nil {
			t.Fatal(err)
		}
		return ParsePage(out.String())
	}
	quick, busy := measured(1, 1, 100), measured(1, 1, 100)
	quick.Quick, busy.Load = true, 1.5
	for name, tc := range map[string]struct {
		reason string
		now    Section
		before Page
		want   []string
	}{
		"Same":     {"nothing is worse", measured(1, 2, 100), page(measured(1, 2, 100)), nil},
		"Machine":  {"times of another machine do not count, ratios do", measured(3, 6, 100), page(measured(1, 2, 100)), nil},
		"Noise":    {"15 % are noise", measured(1, 1.75, 100), page(measured(1, 2, 100)), nil},
		"Slower":   {"a ratio is lost", measured(1, 1.65, 100), page(measured(1, 2, 100)), []string{"Installing: install, 10: 1.65 times as fast as other, 2.00 committed"}},
		"Requests": {"more than 5 % and two requests are added", measured(1, 2, 108), page(measured(1, 2, 100)), []string{"Installing: install, 10: 108 requests, 100 committed"}},
		"Few":      {"two are allowed", measured(1, 2, 107), page(measured(1, 2, 100)), nil},
		"Quick":    {"a quick run has no times", quick, page(measured(1, 2, 100)), nil},
		"Busy":     {"nor has a busy machine", busy, page(measured(1, 2, 100)), nil},
		"WasQuick": {"nor had it before", measured(1, 1, 100), page(quick), nil},
		"New":      {"what was not measured before is not compared", measured(1, 1, 100), nil, nil},
	} {
		var got []string
		for _, r := range tc.now.Regressions(tc.before, 2) {
			got = append(got, r.Text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
}

// TestIntersect checks that a regression counts if the second run has one for the same case, size and contestant, with any value.
func TestIntersect(t *testing.T) {
	of := func(name string, size int, subject, text string) Regression {
		return Regression{Case: name, Size: size, Subject: subject, Text: text}
	}
	first := []Regression{of("install", 10, "other", "1.6"), of("install", 100, "other", "1.5"), of("again", 10, "other", "1.4"), of("install", 10, "third", "1.3")}
	again := []Regression{of("install", 10, "other", "1.2"), of("again", 100, "other", "1.1")}
	if diff := cmp.Diff(first[:1], Intersect(first, again)); diff != "" {
		t.Error(diff)
	}
}

// TestParsePage: the page that is committed can be compared with, whatever was edited on it by hand.
func TestParsePage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, ratios, kudo := ParsePage(string(text)), 0, 0
	for title := range page {
		for _, row := range page.Rows(title) {
			if row.Subject == "kudo" && row.Requests > 0 {
				kudo++
			}
			if row.Subject != "kudo" && row.Ratio > 0 {
				ratios++
			}
		}
	}
	if len(page) < 5 || ratios < 20 || kudo < 9 {
		t.Errorf("%d sections with %d ratios and %d counts of kudo's requests", len(page), ratios, kudo)
	}
}
