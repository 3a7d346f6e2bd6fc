package report

import (
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
	if err := r.Document(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## Installing", "| Helm    | v4", ", kudo 1.2.3, **provisional**", "| install | 10   | other | 5.00 s", "at most 10", "**missed**", "\n* all: xxx"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, out.String())
		}
	}
}
