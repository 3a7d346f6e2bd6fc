package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/test/bench/compare/report"
)

func TestOrder(t *testing.T) {
	all := []string{"kudo", "other"}
	s := &report.Section{}
	rows := table{s}
	for _, n := range []int{10, 100} { // as they come in a round that begins with the second contestant
		for _, i := range []int{1, 0} {
			for _, name := range cases() {
				rows.add(name, n, all[i], report.Sample{Seconds: 1})
			}
		}
		order(s, n, all)
	}
	var got []string
	for _, series := range s.Series {
		if series.Size == 10 {
			got = append(got, series.Case+": "+series.Subject)
		} else if len(got) != 6 {
			t.Error("sizes rise")
		}
	}
	var want []string
	for _, name := range cases() {
		want = append(want, name+": "+all[0], name+": "+all[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("a case stands together, kudo first", diff)
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		if seen[w.Name] || w.Title == "" || w.About == "" || w.Run == nil {
			t.Errorf("workload %q is not whole, or there twice", w.Name)
		}
		seen[w.Name] = true
	}
}
