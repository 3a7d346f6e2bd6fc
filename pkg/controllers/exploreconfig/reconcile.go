package exploreconfig

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// Reconciler keeps an interpreter in step with the configuration in the cluster. All of it is read at once, whatever of it has
// changed: an answer depends on all Configs together.
type Reconciler struct {
	Client      client.Client
	Interpreter *Interpreter
	// Changed is called when answers about objects of the affected kinds may differ from those before.
	Changed func(ctx context.Context, affects Affects)
	// Elected is closed when this manager is the leader, which alone writes statuses. If it is set, all managers keep their interpreters in
	// step: each of them answers by its own. Without it, only the leader reconciles.
	Elected <-chan struct{}

	backoff *loop.Backoff
	// loading is held from the reading to the publishing: Load and Reconcile run side by side at the start, and the configuration that was
	// read first must not take the place of that which was read later.
	loading sync.Mutex
}

// singleRequest is the one request of this controller.
var singleRequest = []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "all"}}}

// SetupWithManager starts the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.backoff = loop.NewBackoff()
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return singleRequest })
	c := ctrl.NewControllerManagedBy(mgr).Named("exploring")
	if r.Elected != nil {
		c = c.WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)})
		// A manager that becomes the leader writes the statuses that it has not written before.
		if err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
			r.Interpreter.enqueue(webhook.Change{})
			return nil
		})); err != nil {
			return err
		}
	}
	return c.
		Watches(&configv1alpha1.Config{}, all).
		Watches(&configv1alpha1.ResourceExploringWebhookConfiguration{}, all).
		WatchesRawSource(source.Channel(r.Interpreter.changed, all)).
		Complete(r)
}

// Load publishes the configuration in the cluster for the first time: until then, no layer of users answers. A cluster without
// any configuration causes no reconcile, so that the manager calls Load when it starts. It leaves the status to Reconcile.
func (r *Reconciler) Load(ctx context.Context) error {
	_, err := r.load(ctx)
	return err
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	o, err := r.load(ctx)
	if err == nil && r.writes() {
		err = r.updateStatus(ctx, o)
	}
	if err != nil {
		return r.backoff.OnError(ctx, req.NamespacedName, err)
	}
	return r.backoff.OnSuccess(req.NamespacedName, loop.Result{}), nil
}

// writes reports whether this manager writes statuses.
func (r *Reconciler) writes() bool {
	if r.Elected == nil {
		return true
	}
	select {
	case <-r.Elected:
		return true
	default:
		return false
	}
}

// load reads the configuration and publishes it.
func (r *Reconciler) load(ctx context.Context) (*observation, error) {
	o, published, err := r.observeAndPublish(ctx)
	if err != nil {
		return nil, err
	}
	return o, r.act(ctx, published.state(), published.affects())
}

func (r *Reconciler) observeAndPublish(ctx context.Context) (*observation, publication, error) {
	r.loading.Lock()
	defer r.loading.Unlock()
	o, err := r.observe(ctx)
	if err != nil {
		return nil, publication{}, err
	}
	return o, r.publish(o), nil
}

// act takes the one action of a state.
func (r *Reconciler) act(ctx context.Context, s state, affects Affects) error {
	switch s {
	case loaded, unchanged:
		return nil
	case changed:
		r.Changed(ctx, affects)
		return nil
	}
	return fmt.Errorf("unknown state %q of the interpreter", s)
}

// observation is the configuration in the cluster.
type observation struct {
	configs []configv1alpha1.Config
	hooks   []configv1alpha1.ResourceExploringWebhookConfiguration
}

// observe reads all configuration.
func (r *Reconciler) observe(ctx context.Context) (*observation, error) {
	configs, hooks := &configv1alpha1.ConfigList{}, &configv1alpha1.ResourceExploringWebhookConfigurationList{}
	if err := r.Client.List(ctx, configs); err != nil {
		return nil, fmt.Errorf("list Configs: %w", err)
	}
	if err := r.Client.List(ctx, hooks); err != nil {
		return nil, fmt.Errorf("list ResourceExploringWebhookConfigurations: %w", err)
	}
	return &observation{configs.Items, hooks.Items}, nil
}
