package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/admission"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/pkg/clusters/karmada"
	"kudo.dev/kudo/pkg/controllers/exploreconfig"
	"kudo.dev/kudo/pkg/controllers/placement"
	karmadaserver "kudo.dev/kudo/pkg/explore/server/karmada"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
)

// karmadaLease returns the Lease that the controllers of Karmada renew.
func karmadaLease(o Options) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(o.KarmadaLease, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--karmada-lease is %q: must be NAMESPACE/NAME", o.KarmadaLease)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// cacheForHub adds to the options of a hub's cache how it keeps the kinds of the engine.
func cacheForHub(byObject map[client.Object]cache.ByObject, o Options) error {
	if !o.Hub || o.ClustersEngine != KarmadaEngine {
		return nil
	}
	lease, err := karmadaLease(o)
	if err != nil {
		return err
	}
	maps.Copy(byObject, karmada.CachedObjects(lease))
	return nil
}

// What carries the Instances of a hub to clusters.
const (
	// KarmadaEngine is Karmada, in whose API server the manager works.
	KarmadaEngine = "karmada"
	// InventoryEngine writes to the clusters of ClusterProfiles itself.
	InventoryEngine = "inventory"
)

// setupError says why the manager cannot be set up. A hub that works with Karmada needs the kinds of Karmada.
func setupError(err error, o Options) error {
	if o.Hub && o.ClustersEngine == KarmadaEngine && meta.IsNoMatchError(err) {
		return fmt.Errorf("the API server does not serve the kinds of Karmada: use that of Karmada, or --clusters-engine=%s: %w",
			InventoryEngine, err)
	}
	return fmt.Errorf("set up the manager: %w", err)
}

// engine is an engine that runs with the manager.
type engine interface {
	clusters.Engine
	manager.Runnable
}

// newEngine returns the engine that the options name.
func newEngine(mgr manager.Manager, c clients, config *rest.Config, o Options) (engine, error) {
	switch o.ClustersEngine {
	case KarmadaEngine:
		lease, err := karmadaLease(o)
		if err != nil {
			return nil, err
		}
		return karmada.New(karmada.Options{Client: c.plain, Cache: mgr.GetCache(), Config: config, Clock: o.Clock, Lease: lease}), nil
	case InventoryEngine:
		providers, err := readProviders(o.ProviderFile)
		if err != nil {
			return nil, err
		}
		return inventory.New(inventory.Options{Hub: mgr.GetClient(), Live: c.plain, Decisions: c.dynamic, Namespace: o.Namespace,
			Providers: providers, Wrap: o.fence.wrap, ClusterNamespace: cmp.Or(o.ClusterNamespace, o.Namespace)})
	}
	return nil, fmt.Errorf("--clusters-engine is %q: must be %s or %s", o.ClustersEngine, KarmadaEngine, InventoryEngine)
}

// readProviders reads the file of programs that give credentials; none without a file.
func readProviders(path string) (inventory.Providers, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--clusterprofile-provider-file: %w", err)
	}
	providers, err := inventory.ParseProviders(data)
	if err != nil {
		return nil, fmt.Errorf("--clusterprofile-provider-file %s: %w", path, err)
	}
	return providers, nil
}

// addHub adds the controllers of a hub to the manager, and returns the handlers of the webhooks by path. A hub has no keys, since it
// records no runs.
func addHub(ctx context.Context, mgr manager.Manager, config *rest.Config, o Options) (map[string]http.Handler, error) {
	c, err := newClients(mgr, config)
	if err != nil {
		return nil, err
	}
	engine, err := newEngine(mgr, c, config, o)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(engine); err != nil {
		return nil, err
	}
	reconciler := &placement.Reconciler{Client: c.consistent, Reader: c.plain, Engine: engine, Clock: o.Clock,
		Finalizer: o.ClustersEngine == InventoryEngine, Forget: forgetter(engine), Decide: decider(engine),
		Events: recorders(ctx, c.set, mgr.GetScheme())("placement-controller")}
	if err := reconciler.SetupWithManager(mgr, o.Workers); err != nil {
		return nil, err
	}
	counts, err := metrics.NewVerifications(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	guard := &trust.Guard{Cache: mgr.GetClient(), Live: c.plain, Clock: o.Clock, Metrics: counts,
		Required: func(context.Context) bool { return false }} // each cluster requires what it requires
	versions := admission.Versions{Cache: mgr.GetCache(), Live: mgr.GetAPIReader()}
	handlers := admissionHandlers(map[string]crwebhook.Handler{
		admission.MutatePath:                       &admission.Defaulter{Versions: versions, Hub: true},
		admission.ValidatePath:                     &admission.Validator{Versions: versions, Hub: true, Decisions: reconciler.Decide != nil},
		admission.ValidateVersionPath:              &admission.VersionValidator{Judge: guard.Judge},
		admission.ValidateConfigPath:               &admission.ConfigValidator{Configs: mgr.GetAPIReader()},
		admission.ValidateWebhookConfigurationPath: &admission.WebhookConfigurationValidator{},
	})
	if o.ClustersEngine == KarmadaEngine {
		if handlers[karmadaserver.Path], err = addAnswers(ctx, mgr, c, o); err != nil {
			return nil, err
		}
	}
	return handlers, nil
}

// addAnswers adds the controller of explore rules, and returns the handler of Karmada's webhook protocol, which answers by them. Each
// manager has it, and not only the leader: a Service spreads the requests.
func addAnswers(ctx context.Context, mgr manager.Manager, c clients, o Options) (http.Handler, error) {
	hooks, named, err := hookOptions(ctx, mgr, c.set, o.Explore)
	if err != nil {
		return nil, err
	}
	rules, err := exploreconfig.NewForHub(hooks, crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	named.changed = rules.ServiceChanged
	reconciler := &exploreconfig.Reconciler{Client: mgr.GetClient(), Interpreter: rules, Elected: mgr.Elected(),
		Changed: func(context.Context, exploreconfig.Affects) {}} // Karmada has no way to be told
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	if err := mgr.Add(allReplicas{manager.RunnableFunc(reconciler.Load)}); err != nil {
		return nil, err
	}
	return karmadaserver.NewHandler(rules.All, rules.Check, 0), nil
}

// decider returns the method of an engine that reads decisions, or nil if the engine has none.
func decider(e engine) func(context.Context, *v1beta1.Instance) (*v1beta1.DecisionStatus, error) {
	if d, can := e.(interface {
		Decide(ctx context.Context, instance *v1beta1.Instance) (*v1beta1.DecisionStatus, error)
	}); can {
		return d.Decide
	}
	return nil
}

// forgetter returns the method of an engine that gives up copies, or nil if the engine has none.
func forgetter(e engine) func(types.NamespacedName, string) error {
	if f, can := e.(interface {
		Forget(instance types.NamespacedName, cluster string) error
	}); can {
		return f.Forget
	}
	return nil
}
