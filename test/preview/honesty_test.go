package preview

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// password is the sensitive value of each Instance, which no preview may show.
const password = "hunter2-of-the-preview"

// upgrade is a case: a package, its next version, and arguments of the upgrade.
type upgrade struct {
	base
	next files
	// install and arguments are those of the two commands.
	install, arguments []string
	// change is what others do in between; nil if they do nothing.
	change func(t *testing.T, ns string)
	// waits is set if the plan would retry until what keeps it from going on has passed, and fails if it must fail.
	waits, fails bool
}

// cases are 20 upgrades: one of each package, then those in environments, then more of each package; or, if KUDO_PREVIEWS is set, that
// many, and of the hand-written package each mutation alone.
func cases(t *testing.T) map[string]upgrade {
	t.Helper()
	out := map[string]upgrade{}
	text, n := os.Getenv("KUDO_PREVIEWS"), 20
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("KUDO_PREVIEWS is %q: set a number", text)
		}
		for name, mutate := range mutations {
			v := written().version(t, rand.New(rand.NewSource(0)))
			if mutate(v) {
				v.seal(t)
				out["written: "+name] = upgrade{base: written(), next: v.files, arguments: v.values}
			}
		}
	}
	all, others := bases(t), environmentCases(t)
	for i := range n {
		switch j := i - len(all); {
		case 0 <= j && j < len(others):
			name := slices.Sorted(maps.Keys(others))[j]
			out[name] = others[name]
		default:
			if j > 0 {
				i -= len(others)
			}
			b, seed := all[i%len(all)], i/len(all)
			v, names := b.next(t, int64(seed))
			out[fmt.Sprintf("%s %d: %s", b.name, seed, strings.Join(names, ", "))] = upgrade{base: b, next: v.files, arguments: v.values}
		}
	}
	return out
}

// TestHonest makes upgrades from packages by mutations, asks what they would do, does them, and compares plans, effects, fields and
// failures (P17).
func TestHonest(t *testing.T) {
	t.Cleanup(func() { total.check(t) })
	for name, one := range env.Sorted(cases(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one.check(t)
		})
	}
}

func (u upgrade) check(t *testing.T) {
	t.Helper()
	ns := suite.NewNamespace(t)
	u.begin(t, ns)
	if u.change != nil {
		u.change(t, ns)
	}
	act := append([]string{"upgrade", u.write(t, u.next, ns), "--instance", "i", "-n", ns}, u.arguments...)
	o := outcome{ns: ns, before: look(t, ns), earlier: len(history(t, "i", "-n", ns))}
	since := audited(t)
	text, code := suite.Kudo(append(act, "--dry-run", "-o", "json", "--as", asker(ns), "--as-group", "system:masters")...)
	if strings.Contains(text, password) {
		t.Fatalf("the preview shows a sensitive value:\n%s", text)
	}
	checkSame(t, "the preview", o.before, look(t, ns))
	if code == 1 && u.install == nil && u.change == nil { // the package itself, or a value, is refused before the cluster is asked
		if out := suite.MustKudo(t, 1, act...); out != text {
			t.Errorf("the preview was refused by\n%s\nand the upgrade by\n%s", text, out)
		}
		checkSame(t, "the refused upgrade", o.before, look(t, ns))
		total.end("refused before the cluster is asked")
		return
	}
	checkWrites(t, asker(ns), since)
	o.said = decode(t, text)
	total.add(o.said)
	o.texts = text
	u.act(t, &o, code, act)
}

// act does the upgrade whose preview has ended with a code, and compares.
func (u upgrade) act(t *testing.T, o *outcome, code int, command []string) {
	t.Helper()
	mayWait := o.warned() || o.lacksRights()
	limit := "300"
	if u.waits || mayWait {
		limit = "20"
	}
	out, done := suite.Kudo(append(command, "--wait", "--wait-time", limit)...)
	o.texts += "\n" + out
	for _, reason := range o.said.Refused {
		env.Contains(t, out, reason)
	}
	stops := u.waits || mayWait && done == 4 || done == 3 && o.failsUnknown(out)
	refused := len(o.said.Refused) > 0 && done == 1
	if code != done && !stops && !refused || u.fails && code != 3 {
		t.Fatalf("the preview ended with %d, and the upgrade with %d:\n%s", code, done, o.texts)
	}
	total.end(map[bool]string{false: fmt.Sprintf("exit code %d", done), true: "stops, as may be"}[stops])
	if o.after = look(t, o.ns); stops {
		o.compareStopped(t)
		return
	}
	for _, said := range o.said.Objects { // what is deleted may wait for its dependents
		if said.Effect == preview.Delete && o.after[said.ID()] != nil {
			env.Eventually(t, said.ID()+" deleted", env.Condition(func() bool { o.after = look(t, o.ns); return o.after[said.ID()] == nil }))
		}
	}
	o.compare(t)
}

// begin installs the package, along with an object that it does not own, and what a user makes of its kinds.
func (u upgrade) begin(t *testing.T, ns string) {
	t.Helper()
	env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "foreign"), Data: map[string]string{"of": "another"}}))
	u.publish(t, ns)
	args := []string{"install", u.write(t, u.files, ns), "--instance", "i", "-n", ns, "--wait", "--wait-time", "180"}
	args = append(args, u.install...)
	for _, value := range u.parameters {
		args = append(args, "-p", value)
	}
	suite.MustKudo(t, 0, args...)
	if u.live != "" {
		obj := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(u.rename(u.live, ns)), &obj.Object))
		obj.SetNamespace(ns)
		env.Must(t, suite.Create(t.Context(), obj))
	}
}

// tally counts upgrades by how they ended, objects by what was said of them, and those of which it was not known.
type tally struct {
	mu               sync.Mutex
	ends             map[string]int
	effects          map[preview.Effect]int
	objects, unknown int
}

var total = tally{ends: map[string]int{}, effects: map[preview.Effect]int{}}

func (s *tally) end(how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[how]++
}

func (s *tally) add(p *preview.Preview) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range p.Objects {
		s.effects[o.Effect]++
	}
	s.objects, s.unknown = s.objects+len(p.Objects), s.unknown+p.Count(preview.Unknown)
}

// check wants that at most 5 of 100 objects are not known.
func (s *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("upgrades: %v; objects: %v", s.ends, s.effects)
	if s.objects > 50 && s.unknown*20 > s.objects { // a few objects say nothing
		t.Errorf("%d of %d objects are unknown: more than 5 of 100", s.unknown, s.objects)
	}
}
