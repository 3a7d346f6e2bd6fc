package karmada

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/lua"
)

// blocking is a layer that answers when the test lets it, and counts the requests that it has.
type blocking struct {
	mu           sync.Mutex
	now, highest int
	free         chan struct{}
}

func (b *blocking) Layer() explore.Layer { return explore.User }

func (b *blocking) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	b.add(1)
	defer b.add(-1)
	select {
	case <-b.free:
	case <-ctx.Done():
	}
	return ship(ctx, r)
}

func (b *blocking) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += n
	b.highest = max(b.highest, b.now)
}

func (b *blocking) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for limit := time.After(20 * time.Second); !holds(); {
		select {
		case <-limit:
			t.Fatalf("not within 20 s: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestConcurrency checks C22: 32 requests are answered at a time, 256 wait, and the next one is refused at once.
func TestConcurrency(t *testing.T) {
	b := &blocking{free: make(chan struct{})}
	h := NewHandler(explore.Chain{b}, isShip, 0).(*handler)
	codes := make(chan int32, 32+maxWaiting)
	for range cap(codes) {
		go func() {
			r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(document("InterpretHealth", `{}`, "")))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			code := int32(0)
			if !strings.Contains(w.Body.String(), `"successful":true`) {
				code = int32(w.Code)
			}
			codes <- code
		}()
	}
	within(t, "32 requests are answered and 256 wait", func() bool { return b.count() == 32 && h.waiting.Load() == maxWaiting })
	given, _ := post(t, h, document("InterpretHealth", `{}`, ""))
	if given.Successful || given.Status.Code != http.StatusServiceUnavailable || !strings.Contains(given.Status.Message, "more than 256 requests wait") {
		t.Errorf("a request beyond those gets %+v", given)
	}
	close(b.free)
	for range cap(codes) {
		if code := <-codes; code != 0 {
			t.Errorf("a request that has waited is refused with %d", code)
		}
	}
	if b.highest != 32 || h.waiting.Load() != 0 || !h.bytes.TryAcquire(MaxBody) {
		t.Errorf("%d requests at a time, %d wait; all bytes must be given back", b.highest, h.waiting.Load())
	}
}

// TestWeights checks C22: the bodies that are read at a time have 8 MiB together. One whose length is not known counts as the largest.
func TestWeights(t *testing.T) {
	for _, row := range []struct {
		reason         string
		length, weight int64
	}{
		{"a small one counts its share of 32", 1, minWeight}, {"none, too", 0, minWeight}, {"a large one", MaxBody / 2, MaxBody / 2}, {"the largest", MaxBody, MaxBody},
		{"one that is refused", MaxBody + 1, MaxBody}, {"an unknown length", -1, MaxBody},
	} {
		h := NewHandler(nil, isShip, 0).(*handler)
		done, err := h.admit(t.Context(), row.length)
		if err != nil {
			t.Fatalf("%s: %v", row.reason, err)
		}
		if rest := MaxBody - row.weight; rest > 0 && !h.bytes.TryAcquire(rest) {
			t.Errorf("%s counts more than %d", row.reason, row.weight)
		}
		if h.bytes.TryAcquire(1) {
			t.Errorf("%s counts less than %d", row.reason, row.weight)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := h.admit(ctx, 1); err == nil || h.waiting.Load() != 0 {
			t.Errorf("%s: a further request is read: %v", row.reason, err)
		}
		cancel()
		done()
	}
}

// fieldsLayer is a layer of Configs that retain fields in lists and judge health by fields.
func fieldsLayer() *config.Layer {
	c := v1alpha1.Config{}
	c.Name = "ships"
	c.Spec.Retentions = []v1alpha1.LocalValueRetention{{APIVersion: "sea.example.com/v1", Kind: "Ship", Fields: []string{
		"{.spec.masts[*].sail}", "{.spec.crew}", "{.spec.holds[0]}"}}}
	c.Spec.Explorations = []v1alpha1.Exploration{{APIVersion: "sea.example.com/v1", Kind: "Ship", Health: &v1alpha1.HealthRule{
		Field: "{.spec.phase}", Healthy: []string{"Afloat"}, Failed: []string{"Sunk"}}}}
	return config.New(lua.New(clock, lua.DefaultLimits()), []v1alpha1.Config{c}, nil)
}

// TestHostileObjects checks C22: the time of an answer is in proportion to the size of the request, whatever the object holds.
func TestHostileObjects(t *testing.T) {
	h := NewHandler(explore.Chain{fieldsLayer()}, isShip, 0)
	many := func(entry string, n int) string {
		var list strings.Builder
		for i := range n {
			if i > 0 {
				list.WriteByte(',')
			}
			fmt.Fprintf(&list, entry, i)
		}
		return "[" + list.String() + "]"
	}
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	const half = MaxBody / 16
	for name, row := range map[string]struct{ reason, desired, observed string }{
		"Names":   {"a long list of named entries", `{"masts":` + many(`{"name":"%07d","sail":1}`, half/33) + `}`, `{"masts":` + many(`{"name":"%07d","sail":2}`, half/33) + `}`},
		"Same":    {"all entries have the same name", `{"masts":` + many(`{"name":"a","sail":1%06d}`, half/33) + `}`, `{"masts":` + many(`{"name":"a","sail":2%06d}`, half/33) + `}`},
		"Plain":   {"a long list without names", `{"masts":` + many(`{"sail":1%06d}`, half/22) + `}`, `{"masts":` + many(`{"sail":2%06d}`, half/22) + `}`},
		"Deep":    {"a deep value", `{"crew":` + deep(`{"a":`, `1`, `}`, 4000) + `}`, `{"crew":` + deep(`{"a":`, `2`, `}`, 4000) + `}`},
		"Heavy":   {"a long list in a deep value", `{"crew":` + deep(`{"a":`, many(`1%06d`, half/20), `}`, 4000) + `}`, `{"crew":` + deep(`{"a":`, many(`2%06d`, half/20), `}`, 4000) + `}`},
		"NoNames": {"maps with empty names", `{"crew":` + deep(`{"":`, many(`1%06d`, half/20), `}`, 4000) + `}`, `{"crew":` + deep(`{"":`, many(`1%06d`, half/20), `}`, 4000) + `}`},
		"Lists":   {"lists in lists", `{"crew":` + deep(`[`, many(`1%06d`, half/20), `]`, 4000) + `}`, `{"crew":` + deep(`[`, many(`2%06d`, half/20), `]`, 4000) + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := document("Retain", row.desired, `,"observedObject":{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"a","namespace":"b"},"spec":`+row.observed+`}`)
			began := time.Now()
			given, patch := post(t, h, body)
			if took := time.Since(began); !given.Successful || len(patch) > len(body) || took > 20*time.Second {
				t.Errorf("%s: a request of %d bytes takes %s, and the patch has %d bytes: %+v", row.reason, len(body), took, len(patch), given.Status)
			}
		})
	}
}

// TestFields checks C20 and C22: a rule by fields gives the answers by the protocol that it gives in the chain.
func TestFields(t *testing.T) {
	chain := explore.Chain{fieldsLayer()}
	w := &wire{t, serve(t, NewHandler(chain, isShip, 0))}
	const desired = `{"masts":[{"name":"a","sail":"red"},{"name":"b"},{"name":"c","sail":"blue"}],"crew":{"n":1},"holds":["tea"]}`
	for reason, row := range map[string]struct{ operation, spec, observed string }{
		"values of entries by name":      {"Retain", desired, `{"masts":[{"name":"c","sail":"white"},{"name":"b","sail":"grey"}]}`},
		"a value of another type":        {"Retain", desired, `{"crew":[1.5,9007199254740993,null],"holds":["rum","x"]}`},
		"nothing to retain":              {"Retain", desired, desired},
		"an observed object without any": {"Retain", desired, `{}`},
		"an empty desired object":        {"Retain", `{}`, desired},
		"a healthy phase":                {"InterpretHealth", `{"phase":"Afloat"}`, ""},
		"a phase that is not known":      {"InterpretHealth", `{"phase":"Sunk"}`, ""},
		"a phase of another type":        {"InterpretHealth", `{"phase":[{}]}`, ""},
	} {
		asked, err := parse([]byte(document(row.operation, row.spec, "")))
		if err != nil {
			t.Fatal(err)
		}
		r := explore.Request{Operation: operations[row.operation]}
		if r.Object, err = decode("object", &asked.Object); err != nil {
			t.Fatal(err)
		}
		if row.observed != "" {
			r.Observed = r.Object.DeepCopy()
			var spec any
			if err := utiljson.Unmarshal([]byte(row.observed), &spec); err != nil {
				t.Fatal(err)
			}
			r.Observed.Object["spec"] = spec
		}
		want, known, err := chain.Explore(t.Context(), r)
		if err != nil || !known {
			t.Fatalf("%s: %v", reason, err)
		}
		got, _, err := w.Explore(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if got.Healthy != want.Healthy || want.Object != nil && !explore.Equal(got.Object.Object, want.Object.Object) {
			t.Errorf("%s: by the protocol %+v %v, and in the chain %+v %v", reason, got.Healthy, got.Object, want.Healthy, want.Object)
		}
	}
}
