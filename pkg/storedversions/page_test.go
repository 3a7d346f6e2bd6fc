package storedversions

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// sizes returns what is filled with the sizes of the pages that are listed. Before sees one request at a time.
func (f *fixture) sizes(before apitest.Hook) *[]int {
	out, mu := &[]int{}, sync.Mutex{}
	f.Before(func(r apitest.Request) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		if r.Verb == "list" && r.Kind == "Ship" {
			size, _ := strconv.Atoi(r.Query.Get("limit"))
			*out = append(*out, size)
		}
		return before(r)
	})
	return out
}

// TestSlowPage checks that a page ends after pageTime, that the next one is smaller and begins where it began, and that nothing is lost (P18).
func TestSlowPage(t *testing.T) {
	const ships = 200
	f := newFixture(t, ships)
	var slow atomic.Bool
	slow.Store(true)
	writes := 0
	sizes := f.sizes(func(r apitest.Request) (any, error) {
		if slow.Load() && r.Verb == "patch" && r.Kind == "Ship" {
			writes++
			f.clock.SetTime(f.clock.Now().Add(time.Second))
		}
		return nil, nil
	})
	if _, err := f.step(); err != nil {
		t.Fatal(err)
	}
	begun := f.clock.Now()
	if result, err := f.step(); err != nil || result.Finished || f.state.Done != 0 || f.state.Continue != "" || f.state.PageSize == 0 {
		t.Fatalf("a page that takes too long: %+v, %v, %+v", result, err, f.state)
	}
	if took := f.clock.Now().Sub(begun); took > pageTime+2*writers*time.Second || writes > 30+2*writers {
		t.Errorf("it took %s and %d writes", took, writes)
	}
	if _, err := f.step(); err != nil || f.state.Done == 0 || f.state.Done != int64((*sizes)[1]) || f.state.Of != ships {
		t.Errorf("the next page: %v, %+v, sizes %v", err, f.state, *sizes)
	}
	slow.Store(false)
	f.finish()
	if n := len(rewritten(f.Requests())); n != ships || f.state.Done != ships || len(f.stored()) != 1 {
		t.Errorf("%d objects rewritten, storedVersions %v, %+v", n, f.stored(), f.state)
	}
	if s := *sizes; s[0] != maxPage || s[1] > 30 || s[len(s)-1] <= s[1] {
		t.Errorf("the sizes of the pages were %v: one after a quick page is larger", s)
	}
}

// TestSlowObject checks that a page rewrites one object if that object alone takes longer than the time limit of a page (P18).
func TestSlowObject(t *testing.T) {
	f := newFixture(t, 12)
	sizes := f.sizes(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && r.Kind == "Ship" {
			f.clock.SetTime(f.clock.Now().Add(2 * pageTime))
		}
		return nil, nil
	})
	f.finish()
	if s := *sizes; f.state.Done != 12 || s[len(s)-1] > writers {
		t.Errorf("%+v, sizes %v", f.state, s)
	}
}

// TestLargePage checks that no answer of more than 8 MiB is read, that pages are smaller then, and that nothing is lost (P18).
func TestLargePage(t *testing.T) {
	const ships = 20
	f := newFixture(t, ships)
	for name := range ships {
		ship := &unstructured.Unstructured{Object: map[string]any{}}
		ship.SetGroupVersionKind(shipKind)
		ship.SetNamespace("large")
		ship.SetName("ship-" + strconv.Itoa(name))
		ship.SetAnnotations(map[string]string{"load": strings.Repeat("x", 1<<20)})
		f.Put(ship)
	}
	sizes := f.sizes(func(apitest.Request) (any, error) { return nil, nil })
	f.finish()
	if f.state.Done != 2*ships || len(f.stored()) != 1 {
		t.Errorf("%+v, storedVersions %v", f.state, f.stored())
	}
	if s := *sizes; len(s) < 3 || s[0] != maxPage || s[1] != maxPage/4 {
		t.Errorf("the sizes of the pages were %v", s)
	}
}

// TestLargeObject checks that an object whose metadata alone is too large is an error, and not another page for ever.
func TestLargeObject(t *testing.T) {
	f := newFixture(t, 1)
	ship := &unstructured.Unstructured{Object: map[string]any{}}
	ship.SetGroupVersionKind(shipKind)
	ship.SetNamespace("large")
	ship.SetName("ship")
	ship.SetAnnotations(map[string]string{"load": strings.Repeat("x", maxAnswer)})
	f.Put(ship)
	var err error
	for range 20 {
		if _, err = f.step(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), errLarge.Error()) || len(f.stored()) != 2 {
		t.Errorf("%v, storedVersions %v", err, f.stored())
	}
}

// TestPageSize checks the bounds of the size of a page, whatever the status says.
func TestPageSize(t *testing.T) {
	for set, want := range map[int64]int64{0: maxPage, -5: maxPage, 1: 1, 40: 40, 1 << 40: maxPage} {
		if got := pageSize(&v1beta1.StoredVersionMigration{PageSize: set}); got != want {
			t.Errorf("%d: %d, want %d", set, got, want)
		}
	}
	for size, want := range map[int64]int64{1: 2, 200: 400, 250: 0, 400: 0} {
		if got := grown(size); got != want {
			t.Errorf("after %d: %d, want %d", size, got, want)
		}
	}
}
