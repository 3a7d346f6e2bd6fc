package controllers

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/pkg/admission"
	"kudo.dev/kudo/pkg/clusters/karmada"
	"kudo.dev/kudo/pkg/controllers/placement"
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
	if !o.Hub {
		return nil
	}
	lease, err := karmadaLease(o)
	if err != nil {
		return err
	}
	maps.Copy(byObject, karmada.CachedObjects(lease))
	return nil
}

// addHub adds the controller of a hub to the manager, and returns the handlers of the webhooks by path. A hub has no keys, since it records
// no runs.
func addHub(ctx context.Context, mgr manager.Manager, config *rest.Config, o Options) (map[string]crwebhook.Handler, error) {
	c, err := newClients(mgr, config)
	if err != nil {
		return nil, err
	}
	lease, err := karmadaLease(o)
	if err != nil {
		return nil, err
	}
	engine := karmada.New(karmada.Options{Client: c.plain, Cache: mgr.GetCache(), Config: config, Clock: o.Clock, Lease: lease})
	if err := mgr.Add(engine); err != nil {
		return nil, err
	}
	reconciler := &placement.Reconciler{Client: c.consistent, Reader: c.plain, Engine: engine, Clock: o.Clock,
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
	return map[string]crwebhook.Handler{
		admission.MutatePath:                       &admission.Defaulter{Versions: versions, Hub: true},
		admission.ValidatePath:                     &admission.Validator{Versions: versions, Hub: true},
		admission.ValidateVersionPath:              &admission.VersionValidator{Judge: guard.Judge},
		admission.ValidateConfigPath:               &admission.ConfigValidator{Configs: mgr.GetAPIReader()},
		admission.ValidateWebhookConfigurationPath: &admission.WebhookConfigurationValidator{},
	}, nil
}
