package repository

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// numbers are a semantic version.
type numbers [3]int

func (n numbers) String() string { return fmt.Sprintf("%d.%d.%d", n[0], n[1], n[2]) }

// compare orders versions.
func (n numbers) compare(m numbers) int { return slices.Compare(n[:], m[:]) }

// reference is a range with what it means, which knows nothing of the library that reads ranges.
type reference struct {
	text  string
	holds func(numbers) bool
}

func randomNumbers(r *rand.Rand) numbers { return numbers{r.IntN(4), r.IntN(4), r.IntN(4)} }

// randomRange returns a range of a random form.
func randomRange(r *rand.Rand) reference {
	a, b := randomNumbers(r), randomNumbers(r)
	if a.compare(b) > 0 {
		a, b = b, a
	}
	switch r.IntN(9) {
	case 0:
		return reference{"", func(numbers) bool { return true }}
	case 1:
		return reference{a.String(), func(n numbers) bool { return n == a }}
	case 2:
		return reference{">=" + a.String(), func(n numbers) bool { return n.compare(a) >= 0 }}
	case 3:
		return reference{"<" + b.String(), func(n numbers) bool { return n.compare(b) < 0 }}
	case 4:
		return reference{fmt.Sprintf(">=%s, <%s", a, b), func(n numbers) bool { return n.compare(a) >= 0 && n.compare(b) < 0 }}
	case 5:
		return reference{"~" + a.String(), func(n numbers) bool {
			return a == numbers{} || n.compare(a) >= 0 && n[0] == a[0] && n[1] == a[1] // ~0.0.0 is any version
		}}
	case 6:
		return reference{fmt.Sprintf("%d.x", a[0]), func(n numbers) bool { return n[0] == a[0] }}
	case 7:
		return reference{fmt.Sprintf("%s || %s", a, b), func(n numbers) bool { return n == a || n == b }}
	}
	return reference{"^" + a.String(), func(n numbers) bool {
		if n.compare(a) < 0 || n[0] != a[0] { // of 0, the first number that is not 0 must be the same
			return false
		}
		return a[0] > 0 || n[1] == a[1] && (a[1] > 0 || n[2] == a[2])
	}}
}

// TestResolutionAgainstReference compares what is chosen of random versions for random ranges with a reference that tries all of them.
func TestResolutionAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a sequence that is the same each time
	found := 0
	for n := range 10_000 {
		var all []Versions
		var meant [][2]numbers
		for range r.IntN(12) {
			v := [2]numbers{randomNumbers(r), randomNumbers(r)}
			meant, all = append(meant, v), append(all, Versions{v[0].String(), v[1].String()})
		}
		app, operator := randomRange(r), randomRange(r)
		want := -1
		for i, v := range meant {
			if !app.holds(v[0]) || !operator.holds(v[1]) {
				continue
			}
			if want < 0 || v[0].compare(meant[want][0]) > 0 || v[0] == meant[want][0] && v[1].compare(meant[want][1]) > 0 {
				want = i
			}
		}
		got, err := Best(all, Versions{app.text, operator.text})
		if err != nil || (got < 0) != (want < 0) || got >= 0 && all[got] != all[want] {
			t.Fatalf("case %d: of %v for %q and %q: %d, want %d (%v)", n, all, app.text, operator.text, got, want, err)
		}
		if got >= 0 {
			found++
		}
	}
	if found < 1000 || found > 9000 {
		t.Errorf("%d of 10000 cases have a version: they show little", found)
	}
}
