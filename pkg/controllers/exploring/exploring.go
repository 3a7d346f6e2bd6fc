// Package exploring keeps the explore layers in step with their configuration in the cluster: Configs and
// ResourceExploringWebhookConfigurations. What an answer may have changed for is looked at again.
package exploring

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/pkg/explore/native"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// Teachers are the layers of a manager.
type Teachers struct {
	// All asks every layer, Taught all but the native one: what kudo's own rules say of health is finer than an answer.
	All, Taught explore.Explorer

	user    *config.Current
	host    *lua.Host
	webhook *webhook.Layer
	// changed has an event if a webhook has begun or ceased to answer in time.
	changed chan event.GenericEvent
}

// look has the states of webhooks looked at. All are looked at then: an event that waits stands for others.
func (t *Teachers) look(string) {
	select {
	case t.changed <- event.GenericEvent{Object: &configv1alpha1.ResourceExploringWebhookConfiguration{}}:
	default:
	}
}

// New makes the layers. services finds the services of webhooks where the cluster's DNS cannot be asked; it may be nil.
func New(mapper meta.RESTMapper, services webhook.Services, autoscalers native.Autoscalers, registry prometheus.Registerer) (*Teachers, error) {
	host := lua.New(clock.RealClock{}.Now, lua.DefaultLimits())
	bundled, err := library.New(host)
	if err != nil {
		return nil, fmt.Errorf("bundled explore rules: %w", err)
	}
	t := &Teachers{user: &config.Current{}, host: host, changed: make(chan event.GenericEvent, 1)}
	t.webhook = webhook.New(webhook.Options{Resources: webhook.FromMapper(mapper), Services: services, Changed: t.look})
	measured, err := measure(registry)
	if err != nil {
		return nil, err
	}
	t.All = measured(explore.NewChain(t.user, t.webhook, bundled, native.New(nil, autoscalers)))
	t.Taught = measured(explore.NewChain(t.user, t.webhook, bundled, nil))
	return t, nil
}

// measure returns a decorator that counts answers by operation and layer, and their time.
func measure(registry prometheus.Registerer) (func(explore.Chain) explore.Explorer, error) {
	count := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kudo_explore_answers_total", Help: "Answers of explore layers, by operation, layer and result (answer, none, unknown)."}, []string{"operation", "layer", "result"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kudo_explore_seconds", Help: "Time of explore answers, by operation.", Buckets: prometheus.ExponentialBuckets(1e-5, 10, 7)}, []string{"operation"})
	for _, c := range []prometheus.Collector{count, took} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return func(chain explore.Chain) explore.Explorer { return &measuredChain{chain, count, took} }, nil
}

type measuredChain struct {
	explore.Chain
	count *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// Layer implements explore.Explorer.
func (m *measuredChain) Layer() explore.Layer { return "" }

// Explore implements explore.Explorer.
func (m *measuredChain) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	began := time.Now()
	answer, known, err := m.Chain.Explore(ctx, r)
	layer, result := string(answer.Layer), "answer"
	if unknown, is := explore.IsUnknown(err); is {
		layer, result = string(unknown.Layer), "unknown"
	} else if !known {
		layer, result = "", "none"
	}
	m.count.WithLabelValues(string(r.Operation), layer, result).Inc()
	m.took.WithLabelValues(string(r.Operation)).Observe(time.Since(began).Seconds())
	return answer, known, err
}

// Reconciler hands configuration to the layers. All of it is read at once, whatever of it has changed.
type Reconciler struct {
	Client   client.Client
	Teachers *Teachers
	// Changed is called when answers may be others than before.
	Changed func(ctx context.Context)
}

// everything is the one request of this controller.
var everything = []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return everything })
	return ctrl.NewControllerManagedBy(mgr).Named("exploring").
		Watches(&configv1alpha1.Config{}, all).
		Watches(&configv1alpha1.ResourceExploringWebhookConfiguration{}, all).
		WatchesRawSource(source.Channel(r.Teachers.changed, all)).
		Complete(r)
}

// Load hands the configuration of the cluster to the layers: until then, they cannot tell anything.
func (r *Reconciler) Load(ctx context.Context) error {
	_, err := r.Reconcile(ctx, ctrl.Request{})
	return err
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	configs, hooks := &configv1alpha1.ConfigList{}, &configv1alpha1.ResourceExploringWebhookConfigurationList{}
	if err := r.Client.List(ctx, configs); err != nil {
		return ctrl.Result{}, fmt.Errorf("list Configs: %w", err)
	}
	if err := r.Client.List(ctx, hooks); err != nil {
		return ctrl.Result{}, fmt.Errorf("list ResourceExploringWebhookConfigurations: %w", err)
	}
	t := r.Teachers
	next := config.New(t.host, configs.Items, t.user.Get())
	former := t.user.Set(next)
	change := t.webhook.Set(hooks.Items)
	if former != nil && (len(next.Changed(former)) > 0 || !change.Empty()) {
		r.Changed(ctx)
	}
	var errs []error
	for i := range configs.Items {
		errs = append(errs, client.IgnoreNotFound(r.judge(ctx, &configs.Items[i], configs.Items)))
	}
	for i := range hooks.Items {
		recovered, err := r.state(ctx, &hooks.Items[i])
		errs = append(errs, client.IgnoreNotFound(err))
		if recovered {
			r.Changed(ctx)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}
