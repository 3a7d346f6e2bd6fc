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

// cases returns an upgrade of each package, all upgrades in environments, and, of the hand-written package, as many as there are packages. If
// KUDO_PREVIEWS is set, it returns that many upgrades of all packages, and each mutation of the hand-written package alone.
func cases(t *testing.T) upgrades {
	t.Helper()
	out := upgrades{}
	all, others := bases(t), environmentCases(t)
	n := len(all) + len(others)
	if text := os.Getenv("KUDO_PREVIEWS"); text == "" {
		for seed := range 1 + len(catalog) + len(packagesOfOthers) { // the same number without a corpus
			out.add(t, all[0], seed)
		}
	} else {
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
	for i := range n {
		switch j := i - len(all); {
		case 0 <= j && j < len(others):
			name := slices.Sorted(maps.Keys(others))[j]
			out[name] = others[name]
		default:
			if j > 0 {
				i -= len(others)
			}
			out.add(t, all[i%len(all)], i/len(all))
		}
	}
	return out
}

// upgrades are cases by their names.
type upgrades map[string]upgrade

// add adds the upgrade of a package by the mutations of a seed.
func (u upgrades) add(t *testing.T, b base, seed int) {
	t.Helper()
	v, names := b.next(t, int64(seed))
	name := b.name
	if slices.Contains(packagesOfOthers, name) {
		name = "corpus/" + name // the skip of the subtest corpus excuses it
	}
	u[fmt.Sprintf("%s %d: %s", name, seed, strings.Join(names, ", "))] = upgrade{base: b, next: v.files, arguments: v.values}
}

// TestMutationsApply checks that each mutation changes one of the packages: a mutation that finds nothing to change tests nothing.
func TestMutationsApply(t *testing.T) {
	all := bases(t)
	for name, mutate := range mutations {
		applies := func(b base) bool { return mutate(b.version(t, rand.New(rand.NewSource(0)))) }
		if !slices.ContainsFunc(all, applies) {
			t.Errorf("mutation %s changes no package", name)
		}
	}
}

// TestHonest makes upgrades from packages by mutations, asks what they would do, does them, and compares plans, effects, fields and
// failures (P17).
func TestHonest(t *testing.T) {
	t.Cleanup(func() { results.check(t) })
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
	command := append([]string{"upgrade", u.write(t, u.next, ns), "--instance", "i", "-n", ns}, u.arguments...)
	o := outcome{ns: ns, before: takeSnapshot(t, ns), earlier: len(history(t, "i", "-n", ns))}
	code := o.ask(t, command)
	text := o.texts
	if code == 1 && u.install == nil && u.change == nil { // the package itself, or a value, is refused before the cluster is asked
		if out := suite.MustKudo(t, 1, command...); out != text {
			t.Errorf("the preview was refused by\n%s\nand the upgrade by\n%s", text, out)
		}
		checkSame(t, "the refused upgrade", o.before, takeSnapshot(t, ns))
		results.end("refused before the cluster is asked")
		return
	}
	o.preview = decode(t, text)
	results.add(o.preview)
	o.checkLocal(t, command)
	u.act(t, &o, code, command)
	act(t, ns, []string{"uninstall", "i", "-n", ns}).compareObjects(t)
}

// ask asks for the preview of a command, keeps what it prints, and returns its exit code. Nothing is changed by it, and no sensitive value is
// printed. From then on, the audit log is that of the command.
func (o *outcome) ask(t *testing.T, command []string) int {
	t.Helper()
	since := auditLogSize(t)
	text, code := suite.Kudo(append(slices.Clone(command), "--dry-run", "-o", "json", "--as", asker(o.ns), "--as-group", "system:masters")...)
	if strings.Contains(text, password) {
		t.Fatalf("the preview shows a sensitive value:\n%s", text)
	}
	checkSame(t, "the preview", o.before, takeSnapshot(t, o.ns))
	if code != 1 {
		checkWrites(t, asker(o.ns), since, true)
	}
	o.texts, o.since = text, auditLogSize(t)
	return code
}

// act asks for the preview of a command, and runs it. The command must end as the preview does.
func act(t *testing.T, ns string, command []string) outcome {
	t.Helper()
	o := outcome{ns: ns, before: takeSnapshot(t, ns)}
	code := o.ask(t, command)
	o.preview = decode(t, o.texts)
	o.texts += "\n" + suite.MustKudo(t, code, append(slices.Clone(command), "--wait", "--wait-time", "180")...)
	o.awaitDeletions(t)
	return o
}

// act does the upgrade whose preview has ended with a code, and compares.
func (u upgrade) act(t *testing.T, o *outcome, code int, command []string) {
	t.Helper()
	// A plan that fails by its preview may also retry what has failed.
	mayWait := o.warned() || o.lacksRights() || code == 3
	limit := "300"
	if u.waits || mayWait {
		limit = "20"
	}
	o.since = auditLogSize(t)
	out, done := suite.Kudo(append(command, "--wait", "--wait-time", limit)...)
	o.texts += "\n" + out
	waitsForCRDs := false
	for _, reason := range o.preview.Refused {
		rest, waits := strings.CutPrefix(reason, "the plan would wait for its CustomResourceDefinitions: ")
		waitsForCRDs = waitsForCRDs || waits
		env.Contains(t, out, rest)
	}
	if waitsForCRDs && done == 4 {
		results.end(stopped)
		o.after = takeSnapshot(t, o.ns)
		o.compareWaiting(t)
		return
	}
	if done == 4 && mayWait && !u.waits { // on a slow machine, the plan may only not have come so far
		done = o.settle(t)
	}
	stops := u.waits || mayWait && done == 4 || done == 3 && o.failsUnknown(out)
	refused := len(o.preview.Refused) > 0 && done == 1
	if code != done && !stops && !refused || u.fails && code != 3 {
		t.Fatalf("the preview ended with %d, and the upgrade with %d:\n%s", code, done, o.texts)
	}
	results.end(map[bool]string{false: fmt.Sprintf("exit code %d", done), true: stopped}[stops])
	if stops {
		o.after = takeSnapshot(t, o.ns)
		o.compareStopped(t)
		return
	}
	o.awaitDeletions(t)
	o.compare(t)
}

// awaitDeletions takes the snapshot of after, and waits for what is to be deleted, which may wait for its dependents or the garbage collector.
func (o *outcome) awaitDeletions(t *testing.T) {
	t.Helper()
	o.after = takeSnapshot(t, o.ns)
	for _, said := range o.objects() {
		if said.Effect == preview.Delete && o.after[said.ID()] != nil {
			env.Eventually(t, said.ID()+" deleted", env.Condition(func() bool { o.after = takeSnapshot(t, o.ns); return o.after[said.ID()] == nil }))
		}
	}
}

// begin installs the package, along with an object that it does not own, and what a user makes of its kinds.
func (u upgrade) begin(t *testing.T, ns string) {
	t.Helper()
	env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "foreign"), Data: map[string]string{"of": "another"}}))
	u.publish(t, ns)
	args := append([]string{"install", u.write(t, u.files, ns), "--instance", "i", "-n", ns}, u.install...)
	args = append(args, u.installParameters...)
	for _, value := range u.parameters {
		args = append(args, "-p", value)
	}
	act(t, ns, args).compare(t)
	if u.live != "" {
		obj := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(u.rename(u.live, ns)), &obj.Object))
		obj.SetNamespace(ns)
		env.Must(t, suite.Create(t.Context(), obj))
	}
}

// tally counts upgrades by their ends, objects by the effect that the previews named, and the objects that they called unknown.
type tally struct {
	mu               sync.Mutex
	ends             map[string]int
	effects          map[preview.Effect]int
	objects, unknown int
	// definitions, migrations and capacities are how many changes of definitions and storage versions, and amounts of resources, were compared.
	definitions, migrations, capacities int
}

// stopped is the end of an upgrade whose plan waits, or failed at what the preview calls unknown.
const stopped = "stopped"

var results = tally{ends: map[string]int{}, effects: map[preview.Effect]int{}}

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

func (s *tally) addDefinition(d preview.Definition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.definitions++
	if d.Migration != nil {
		s.migrations++
	}
}

func (s *tally) addCapacities(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capacities += n
}

// check fails the test if more than 5 of 100 objects are unknown, if no upgrade has succeeded, or if more than a quarter of them stopped,
// so that less of them was compared.
func (s *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("upgrades: %v; objects: %v; definitions: %d, of which %d with another storage version; amounts of resources: %d", s.ends, s.effects,
		s.definitions, s.migrations, s.capacities)
	if s.objects > 50 && s.unknown*20 > s.objects { // a few objects say nothing
		t.Errorf("%d of %d objects are unknown: more than 5 of 100", s.unknown, s.objects)
	}
	ended := 0
	for _, n := range s.ends {
		ended += n
	}
	if ended > 10 && (s.definitions == 0 || s.migrations == 0 || s.capacities == 0) {
		t.Errorf("too little was compared: %d definitions, %d migrations and %d amounts of resources", s.definitions, s.migrations, s.capacities)
	}
	if ended > 10 && (s.ends["exit code 0"] == 0 || s.ends[stopped]*4 > ended) {
		t.Errorf("too few upgrades went on to their end: %v", s.ends)
	}
}
