package exploreconfig

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// TestState: Instances are reconciled again only if answers may differ from those before.
func TestState(t *testing.T) {
	host := lua.New(clock.RealClock{}.Now, lua.DefaultLimits())
	rules := func(health string) *config.Layer {
		c := configv1alpha1.Config{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.Spec.Explorations = []configv1alpha1.Exploration{{APIVersion: "example.com/v1", Kind: "Ship", HealthLua: "return " + health}}
		return config.New(host, []configv1alpha1.Config{c}, nil)
	}
	hooks := webhook.New(webhook.Options{})
	change := hooks.Set([]configv1alpha1.ResourceExploringWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Webhooks: []configv1alpha1.ResourceExploringWebhook{{Name: "a.example.com"}}}})
	if change.Empty() {
		t.Fatal("a new webhook is no change")
	}
	for _, tc := range []struct {
		reason string
		p      publication
		want   state
	}{
		{"the first rules", publication{rules: rules("true")}, loaded},
		{"the first rules and webhooks: nothing depends on former answers", publication{rules: rules("true"), webhooks: []webhook.Change{change}}, loaded},
		{"the first rules, after a question that had no answer", publication{rules: rules("true"), unanswered: []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}}}, changed},
		{"the same rules", publication{rules: rules("true"), former: rules("true")}, unchanged},
		{"other rules", publication{rules: rules("true"), former: rules("false")}, changed},
		{"the same rules, and other webhooks", publication{rules: rules("true"), former: rules("true"), webhooks: []webhook.Change{change}}, changed},
	} {
		if got := tc.p.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestFirstRulesAffect checks that the first rules affect exactly the kinds that Instances asked about before the rules were loaded.
func TestFirstRulesAffect(t *testing.T) {
	host := lua.New(clock.RealClock{}.Now, lua.DefaultLimits())
	asked, other := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	c := configv1alpha1.Config{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	c.Spec.Explorations = []configv1alpha1.Exploration{{APIVersion: "example.com/v1", Kind: "Ship", HealthLua: "return true"}}
	i := &Interpreter{user: &config.SwappableLayer{}, host: host, webhook: webhook.New(webhook.Options{})}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(asked)
	if _, _, err := i.user.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object}); err == nil {
		t.Fatal("there is an answer before there are rules")
	}
	r := &Reconciler{Interpreter: i}
	first := r.publish(&observation{configs: []configv1alpha1.Config{c}})
	if affects := first.affects(); first.state() != changed || !affects(t.Context(), asked) || affects(t.Context(), other) {
		t.Errorf("state %s, %s is affected: %v, %s is: %v", first.state(), asked, affects(t.Context(), asked), other, affects(t.Context(), other))
	}
	if again := r.publish(&observation{configs: []configv1alpha1.Config{c}}); again.state() != unchanged {
		t.Errorf("the same rules again: %s", again.state())
	}
}

// TestAct: Instances are reconciled again only when answers have changed, and an unknown state is an error.
func TestAct(t *testing.T) {
	for s, want := range map[state]int{loaded: 0, unchanged: 0, changed: 1} {
		calls := 0
		r := &Reconciler{Changed: func(context.Context, Affects) { calls++ }}
		if err := r.act(t.Context(), s, nil); err != nil || calls != want {
			t.Errorf("state %q: %d calls (%v), want %d", s, calls, err, want)
		}
	}
	if err := (&Reconciler{}).act(t.Context(), "odd", nil); err == nil {
		t.Error("an unknown state is no error")
	}
}
