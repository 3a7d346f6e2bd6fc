// Package exploreconfig keeps the explore layers in step with their configuration in the cluster: Configs and
// ResourceExploringWebhookConfigurations. Instances are reconciled again when an answer may have changed.
package exploreconfig

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/event"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/interpreter"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// Interpreter is the chain of layers of a manager.
type Interpreter struct {
	// All asks every layer, External all but the native one: kudo's own rules of health are finer than an answer.
	All, External explore.Explorer

	user    *config.SwappableLayer
	host    *lua.Host
	webhook *webhook.Layer
	// changed has an event if a webhook has started or stopped answering in time.
	changed chan event.GenericEvent

	mu sync.Mutex
	// pending are the changes that no reconcile has taken, by the webhooks that changed.
	pending map[string]webhook.Change
}

// takePending returns the changes of webhooks since the last call.
func (t *Interpreter) takePending() []webhook.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.Collect(maps.Values(t.pending))
	clear(t.pending)
	return out
}

// enqueue enqueues a reconcile of all configuration for a change of webhooks: an event that waits stands for others.
func (t *Interpreter) enqueue(change webhook.Change) {
	t.mu.Lock()
	t.pending[change.String()] = change
	t.mu.Unlock()
	select {
	case t.changed <- event.GenericEvent{Object: &configv1alpha1.ResourceExploringWebhookConfiguration{}}:
	default:
	}
}

// New returns an interpreter that has no configuration yet. The options are those of its webhooks; New sets Changed.
func New(hooks webhook.Options, autoscalers native.Autoscalers, registry prometheus.Registerer) (*Interpreter, error) {
	return newInterpreter(hooks, interpreter.Layers{Native: native.New(nil, autoscalers)}, registry)
}

// NewForHub returns the interpreter of a hub, which answers for others: it has the rules for Instances, and no native layer. That layer
// reads objects of the cluster, and what is asked about may be an object that anyone has made up.
func NewForHub(hooks webhook.Options, registry prometheus.Registerer) (*Interpreter, error) {
	return newInterpreter(hooks, interpreter.Layers{Hub: true}, registry)
}

// newInterpreter returns an interpreter with some layers; it sets those of Configs and webhooks.
func newInterpreter(hooks webhook.Options, layers interpreter.Layers, registry prometheus.Registerer) (*Interpreter, error) {
	host := lua.New(clock.RealClock{}.Now, lua.DefaultLimits())
	t := &Interpreter{user: &config.SwappableLayer{}, host: host, changed: make(chan event.GenericEvent, 1),
		pending: map[string]webhook.Change{}}
	hooks.Changed = t.enqueue
	t.webhook = webhook.New(hooks)
	layers.User, layers.Webhook = t.user, t.webhook
	all, external, err := interpreter.New(host, layers)
	if err != nil {
		return nil, err
	}
	measured, err := interpreter.WithMetrics(registry)
	if err != nil {
		return nil, err
	}
	t.All, t.External = measured(all), measured(external)
	return t, nil
}

// Check returns nil if a Config has a rule for a kind, and else why the interpreter does not answer for it. It reads nothing, and keeps
// nothing of a kind that anyone may have made up.
func (t *Interpreter) Check(kind schema.GroupVersionKind) error {
	switch rules := t.user.Get(); {
	case rules == nil:
		return errors.New("the Configs have not been read yet")
	case !rules.Names(kind):
		return errors.New("no Config of this hub names it: write one, or remove the kind from the webhook's rules")
	}
	return nil
}

// ServiceChanged makes requests to the webhooks behind a Service use the present address of the Service.
func (t *Interpreter) ServiceChanged(service types.NamespacedName) { t.webhook.ServiceChanged(service) }
