package instance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// start is when the runs of these tests start.
var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// place names an Instance by namespace/name.
func place(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// TestPlaces: K31, how many runs of schedules are active at once, and which waiting Instance is next.
func TestPlaces(t *testing.T) {
	for _, tc := range []struct {
		reason string
		limit  int
		// steps are "take a/1 yes", "take a/1 no", "free a/1 <next>", "leave a/1 <next>", "forget a/1 <next>",
		// and "pass 1h <when the next place becomes free>".
		steps []string
	}{
		{"one place is for one run", 1, []string{"take a/1 yes", "take b/1 no", "free a/1 b/1", "take b/1 yes"}},
		{"who has it asks again", 1, []string{"take a/1 yes", "take a/1 yes"}},
		{"no place at all", 0, []string{"take a/1 no"}},
		{"who waits longest is next", 1, []string{"take a/1 yes", "take b/1 no", "take c/1 no", "take b/1 no", "free a/1 b/1", "take c/1 no", "take b/1 yes"}},
		{"a namespace leaves places to others", 4, []string{"take a/1 yes", "take a/2 yes", "take a/3 no", "take b/1 yes", "take b/2 no", "take c/1 yes",
			"take d/1 no", "free a/1 d/1", "take a/3 no", "take d/1 yes"}},
		{"a crowd that waits does not delay others", 2, []string{"take a/1 yes", "take a/2 no", "take a/3 no", "take a/4 no", "take b/1 yes", "take c/1 no",
			"free b/1 c/1", "take c/1 yes", "free a/1 a/2", "take a/3 no", "take a/2 yes"}},
		{"who does not wait any more holds up no other", 1, []string{"take a/1 yes", "take b/1 no", "take c/1 no", "free a/1 b/1", "leave b/1 c/1", "take c/1 yes"}},
		{"an Instance that does not exist any more", 1, []string{"take a/1 yes", "take b/1 no", "forget a/1 b/1", "forget b/1 ", "take c/1 yes"}},
		{"a run that takes longer than an hour leaves its place", 1, []string{"take a/1 yes", "pass 59m 1m0s", "take b/1 no", "pass 1m -", "take b/1 yes",
			"pass 0s 1h0m0s", "free a/1 ", "take c/1 no", "free b/1 c/1"}},
		{"runs that never end count for their namespace", 4, []string{"take a/1 yes", "take a/2 yes", "take a/3 no", "pass 1h -", "take a/3 yes", "take a/4 no",
			"take b/1 yes"}},
		{"what is free is known once", 1, []string{"take a/1 yes", "take b/1 no", "free a/1 b/1", "free a/1 ", "leave c/1 "}},
	} {
		p, now := &places{}, start
		for n, step := range tc.steps {
			words := strings.SplitN(step, " ", 3)
			got := "-"
			switch key := place(words[1]); words[0] {
			case "take":
				got = map[bool]string{true: "yes", false: "no"}[p.take(key, tc.limit, now)]
			case "free":
				got = listed(p.set(key, false, tc.limit, now))
			case "leave":
				got = listed(p.leave(key, tc.limit, now))
			case "forget":
				got = listed(p.forget(key, tc.limit, now))
			case "pass":
				d, err := time.ParseDuration(words[1])
				if err != nil {
					t.Fatal(err)
				}
				if now = now.Add(d); !p.nextFree(now).IsZero() {
					got = p.nextFree(now).Sub(now).String()
				}
			}
			if got != words[2] {
				t.Errorf("%s: step %d, %s: %q", tc.reason, n, step, got)
			}
		}
	}
}

func listed(keys []types.NamespacedName) string {
	var out []string
	for _, key := range keys {
		out = append(out, key.String())
	}
	return strings.Join(out, " ")
}

// TestPlacesOfCrowd: a namespace with thousands of Instances whose runs never end leaves places to each other one, and as many as wait
// are known when they come.
func TestPlacesOfCrowd(t *testing.T) {
	p := &places{}
	got := 0
	for n := range 5000 {
		if p.take(place(fmt.Sprintf("crowd/%d", n)), 20, start) {
			got++
		}
	}
	if got != 10 {
		t.Errorf("the namespace has %d places, want half of them", got)
	}
	for n := range 4 {
		if key := place(fmt.Sprintf("quiet-%d/db", n)); !p.take(key, 20, start) {
			t.Errorf("there is no place for %s", key)
		}
	}
	if next := p.set(place("quiet-0/db"), false, 20, start); len(next) != 0 {
		t.Errorf("the namespace gets another place for %v", next)
	}
	for n := range 5000 {
		p.leave(place(fmt.Sprintf("crowd/%d", n)), 20, start)
	}
	if diff := cmp.Diff(map[string][]arrival{}, p.waiting, cmp.AllowUnexported(arrival{})); diff != "" {
		t.Errorf("those who have left still wait: %s", diff)
	}
}

// TestPlacesSeed: the runs of before a restart have their places, for the rest of their hour.
func TestPlacesSeed(t *testing.T) {
	p := &places{}
	if p.isSeeded() {
		t.Error("nothing was read")
	}
	p.seed(map[types.NamespacedName]time.Time{place("a/1"): start.Add(-time.Minute), place("b/1"): start.Add(time.Hour)}, start)
	p.seed(map[types.NamespacedName]time.Time{place("d/1"): start}, start) // another worker has read the same list
	if !p.isSeeded() || p.take(place("c/1"), 2, start) || p.set(place("a/1"), true, 2, start) != nil {
		t.Errorf("places: %+v", p.taken)
	}
	if diff := cmp.Diff(map[types.NamespacedName]time.Time{place("a/1"): start.Add(-time.Minute), place("b/1"): start}, p.taken); diff != "" {
		t.Errorf("the times of the places: -want +got: %s", diff)
	}
	if next := p.set(place("a/1"), false, 2, start); listed(next) != "c/1" {
		t.Errorf("next is %v", next)
	}
}
