package exploreconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// fixture is the controller on a client in memory.
type fixture struct {
	client.Client
	*Reconciler
	t *testing.T
	// writes are the statuses that were written, by kind and name.
	writes []string
	// fail answers a request instead of the client; it may be nil.
	fail func(request string) error
	// changes counts the calls of Changed, and affects is what the last one was given.
	changes int
	affects Affects
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	f := &fixture{t: t}
	scheme := runtime.NewScheme()
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	refusal := func(request string) error {
		if f.fail == nil {
			return nil
		}
		return f.fail(request)
	}
	f.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&configv1alpha1.Config{}, &configv1alpha1.ResourceExploringWebhookConfiguration{}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, inner client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := refusal(kindOf(list)); err != nil {
					return err
				}
				return inner.List(ctx, list, opts...)
			},
			SubResourcePatch: func(ctx context.Context, inner client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				f.writes = append(f.writes, obj.GetName())
				if err := refusal(obj.GetName()); err != nil {
					return err
				}
				return inner.SubResource(name).Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	interpreter, err := New(webhook.Options{Resources: webhook.FromMapper(meta.NewDefaultRESTMapper(nil))}, nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f.Reconciler = &Reconciler{Client: f.Client, Interpreter: interpreter, backoff: loop.NewBackoff()}
	f.Changed = func(_ context.Context, affects Affects) {
		f.changes++
		f.affects = affects
	}
	return f
}

// kindOf names the kind of a list.
func kindOf(list client.ObjectList) string {
	if _, is := list.(*configv1alpha1.ConfigList); is {
		return "Configs"
	}
	return "ResourceExploringWebhookConfigurations"
}

func (f *fixture) reconcileOnce() ctrl.Result {
	f.t.Helper()
	result, err := f.Reconcile(f.t.Context(), singleRequest[0])
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

// ready is the condition of an object as tests compare it; empty if there is none.
func (f *fixture) ready(name string) string {
	f.t.Helper()
	c := &configv1alpha1.Config{}
	if err := f.Client.Get(f.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		f.t.Fatal(err)
	}
	found := meta.FindStatusCondition(c.Status.Conditions, ReadyCondition)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}

// healthRule is a Config by which Ships are healthy or not.
func healthRule(name, script string) *configv1alpha1.Config {
	c := &configv1alpha1.Config{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3}}
	c.Spec.Explorations = []configv1alpha1.Exploration{{APIVersion: "example.com/v1", Kind: "Ship", HealthLua: script}}
	return c
}

// healthy asks the interpreter about a Ship.
func (f *fixture) healthy() string {
	f.t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Ship"}}
	answer, known, err := f.Interpreter.All.Explore(f.t.Context(), explore.Request{Operation: explore.Healthy, Object: obj})
	switch {
	case err != nil:
		return "error"
	case !known:
		return "not known"
	case answer.Healthy:
		return "healthy"
	}
	return "unhealthy"
}

// TestReconcile checks that the answers follow the Configs, and that Instances are reconciled again when they differ only.
func TestReconcile(t *testing.T) {
	f := newFixture(t)
	rule := healthRule("ships", "return false")
	for _, step := range []struct {
		reason  string
		do      func(context.Context) error
		want    string
		changes int
		writes  []string
	}{
		{"there is no configuration", nil, "not known", 0, nil},
		{"nothing has changed", nil, "not known", 0, nil},
		{"the first rule", func(ctx context.Context) error { return f.Create(ctx, rule) }, "unhealthy", 1, []string{"ships"}},
		{"the rule has not changed: no status is written", nil, "unhealthy", 0, nil},
		{"the rule is edited", func(ctx context.Context) error {
			rule.Spec.Explorations[0].HealthLua = "return true"
			return f.Update(ctx, rule)
		}, "healthy", 1, nil},
		{"a rule of another kind changes no answer about Ships", func(ctx context.Context) error {
			other := healthRule("trains", "return true")
			other.Spec.Explorations[0].Kind = "Train"
			return f.Create(ctx, other)
		}, "healthy", 1, []string{"trains"}},
		{"the rule is deleted", func(ctx context.Context) error { return f.Delete(ctx, rule) }, "not known", 1, nil},
	} {
		if step.do != nil {
			if err := step.do(t.Context()); err != nil {
				t.Fatalf("%s: %v", step.reason, err)
			}
			current := &configv1alpha1.Config{}
			if f.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), current) == nil {
				rule.ResourceVersion = current.ResourceVersion
			}
		}
		f.changes, f.writes = 0, nil
		f.reconcileOnce()
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(rule), rule); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if got := f.healthy(); got != step.want || f.changes != step.changes || !slices.Equal(f.writes, step.writes) {
			t.Errorf("%s: %s, %d changes, writes %v, want %s, %d, %v", step.reason, got, f.changes, f.writes, step.want, step.changes, step.writes)
		}
	}
}

// TestLoad checks that the first configuration answers before a reconcile, enqueues what was asked about before, and writes no status.
func TestLoad(t *testing.T) {
	f := newFixture(t, healthRule("ships", "return true"))
	if got := f.healthy(); got != "error" {
		t.Errorf("before the configuration is loaded, an answer is %s, want an error", got)
	}
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.healthy(); got != "healthy" || f.changes != 1 || len(f.writes) > 0 {
		t.Errorf("%s, %d changes, writes %v", got, f.changes, f.writes)
	}
	unasked := newFixture(t, healthRule("ships", "return true"))
	if err := unasked.Load(t.Context()); err != nil || unasked.changes != 0 {
		t.Errorf("without a question before: %d changes (%v)", unasked.changes, err)
	}
}

// TestLoadBesideReconcile checks that configuration that was read before that of a reconcile is not published after it.
func TestLoadBesideReconcile(t *testing.T) {
	f := newFixture(t)
	read, changed := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	f.fail = func(request string) error {
		if request == "ResourceExploringWebhookConfigurations" && first.CompareAndSwap(false, true) {
			close(read) // the Configs were read
			<-changed
		}
		return nil
	}
	loaded, reconciled := make(chan error, 1), make(chan error, 1)
	go func() { loaded <- f.Load(t.Context()) }()
	<-read
	if err := f.Create(t.Context(), healthRule("ships", "return true")); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := f.Reconcile(t.Context(), singleRequest[0])
		reconciled <- err
	}()
	select { // a reconcile that does not wait ends here
	case err := <-reconciled:
		reconciled <- err
	case <-time.After(100 * time.Millisecond):
	}
	close(changed)
	if err := errors.Join(<-loaded, <-reconciled); err != nil {
		t.Fatal(err)
	}
	if got := f.healthy(); got != "healthy" {
		t.Errorf("%s, want the answer of the configuration that was read last", got)
	}
}

// TestUnread checks that configuration that cannot be listed changes no answer, and is listed again after a back-off.
func TestUnread(t *testing.T) {
	for _, refused := range []string{"Configs", "ResourceExploringWebhookConfigurations"} {
		f := newFixture(t, healthRule("ships", "return true"))
		f.reconcileOnce()
		if err := f.Delete(t.Context(), healthRule("ships", "")); err != nil {
			t.Fatal(err)
		}
		f.fail = func(request string) error {
			if request == refused {
				return errors.New("down")
			}
			return nil
		}
		if err := f.Load(t.Context()); err == nil || err.Error() != "list "+refused+": down" {
			t.Errorf("%s: error %v", refused, err)
		}
		if result := f.reconcileOnce(); result.RequeueAfter <= 0 || f.healthy() != "healthy" || f.changes != 0 {
			t.Errorf("%s: again after %s, %s, %d changes", refused, result.RequeueAfter, f.healthy(), f.changes)
		}
		f.fail = nil
		if f.reconcileOnce(); f.healthy() != "not known" || f.changes != 1 {
			t.Errorf("%s can be listed again: %s, %d changes", refused, f.healthy(), f.changes)
		}
	}
}

// TestConfigStatus checks the conditions of Configs, one of which is not valid, and that an error for one keeps none of the others.
func TestConfigStatus(t *testing.T) {
	invalid := healthRule("b-invalid", "return (")
	f := newFixture(t, healthRule("a-refused", "return true"), invalid, healthRule("c-deleted", "return 1"))
	f.fail = func(request string) error {
		switch request {
		case "a-refused":
			return errors.New("down")
		case "c-deleted":
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configs"}, request)
		}
		return nil
	}
	if result := f.reconcileOnce(); result.RequeueAfter <= 0 {
		t.Error("a status that was not written is not tried again")
	}
	if diff := cmp.Diff([]string{"a-refused", "b-invalid", "c-deleted"}, f.writes); diff != "" {
		t.Errorf("writes: -want +got: %s", diff)
	}
	if got := f.ready("b-invalid"); got != "False Invalid" {
		t.Errorf("the condition of the invalid Config is %q", got)
	}
	f.fail, f.writes = nil, nil
	f.reconcileOnce()
	if diff := cmp.Diff([]string{"a-refused", "c-deleted"}, f.writes); diff != "" {
		t.Errorf("writes of the next reconcile: -want +got: %s", diff)
	}
	stored := &configv1alpha1.Config{}
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(invalid), stored); err != nil {
		t.Fatal(err)
	}
	condition := meta.FindStatusCondition(stored.Status.Conditions, ReadyCondition)
	if stored.Status.ObservedGeneration != 3 || condition.ObservedGeneration != 3 || condition.Message == "" {
		t.Errorf("status %+v: want generation 3, and a message", stored.Status)
	}
}

// TestConfigMessage checks that the message of a Config with many problems fits into its condition.
func TestConfigMessage(t *testing.T) {
	c := healthRule("many", "return (")
	for n := range 1000 {
		c.Spec.Explorations = append(c.Spec.Explorations, configv1alpha1.Exploration{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Ship%d", n), HealthLua: "return ("})
	}
	f := newFixture(t, c)
	f.reconcileOnce()
	stored := &configv1alpha1.Config{}
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(c), stored); err != nil {
		t.Fatal(err)
	}
	if message := stored.Status.Conditions[0].Message; len(message) > maxMessage || !strings.HasSuffix(message, "…") {
		t.Errorf("a message of %d bytes, which ends with %q", len(message), message[max(0, len(message)-10):])
	}
}

// TestWebhookStatus checks the condition of a configuration of webhooks, and that only another answer enqueues Instances.
func TestWebhookStatus(t *testing.T) {
	hooks := &configv1alpha1.ResourceExploringWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks", Generation: 2}}
	hooks.Webhooks = []configv1alpha1.ResourceExploringWebhook{answering("a.example.com")}
	f := newFixture(t, hooks)
	current := func() *configv1alpha1.ResourceExploringWebhookConfiguration {
		stored := &configv1alpha1.ResourceExploringWebhookConfiguration{}
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(hooks), stored); err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if err := f.updateWebhookStatus(t.Context(), current()); err != nil {
		t.Fatal(err)
	}
	if c := current().Status.Conditions[0]; c.Status != metav1.ConditionFalse || c.Reason != webhook.ReasonUnknown || c.ObservedGeneration != 2 {
		t.Errorf("condition before it is loaded: %+v", c)
	}
	f.reconcileOnce()
	if c := current().Status.Conditions[0]; c.Status != metav1.ConditionTrue || c.Reason != webhook.ReasonReady || f.changes != 0 {
		t.Errorf("condition %+v, %d changes, want it ready, and none since there were no answers before", c, f.changes)
	}
	if f.reconcileOnce(); f.changes != 0 || len(f.writes) != 2 {
		t.Errorf("%d changes, %d writes after a reconcile without news", f.changes, len(f.writes))
	}
}

// answering is a webhook that may be asked.
func answering(name string) configv1alpha1.ResourceExploringWebhook {
	w := configv1alpha1.ResourceExploringWebhook{Name: name, ExploreReviewVersions: []string{"v1alpha1"}}
	w.ClientConfig.URL = ptr.To("https://127.0.0.1:1/explore")
	return w
}

// TestWebhookMessage checks that the message of webhooks with many problems fits into its condition: the API server refuses a longer
// one, and the condition would stay as it was.
func TestWebhookMessage(t *testing.T) {
	hooks := &configv1alpha1.ResourceExploringWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}}
	for n := range 8 {
		w := answering(fmt.Sprintf("webhook-%d.example.com", n))
		for m := range 64 {
			w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprintf("condition-%d", m), Expression: "ä("})
		}
		hooks.Webhooks = append(hooks.Webhooks, w)
	}
	f := newFixture(t, hooks)
	f.reconcileOnce()
	stored := &configv1alpha1.ResourceExploringWebhookConfiguration{}
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(hooks), stored); err != nil {
		t.Fatal(err)
	}
	c := stored.Status.Conditions[0]
	if c.Reason != webhook.ReasonInvalid || len(c.Message) > maxMessage || !strings.HasPrefix(c.Message, "webhook webhook-0.example.com: ") || !strings.HasSuffix(c.Message, "…") {
		t.Errorf("%s with a message of %d bytes, which begins with %.40q", c.Reason, len(c.Message), c.Message)
	}
}

// TestEnqueue checks C66: when webhooks start or stop to answer in time, which neither blocks nor fills the queue, the next reconcile
// that succeeds enqueues what they affect, once.
func TestEnqueue(t *testing.T) {
	hooks := &configv1alpha1.ResourceExploringWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hooks"}}
	for _, kind := range []string{"ship", "train"} {
		hook := answering(kind + ".example.com")
		hook.Rules = []configv1alpha1.RuleWithOperations{{Operations: []configv1alpha1.OperationType{configv1alpha1.AnyOperation}, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{kind + ".example.com"}, APIVersions: []string{"v1"}, Resources: []string{"*"},
		}}}
		hooks.Webhooks = append(hooks.Webhooks, hook)
	}
	f := newFixture(t, hooks)
	f.reconcileOnce()
	ships := configv1alpha1.ResourceExploringWebhookConfiguration{ObjectMeta: hooks.ObjectMeta, Webhooks: hooks.Webhooks[:1]}
	other := webhook.New(webhook.Options{Resources: webhook.FromMapper(meta.NewDefaultRESTMapper(nil))})
	change := other.Set([]configv1alpha1.ResourceExploringWebhookConfiguration{ships})
	for range 3 {
		f.Interpreter.enqueue(change)
	}
	if events, pending := len(f.Interpreter.changed), len(f.Interpreter.pending); events != 1 || pending != 1 {
		t.Errorf("%d events and %d changes wait, want 1 of each", events, pending)
	}
	f.fail = func(request string) error { return errors.New("down") }
	if f.reconcileOnce(); f.changes != 0 {
		t.Errorf("%d changes of a reconcile that read nothing", f.changes)
	}
	f.fail = nil
	if f.reconcileOnce(); f.changes != 1 {
		t.Fatalf("%d changes, want 1", f.changes)
	}
	for group, want := range map[string]bool{"ship.example.com": true, "train.example.com": false} {
		if got := f.affects(t.Context(), schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Any"}); got != want {
			t.Errorf("kinds of %s are affected: %t, want %t", group, got, want)
		}
	}
	if f.reconcileOnce(); f.changes != 1 {
		t.Errorf("%d changes after a reconcile without news, want 1", f.changes)
	}
}

// TestElected checks C22: on a hub, each manager answers by the configuration, and only the leader writes statuses.
func TestElected(t *testing.T) {
	f := newFixture(t, healthRule("ships", "return true"))
	elected := make(chan struct{})
	f.Elected = elected
	if f.reconcileOnce(); f.healthy() != "healthy" || len(f.writes) > 0 {
		t.Errorf("before the election: %s, writes %v", f.healthy(), f.writes)
	}
	close(elected)
	if f.reconcileOnce(); f.healthy() != "healthy" || f.ready("ships") != "True Loaded" {
		t.Errorf("the leader: %s, condition %q", f.healthy(), f.ready("ships"))
	}
}

// TestHubAnswers checks C22: a hub answers for the kinds of its Configs, by its rules and not by those that read the cluster, and keeps
// nothing of the kinds that others ask about.
func TestHubAnswers(t *testing.T) {
	f := newFixture(t, healthRule("ships", "return true"))
	hub, err := NewForHub(webhook.Options{Resources: webhook.FromMapper(meta.NewDefaultRESTMapper(nil))}, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f.Interpreter = hub
	ship, pod := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	if err := hub.Check(ship); err == nil || !strings.Contains(err.Error(), "not been read yet") || len(hub.user.TakeUnanswered()) > 0 {
		t.Errorf("before the Configs are read: %v", err)
	}
	f.reconcileOnce()
	if err := hub.Check(ship); err != nil {
		t.Error(err)
	}
	for _, kind := range []schema.GroupVersionKind{pod, {Group: "example.com", Version: "v2", Kind: "Ship"}, {Group: "other", Version: "v1", Kind: "Ship"}, {}} {
		if err := hub.Check(kind); err == nil || !strings.Contains(err.Error(), "no Config of this hub names it") {
			t.Errorf("%v: %v", kind, err)
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(1)}}}
	object.SetNamespace("a")
	if _, known, err := hub.All.Explore(t.Context(), explore.Request{Operation: explore.Retaining, Object: object, Observed: object}); known || err != nil {
		t.Errorf("a layer of a hub answers by what it reads: %t, %v", known, err)
	}
	instance := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "spec": map[string]any{}}}
	if _, known, err := hub.All.Explore(t.Context(), explore.Request{Operation: explore.Replica, Object: instance}); !known || err != nil {
		t.Errorf("the rules for Instances are those of a hub: %t, %v", known, err)
	}
}

// TestKindsFollow checks C22: the kinds that a hub answers for are those of the Configs that are there, whether or not their rules can be
// used. The answer of a rule that cannot be used is unknown, and the hub tells Karmada so.
func TestKindsFollow(t *testing.T) {
	f := newFixture(t)
	ship := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	rule := healthRule("ships", "return (")
	for _, step := range []struct {
		reason  string
		do      func(context.Context) error
		named   bool
		answers string
	}{
		{"there is no Config", func(context.Context) error { return nil }, false, "not known"},
		{"a Config whose script does not compile", func(ctx context.Context) error { return f.Create(ctx, rule) }, true, "error"},
		{"a second Config for the same question", func(ctx context.Context) error { return f.Create(ctx, healthRule("boats", "return true")) }, true, "error"},
		{"the first is deleted", func(ctx context.Context) error { return f.Delete(ctx, rule) }, true, "healthy"},
		{"the second, too", func(ctx context.Context) error { return f.Delete(ctx, healthRule("boats", "")) }, false, "not known"},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		f.reconcileOnce()
		if err := f.Interpreter.Check(ship); (err == nil) != step.named {
			t.Errorf("%s: %v", step.reason, err)
		}
		if got := f.healthy(); got != step.answers {
			t.Errorf("%s: %s, want %s", step.reason, got, step.answers)
		}
	}
}

// TestTakeover checks C22: what a manager enqueues when it becomes the leader has it write the statuses, and affects no objects.
func TestTakeover(t *testing.T) {
	f := newFixture(t, healthRule("ships", "return true"))
	elected := make(chan struct{})
	f.Elected = elected
	f.reconcileOnce()
	close(elected)
	f.Interpreter.enqueue(webhook.Change{})
	if len(f.Interpreter.changed) != 1 {
		t.Fatal("no reconcile is enqueued")
	}
	f.changes = 0
	if f.reconcileOnce(); f.changes != 0 || !slices.Equal(f.writes, []string{"ships"}) {
		t.Errorf("%d changes, writes %v: want the status only", f.changes, f.writes)
	}
}
