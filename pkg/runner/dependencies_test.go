package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// needsRules answers what objects depend on, by their names, and counts the questions.
type needsRules struct {
	answers map[string]any
	asked   map[string]int
}

func (n *needsRules) Explore(_ context.Context, r explore.Request) (explore.Answer, bool, error) {
	if r.Operation != explore.Dependencies {
		return explore.Answer{}, false, nil
	}
	n.asked[r.Object.GetName()]++
	switch answer := n.answers[r.Object.GetName()].(type) {
	case []v1alpha1.DependentObjectReference:
		return explore.Answer{Dependencies: answer}, true, nil
	case error:
		return explore.Answer{}, false, answer
	}
	return explore.Answer{}, false, nil
}

// secrets refers to Secrets of namespace ns.
func secrets(names ...string) (out []v1alpha1.DependentObjectReference) {
	for _, name := range names {
		out = append(out, v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: name})
	}
	return out
}

// bench executes runs of Instance ns/i on a server.
type bench struct {
	*Runner
	server    *apitest.Server
	clock     *clocktesting.FakePassiveClock
	inventory Inventory
	keys      *keyring.Ring
	// intents are the messages of the plan when it was about to write.
	intents []string
}

func (b *bench) RecordIntent(_ context.Context, st v1beta1.PlanStatus, intent Intent) error {
	if len(intent.Objects) > 0 {
		b.intents = append(b.intents, st.Phases[0].Steps[0].Message)
	}
	return nil
}

func (b *bench) RecordEffects(effects Effects) {
	for _, change := range effects.Written {
		b.inventory[change.ID] = change.Record
	}
}

// newBench returns a bench whose account may not read Secrets with the name forbidden.
func newBench(t *testing.T, all Interpreter, objects ...client.Object) *bench {
	t.Helper()
	server := apitest.Start(t, objects...)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Name == "forbidden" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, r.Name, errors.New("no rule"))
		}
		return nil, nil
	})
	writes, errWrites := dynamic.NewForConfig(server.Config())
	lists, errLists := metadata.NewForConfig(server.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(server.Config())
	data, errKeys := keyring.Rotate(nil, rand.Reader)
	keys, errRing := keyring.Parse(data)
	if err := errors.Join(errWrites, errLists, errServed, errKeys, errRing); err != nil {
		t.Fatal(err)
	}
	kinds := apply.NewKinds(server.Mapper(), served, writes)
	mirror := apply.NewMirror(t.Context(), writes, server.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	return &bench{
		Runner: New(Options{Engine: apply.New(writes, lists, kinds, mirror, nil), Accounts: apply.NewAccounts(server.Config(), lists, kinds, mirror, nil),
			Kinds: kinds, Mirror: mirror, All: all, External: explore.Chain{}}),
		server: server, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0)), inventory: Inventory{}, keys: keys,
	}
}

// install returns a run whose one step has a task for each template.
func (b *bench) install(t *testing.T, templates ...string) (*Run, *v1beta1.PlanStatus) {
	t.Helper()
	u, byName, step := run(nil), map[string]string{}, v1beta1.Step{Name: "s"}
	var tasks []v1beta1.Task
	for i, template := range templates {
		name := fmt.Sprintf("t%d", i)
		byName[name+".yaml"] = template
		tasks = append(tasks, v1beta1.Task{Name: name, Kind: v1beta1.ApplyTask, Spec: v1beta1.TaskSpec{Resources: []string{name + ".yaml"}}})
		step.Tasks = append(step.Tasks, name)
	}
	u.Version, u.Plan, u.UID, u.Account = version(t, byName, tasks...), "deploy", "this-run", apply.Account{Namespace: "ns", Name: "kudo"}
	u.Keys = b.keys
	plan := v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{{Name: "p", Strategy: v1beta1.Serial, Steps: []v1beta1.Step{step}}}}
	u.Version.Spec.Plans["deploy"] = plan
	st := plans.Start("deploy", plan, u.UID, 1, b.clock.Now())
	return u, &st
}

func (b *bench) execute(t *testing.T, u *Run, st *v1beta1.PlanStatus) ExecutionResult {
	t.Helper()
	out, err := b.Execute(t.Context(), u, b.inventory, st, b.clock, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// configMap is the template of a ConfigMap, with an annotation if one is given.
func configMap(name, mode string) string {
	metadata := "name: " + name
	if mode != "" {
		metadata += ", annotations: {" + v1beta1.DependenciesAnnotation + ": " + mode + "}"
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {" + metadata + "}\n"
}

func secret(name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
}

// TestDependenciesBeforeApply is C63: what an object depends on and is not there, is said before the first write, waited for, or refused.
func TestDependenciesBeforeApply(t *testing.T) {
	labeled := []v1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: "ns",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "tea"}}}}
	kind := func(apiVersion, kind, namespace, name string) []v1alpha1.DependentObjectReference {
		return []v1alpha1.DependentObjectReference{{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}}
	}
	for _, tc := range []struct {
		reason, mode string
		needs        any
		made         string // the template of a later task
		status       v1beta1.ExecutionStatus
		intent       string // the message before the write, if there is one
		message      string // that of a plan which does not write
	}{
		{"all is there", "refuse", secrets("there"), "", v1beta1.Complete, "", ""},
		{"no layer answers", "refuse", nil, "", v1beta1.Complete, "", ""},
		{"without the annotation, it is written, and what is missing is said before", "", secrets("z", "there", "a"), "", v1beta1.Complete,
			"ConfigMap ns/a: needs Secret ns/z, Secret ns/a: missing", ""},
		{"many are counted", "", secrets("a", "b", "c", "d", "e"), "", v1beta1.Complete, "needs Secret ns/a, Secret ns/b, Secret ns/c and 2 more: missing", ""},
		{"await waits", "await", secrets("lid"), "", v1beta1.InProgress, "",
			"ConfigMap ns/a is not written yet: needs Secret ns/lid: missing: create it, or remove the annotation kudo.dev/dependencies=await from the template"},
		{"refuse ends the plan", "refuse", secrets("lid"), "", v1beta1.FatalError, "",
			"ConfigMap ns/a is not written: needs Secret ns/lid: missing: create it and run the plan again, or remove the annotation kudo.dev/dependencies=refuse"},
		{"a 403 is not known, and is said", "", secrets("forbidden"), "", v1beta1.Complete, `needs Secret ns/forbidden (secrets "forbidden" is forbidden: no rule): not known`, ""},
		{"a 403 is no reason to refuse", "refuse", secrets("forbidden"), "", v1beta1.Complete, "needs Secret ns/forbidden (", ""},
		{"a 403 is awaited", "await", secrets("forbidden"), "", v1beta1.InProgress, "", "not known: let ServiceAccount ns/kudo read it, or remove the annotation"},
		{"an answer that cannot be had is said", "", errors.New("no answer"), "", v1beta1.Complete, "its dependencies are not known: no answer", ""},
		{"and no reason to refuse", "refuse", errors.New("no answer"), "", v1beta1.Complete, "its dependencies are not known: no answer", ""},
		{"it is asked for again with back-off", "await", errors.New("no answer"), "", v1beta1.InProgress, "", "its dependencies are not known: no answer: correct the rule or the webhook"},
		{"what a later task of the run makes is not missing", "await", secrets("made"), "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\n", v1beta1.Complete, "", ""},
		{"nor if it is named by labels", "refuse", labeled, "apiVersion: v1\nkind: Secret\nmetadata: {name: made, labels: {app: tea}}\n", v1beta1.Complete, "", ""},
		{"an object with other labels is none", "refuse", labeled, "apiVersion: v1\nkind: Secret\nmetadata: {name: made, labels: {app: mate}}\n", v1beta1.FatalError, "",
			`needs Secret ns with labels "app=tea": missing`},
		{"a kind that is not served is not known", "refuse", kind("example.com/v1", "Pot", "ns", "p"), "", v1beta1.Complete, "needs Pot ns/p (no matches for kind", ""},
		{"a rule without a namespace", "refuse", kind("v1", "Secret", "", "p"), "", v1beta1.Complete, "Secret has a namespace: name it in the reference", ""},
		{"a name is not a path", "await", kind("v1", "Secret", "ns", "../../nodes"), "", v1beta1.InProgress, "", `"../../nodes" may not contain '/'`},
		{"of a kind without namespaces, a rule may name one", "refuse", kind("v1", "Namespace", "ns", "ns"), "", v1beta1.Complete, "", ""},
		{"control characters do not reach a terminal", "refuse", kind("v1", "Secret", "ns", "a\x1b[2J"), "", v1beta1.FatalError, "", "Secret ns/a[2J"},
		{"a wrong value of the annotation", "wait", secrets("there"), "", v1beta1.FatalError, "",
			`ConfigMap ns/a: annotation kudo.dev/dependencies is "wait": use await or refuse, or remove the annotation`},
	} {
		rules := &needsRules{map[string]any{"a": tc.needs}, map[string]int{}}
		b := newBench(t, rules, secret("there", nil), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		templates := []string{configMap("a", tc.mode)}
		if tc.made != "" {
			templates = append(templates, tc.made)
		}
		u, st := b.install(t, templates...)
		out := b.execute(t, u, st)
		message := st.Message
		if st.Status == v1beta1.InProgress {
			message = st.Phases[0].Steps[0].Message
		}
		if st.Status != tc.status || !strings.Contains(message, tc.message) || rules.asked["a"] > 1 {
			t.Errorf("%s: %s %q after %d questions, want %s %q", tc.reason, st.Status, message, rules.asked["a"], tc.status, tc.message)
		}
		if _, failed := tc.needs.(error); out.Transient != (failed && tc.mode == "await") {
			t.Errorf("%s: transient %t", tc.reason, out.Transient)
		}
		if tc.made != "" && tc.status == v1beta1.FatalError {
			continue // the other task was about to write
		}
		if written := len(b.intents) > 0; written != (tc.status == v1beta1.Complete) || written && (tc.intent == "") != (b.intents[0] == "") ||
			written && !strings.Contains(b.intents[0], tc.intent) {
			t.Errorf("%s: before the write it said %q, want %q", tc.reason, b.intents, tc.intent)
		}
	}
}

// TestDependenciesAwaited is C63: a task continues when what it waits for is there, and asks anew only if rules have changed.
func TestDependenciesAwaited(t *testing.T) {
	rules := &needsRules{map[string]any{"a": secrets("lid"), "b": secrets("there")}, map[string]int{}}
	b := newBench(t, rules, secret("there", nil))
	u, st := b.install(t, configMap("a", "await")+"---\n"+configMap("b", "await"))
	for range 3 {
		b.execute(t, u, st)
	}
	if st.Status != v1beta1.InProgress || len(b.intents) > 0 || rules.asked["a"] != 3 || rules.asked["b"] != 1 {
		t.Errorf("it is %s after the questions %v, and wrote after %q", st.Status, rules.asked, b.intents)
	}
	looks := map[string]int{}
	for _, request := range b.server.Requests() {
		looks[request]++
	}
	if looks["get Secret ns/lid"] != 3 || looks["get Secret ns/there"] != 1 {
		t.Errorf("what is missing is looked for each time, and what is there once: %v", looks)
	}
	rules.answers["b"] = secrets("top")
	b.execute(t, u, st)
	if message := st.Phases[0].Steps[0].Message; rules.asked["b"] != 1 || strings.Contains(message, "top") {
		t.Errorf("an answer that named what is there was not kept: %d questions, and it says %q", rules.asked["b"], message)
	}
	u.RulesChanged(func(kind schema.GroupVersionKind) bool { return kind.Kind == "ConfigMap" })
	b.execute(t, u, st)
	if message := st.Phases[0].Steps[0].Message; rules.asked["b"] != 2 || !strings.Contains(message, "needs Secret ns/lid: missing") {
		t.Errorf("%d questions, and it says %q", rules.asked["b"], message)
	}
	b.server.Put(secret("top", nil))
	b.server.Put(secret("lid", nil))
	b.execute(t, u, st)
	if st.Status != v1beta1.Complete {
		t.Errorf("it is %s: %s", st.Status, st.Message)
	}
}

// TestWebhookRepaired is C63: what a webhook answered while it was broken does not outlive that, although no configuration has changed: an
// error, an answer of another layer in its place, or a wrong answer.
func TestWebhookRepaired(t *testing.T) {
	for reason, answer := range map[string]any{"an error": errors.New("no answer"), "a wrong answer": secrets("wrong"), "an answer that names what is not known": secrets("forbidden")} {
		rules := &needsRules{map[string]any{"a": answer}, map[string]int{}}
		b := newBench(t, rules, secret("lid", nil))
		u, st := b.install(t, configMap("a", "await"))
		if b.execute(t, u, st); st.Status != v1beta1.InProgress {
			t.Errorf("%s: %s %q", reason, st.Status, st.Message)
		}
		rules.answers["a"] = secrets("lid")
		if b.execute(t, u, st); st.Status != v1beta1.Complete {
			t.Errorf("after %s, in the same run: %s %q", reason, st.Status, st.Phases[0].Steps[0].Message)
		}
	}
}

// TestIgnoredWebhook is C63: while a task waits for another object, no dependencies are no lasting answer, since a webhook that is ignored while it
// does not respond gives none.
func TestIgnoredWebhook(t *testing.T) {
	rules := &needsRules{map[string]any{"a": secrets("lid")}, map[string]int{}}
	b := newBench(t, rules)
	u, st := b.install(t, configMap("a", "await")+"---\n"+configMap("b", "await"))
	b.execute(t, u, st)
	rules.answers["b"] = secrets("top")
	b.server.Put(secret("lid", nil))
	b.execute(t, u, st)
	if message := st.Phases[0].Steps[0].Message; len(b.intents) > 0 || !strings.Contains(message, "ConfigMap ns/b is not written yet: needs Secret ns/top: missing") {
		t.Errorf("it says %q, and wrote after %q", message, b.intents)
	}
}

// slowRules are rules of which each answer takes a time.
type slowRules struct {
	*needsRules
	clock *clocktesting.FakePassiveClock
	takes time.Duration
}

// Explore implements Interpreter.
func (s *slowRules) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	if r.Operation == explore.Dependencies {
		s.clock.SetTime(s.clock.Now().Add(s.takes))
	}
	return s.needsRules.Explore(ctx, r)
}

// TestDependencyTime is C63: one Execute does not ask for dependencies without end. It says what it has not asked, begins with the objects that
// wait for answers, and continues in the next one.
func TestDependencyTime(t *testing.T) {
	rules := &slowRules{needsRules: &needsRules{map[string]any{}, map[string]int{}}, takes: dependencyTime/3 + 1}
	b := newBench(t, rules)
	rules.clock = b.clock
	var templates []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		rules.answers[name] = secrets("there")
		templates = append(templates, configMap(name, map[string]string{"e": "await"}[name]))
	}
	b.server.Put(secret("there", nil))
	u, st := b.install(t, strings.Join(templates, "---\n"))
	b.execute(t, u, st)
	if want := map[string]int{"e": 1, "a": 1, "b": 1}; !maps.Equal(rules.asked, want) || st.Status != v1beta1.Complete {
		t.Errorf("the questions were %v, want %v; the plan is %s: %s", rules.asked, want, st.Status, st.Message)
	}
	if len(b.intents) != 1 || !strings.Contains(b.intents[0], "ConfigMap ns/d: its dependencies are not known: kudo looks for dependencies for 10s at a time") {
		t.Errorf("before the write it said %q", b.intents)
	}

	rules.takes = 2 * dependencyTime
	rules.answers["slow"], rules.answers["slower"] = secrets("there"), secrets("there")
	u, st = b.install(t, configMap("slow", "await")+"---\n"+configMap("slower", "await"))
	for range 2 {
		b.execute(t, u, st)
	}
	if st.Status != v1beta1.Complete || rules.asked["slow"] != 1 || rules.asked["slower"] != 1 {
		t.Errorf("answers that take longer than there is time: %s after %v: %s", st.Status, rules.asked, st.Phases[0].Steps[0].Message)
	}
}

// TestDependencyRequestsHang is C63: a request that does not end is given up, and not kept.
func TestDependencyRequestsHang(t *testing.T) {
	d, asked := &dependencies{}, 0
	d.begin(false, clocktesting.NewFakePassiveClock(time.Unix(1, 0)), nil)
	d.left = 0
	rules := &needsRules{map[string]any{"a": secrets("x", "y", "z")}, map[string]int{}}
	exists := func(ctx context.Context, _ apply.ID, _ labels.Selector) (bool, error) {
		asked++
		return false, ctx.Err()
	}
	obj := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}.Object()
	obj.SetName("a")
	if n := d.find(t.Context(), rules, obj, exists).String(); asked > 0 || !strings.Contains(n, "its dependencies are not known: kudo looks") {
		t.Errorf("without time it looked %d times: %s", asked, n)
	}
	d.left = time.Second
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n := d.find(ended, rules, obj, exists).String(); asked > 0 || !strings.Contains(n, "needs Secret ns/x (kudo looks for dependencies for 10s") {
		t.Errorf("after its time it looked %d times: %s", asked, n)
	}
	if n := d.find(t.Context(), rules, obj, exists).String(); asked != 3 || n != "needs Secret ns/x, Secret ns/y, Secret ns/z: missing" {
		t.Errorf("it looked %d times: %s", asked, n)
	}
}

// TestDependencyBounds is C63: rules and packages do not make a run look for objects without end.
func TestDependencyBounds(t *testing.T) {
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("s%d", i))
	}
	answers, templates := map[string]any{}, []string{}
	for i := range 20 {
		name := fmt.Sprintf("a%d", i)
		answers[name] = secrets(many[i*maxDependencies : (i+5)*maxDependencies]...)
		templates = append(templates, configMap(name, ""))
	}
	b := newBench(t, &needsRules{answers, map[string]int{}})
	u, st := b.install(t, strings.Join(templates, "---\n"))
	b.execute(t, u, st)
	looks := 0
	for _, request := range b.server.Requests() {
		if strings.HasPrefix(request, "get Secret") {
			looks++
		}
	}
	if looks != maxSearched || len(b.intents) != 1 || !strings.Contains(b.intents[0], "400 more objects (kudo looks for 100): not known") ||
		!strings.Contains(b.intents[0], "and 17 more") {
		t.Errorf("%d looks; before the write it said %q", looks, b.intents)
	}
}

const webTemplates = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      serviceAccountName: web
      containers: [{name: c, image: nginx}]
      volumes: [{name: words, configMap: {name: words}}, {name: key, secret: {secretName: key}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
`

// TestDependencyRequests is C63: dependencies of the same package, of which kudo knows from the hash, and of unchanged objects cost no
// request; and others one each.
func TestDependencyRequests(t *testing.T) {
	deployment, _, _ := strings.Cut(webTemplates, "---")
	for _, tc := range []struct {
		reason    string
		templates []string
		objects   []client.Object
		more      []string
	}{
		{"all of it is of the task", []string{webTemplates}, nil, nil},
		{"the ConfigMap and the Secret were read for the hash", []string{strings.Replace(deployment, "serviceAccountName: web", "", 1)}, []client.Object{
			&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "words")}, secret("key", nil)}, nil},
		{"the account is another's: two objects that need it cost one request", []string{deployment + "---\n" + strings.Replace(deployment, "name: web}", "name: other}", 1)},
			[]client.Object{&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "words")}, secret("key", nil), &corev1.ServiceAccount{ObjectMeta: gen.Meta("ns", "web")}},
			[]string{"get ServiceAccount ns/web"}},
	} {
		var got, again [2][]string // of the first run, and of a second one that changes nothing
		for i, all := range []Interpreter{explore.Chain{}, explore.Chain{native.New(nil, nil)}} {
			b := newBench(t, all, tc.objects...)
			u, st := b.install(t, tc.templates...)
			b.execute(t, u, st)
			got[i] = requests(b.server)
			u, st = b.install(t, tc.templates...)
			b.execute(t, u, st)
			again[i] = requests(b.server)
		}
		for _, pair := range [][2][]string{got, again} {
			want := append(slices.Clone(pair[0]), tc.more...)
			slices.Sort(want)
			if diff := cmp.Diff(want, pair[1]); diff != "" {
				t.Errorf("%s: requests without and with the question (-without +with):\n%s", tc.reason, diff)
			}
		}
		if len(got[0]) == 0 {
			t.Errorf("%s: there were no requests", tc.reason)
		}
	}
}

// requests returns the requests for objects since the last call, in the order of their texts.
func requests(server *apitest.Server) []string {
	all := slices.DeleteFunc(server.Requests(), func(r string) bool {
		return strings.HasPrefix(r, "/") || strings.HasPrefix(r, "watch") || strings.HasPrefix(r, "list")
	})
	slices.Sort(all)
	return all
}

// brokenPacking are rules, and a webhook for packing that has no answer while err is set.
type brokenPacking struct {
	needsRules
	err error
}

func (b *brokenPacking) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	if r.Operation == explore.Packing && r.Object.GetName() == "made" && b.err != nil {
		return explore.Answer{}, false, b.err
	}
	return b.needsRules.Explore(ctx, r)
}

// TestRefusePartial is C63: what a task of the step makes is not refused as missing while that task cannot be rendered.
func TestRefusePartial(t *testing.T) {
	rules := &brokenPacking{needsRules{map[string]any{"a": secrets("made")}, map[string]int{}}, errors.New("the webhook is away")}
	b := newBench(t, rules)
	u, st := b.install(t, configMap("a", "refuse"), "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\n")
	if out := b.execute(t, u, st); !out.Transient || st.Status != v1beta1.InProgress {
		t.Errorf("while the other task cannot be rendered: %s %q, transient %t", st.Status, st.Message, out.Transient)
	}
	rules.err = nil
	if b.execute(t, u, st); st.Status != v1beta1.Complete {
		t.Errorf("afterwards: %s %q", st.Status, st.Message)
	}
}
