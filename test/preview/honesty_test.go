package preview

import (
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// password is the sensitive value of each Instance, which no preview may show.
const password = "hunter2-of-the-preview"

// cases are 20 upgrades by random mutations, or, if KUDO_PREVIEWS is set, that many and each mutation alone, by name.
func cases(t *testing.T) map[string]*source {
	out := map[string]*source{}
	text, n := os.Getenv("KUDO_PREVIEWS"), 20
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("KUDO_PREVIEWS is %q: set a number", text)
		}
		for name, mutate := range mutations {
			only := base()
			only.version++
			mutate(only, rand.New(rand.NewSource(0)))
			out[name] = only
		}
	}
	for seed := range n {
		next, names := base().mutated(rand.New(rand.NewSource(int64(seed))))
		out[fmt.Sprintf("seed %d: %s", seed, strings.Join(names, ", "))] = next
	}
	return out
}

// TestHonest makes upgrades from a package by mutations, asks what they would do, does them, and compares plans, effects, fields and
// failures (P17).
func TestHonest(t *testing.T) {
	t.Cleanup(func() { shares.check(t) })
	for name, next := range env.Sorted(cases(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkHonesty(t, base(), next)
		})
	}
}

func checkHonesty(t *testing.T, from, to *source) {
	t.Helper()
	ns := suite.NewNamespace(t)
	env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "foreign"), Data: map[string]string{"of": "another"}}))
	suite.MustKudo(t, 0, "install", from.write(t), "--instance", "i", "-n", ns, "-p", "PASSWORD="+password, "--wait")
	next := to.write(t)
	o := outcome{ns: ns, before: look(t, ns), earlier: len(history(t, "i", "-n", ns))}
	since := audited(t)
	text, code := suite.Kudo("upgrade", next, "--instance", "i", "-n", ns, "--dry-run", "-o", "json", "--as", asker(ns), "--as-group", "system:masters")
	if strings.Contains(text, password) {
		t.Fatalf("the preview shows a sensitive value:\n%s", text)
	}
	checkSame(t, "the preview", o.before, look(t, ns))
	checkWrites(t, asker(ns), since)
	o.said = decode(t, text)
	shares.add(o.said)
	out, done := suite.Kudo("upgrade", next, "--instance", "i", "-n", ns, "--wait", "--wait-time", "120")
	o.after = look(t, ns)
	for _, said := range o.said.Objects { // what is deleted may wait for its dependents
		if said.Effect == preview.Delete && o.after[said.ID()] != nil && code == done {
			env.Eventually(t, said.ID()+" deleted", env.Condition(func() bool { o.after = look(t, ns); return o.after[said.ID()] == nil }))
		}
	}
	if o.texts = text + "\n" + out; code != done {
		t.Fatalf("the preview ended with %d, and the upgrade with %d:\n%s", code, done, o.texts)
	}
	o.compare(t)
}

// share is how much of the objects of all previews is not known.
type share struct {
	mu           sync.Mutex
	all, unknown int
}

var shares share

func (s *share) add(p *preview.Preview) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.unknown = s.all+len(p.Objects), s.unknown+p.Count(preview.Unknown)
}

// check wants that at most 5 of 100 objects are not known.
func (s *share) check(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d objects are unknown", s.unknown, s.all)
	if s.unknown*20 > s.all {
		t.Errorf("%d of %d objects are unknown: more than 5 of 100", s.unknown, s.all)
	}
}
