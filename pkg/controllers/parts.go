package controllers

import (
	"context"
	"net"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/pkg/admission"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/exploreconfig"
	"kudo.dev/kudo/pkg/controllers/installation"
	"kudo.dev/kudo/pkg/controllers/instance"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/controllers/operatorversion"
	"kudo.dev/kudo/pkg/controllers/packagepolicy"
	"kudo.dev/kudo/pkg/crdcompat"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/explore/interpreter"
	"kudo.dev/kudo/pkg/explore/webhook"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/podexec"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/pkg/trust"
)

// clients are the connections of the controllers to the cluster.
type clients struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	set       kubernetes.Interface
	// consistent reads from a cache that shows what was written through it, plain reads live.
	consistent, plain client.Client
}

func newClients(mgr manager.Manager, config *rest.Config) (c clients, err error) {
	if c.dynamic, err = dynamic.NewForConfigAndClient(config, mgr.GetHTTPClient()); err != nil {
		return c, err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), mgr.GetHTTPClient()); err != nil {
		return c, err
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient()); err != nil {
		return c, err
	}
	c.consistent, err = client.New(config, client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: mgr.GetCache(), EnableReadYourWritesConsistency: ptr.To(true)},
	})
	if err != nil {
		return c, err
	}
	if c.plain, err = client.New(config, client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(),
		Mapper: mgr.GetRESTMapper()}); err != nil {
		return c, err
	}
	c.set, err = kubernetes.NewForConfigAndClient(config, mgr.GetHTTPClient())
	return c, err
}

// progressDelay is how long the status may lack that the objects of a step are not ready yet: that long, the controllers of Kubernetes take
// on a busy cluster until they have seen an object that needs nothing more.
const progressDelay = 500 * time.Millisecond

// parts are what the controllers share.
type parts struct {
	clients
	mgr     manager.Manager
	options Options
	// instances, versions and installations carry changes of objects to the controllers of these kinds.
	instances, versions, installations loop.Changes

	interpreter *exploreconfig.Interpreter
	// rulesChanged reports whether a step of an Instance that is in progress renders objects of a kind for which a condition holds, and if so
	// lets the run ask anew.
	rulesChanged func(key types.NamespacedName, condition func(schema.GroupVersionKind) bool) bool
	mirror       *apply.Mirror
	share        *share.Engine
	migrator     *storedversions.Migrator
	runner       *runner.Runner
	keys         *history.SecretKeys
	history      *history.Store
	contents     *runner.VersionCache
	runs         *metrics.Runs
	settings     *currentSettings
	guard        *trust.Guard
	events       func(component string) record.EventRecorder
}

// newParts returns the parts. The context ends their watches.
func newParts(ctx context.Context, mgr manager.Manager, config *rest.Config, o Options) (*parts, error) {
	p := &parts{mgr: mgr, options: o, instances: loop.NewChanges(), versions: loop.NewChanges(), installations: loop.NewChanges()}
	var err error
	if p.clients, err = newClients(mgr, config); err != nil {
		return nil, err
	}
	exec := o.Executor
	if exec == nil {
		if exec, err = podexec.New(config); err != nil {
			return nil, err
		}
	}
	kinds := apply.NewKinds(mgr.GetRESTMapper(), p.discovery, p.dynamic)
	if p.interpreter, err = newInterpreter(ctx, mgr, p.set, o.Explore); err != nil {
		return nil, err
	}
	p.mirror = apply.NewMirror(ctx, p.dynamic, mgr.GetRESTMapper(), mgr.GetLogger(), p.send)
	retain := runner.NewRetainer(p.interpreter.All)
	objects := apply.New(p.dynamic, p.metadata, kinds, p.mirror, retain)
	accounts := apply.NewAccounts(config, p.metadata, kinds, p.mirror, retain)
	accounts.UseNames(apply.NewNames(ctx, p.metadata, mgr.GetLogger()))
	installs, err := accounts.Engine(installer(o.Namespace))
	if err != nil {
		return nil, err
	}
	p.share = share.New(share.Options{
		Objects: installs, Kinds: kinds, Mirror: p.mirror, Reader: p.plain, Retain: retain,
		Safety: crdcompat.NewComparer(p.dynamic, mgr.GetRESTMapper()), Clock: o.Clock,
	})
	if p.migrator, err = newMigrator(config, mgr.GetRESTMapper(), o); err != nil {
		return nil, err
	}
	if p.keys, err = historyKeys(ctx, mgr, config, o.Namespace, func() { p.enqueueAll(ctx) }); err != nil {
		return nil, err
	}
	p.settings = &currentSettings{reader: mgr.GetClient(), key: types.NamespacedName{Namespace: o.Namespace, Name: settings.ConfigMap},
		parsed: settings.Default()}
	if p.guard, err = p.newGuard(); err != nil {
		return nil, err
	}
	p.share.Keys = func() *keyring.Ring {
		ring, _ := p.keys.Ring(ctx) // without keys, each Secret is compared anew
		return ring
	}
	if p.runs, err = metrics.NewRuns(crmetrics.Registry); err != nil {
		return nil, err
	}
	p.history, p.contents, p.events = history.New(p.plain, p.plain, p.keys), runner.NewVersions(), recorders(ctx, p.set, mgr.GetScheme())
	p.runner = runner.New(runner.Options{
		Engine: objects, Kinds: kinds, Mirror: p.mirror, Share: p.share, Accounts: accounts,
		All: p.interpreter.All, External: p.interpreter.External, Executor: exec, PipeImage: o.PipeImage, Metrics: p.runs,
		Quotas: runner.NewQuotaReader(accounts, quotaLookup(mgr.GetCache())),
	})
	p.runner.RefusePipes(o.PipeRefusal)
	return p, p.addStateCollector(ctx, crmetrics.Registry)
}

// newGuard returns the Guard that applies the PackagePolicies of the cluster.
func (p *parts) newGuard() (*trust.Guard, error) {
	counts, err := metrics.NewVerifications(crmetrics.Registry)
	return &trust.Guard{Cache: p.mgr.GetClient(), Live: p.plain, Clock: p.options.Clock, Metrics: counts,
		Required: func(ctx context.Context) bool { return p.settings.get(ctx).RequirePackagePolicy }}, err
}

// newMigrator returns what migrates stored versions, with the rights of install plans.
func newMigrator(config *rest.Config, mapper meta.RESTMapper, o Options) (*storedversions.Migrator, error) {
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: installer(o.Namespace).Username()}
	return storedversions.New(storedversions.Options{Config: as, Mapper: mapper, Clock: o.Clock, Rate: o.MigrationRate})
}

// newInterpreter returns the chain of explore layers, whose webhooks are called as the access says. The context ends the watches of their
// Services.
func newInterpreter(ctx context.Context, mgr manager.Manager, set kubernetes.Interface,
	access webhook.Access) (*exploreconfig.Interpreter, error) {
	hooks, named, err := hookOptions(ctx, mgr, set, access)
	if err != nil {
		return nil, err
	}
	chain, err := exploreconfig.New(hooks, interpreter.Autoscalers{Reader: mgr.GetAPIReader()}, crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	named.changed = chain.ServiceChanged
	return chain, nil
}

// hookOptions returns how explore webhooks are called, and what watches their Services until the context ends. Set what is called when one
// of them changes.
func hookOptions(ctx context.Context, mgr manager.Manager, set kubernetes.Interface,
	access webhook.Access) (webhook.Options, *services, error) {
	named := &services{ctx: ctx, set: set, watches: map[types.NamespacedName]*serviceWatch{}}
	hooks := webhook.Options{Resources: webhook.FromMapper(mgr.GetRESTMapper()), Named: named.keep,
		Services: &webhook.ClusterServices{Get: named.Get, Names: net.DefaultResolver}}
	return hooks, named, access.Apply(&hooks)
}

// measureRequests counts the requests of the clients of a config.
func measureRequests(config *rest.Config, namespace string) error {
	account := installer(namespace)
	requests, err := metrics.NewRequests(crmetrics.Registry, "system:serviceaccount:"+account.Namespace+":"+account.Name)
	if err != nil {
		return err
	}
	config.Wrap(requests.Wrap)
	return nil
}

// tarballs returns what fetches CRD tarballs, under the policy of the settings.
func (p *parts) tarballs(ctx context.Context) (*fetch.Fetcher, error) {
	o := p.options.Tarballs
	o.Policy = p.settings.tarballPolicy
	o.Clock, o.Cache.Clock, o.Access.Clock = p.options.Clock, p.options.Clock, p.options.Clock
	o.Access.Secrets, o.Access.ConfigMaps = fetch.Cluster{Reader: p.plain}, fetch.Cluster{Reader: p.plain}
	var err error
	if o.Cache.Metrics, err = crdtarball.NewMetrics(crmetrics.Registry); err != nil {
		return nil, err
	}
	return fetch.New(ctx, o, p.enqueue), nil
}

// addInstanceController adds the controller of Instances, and what measures and reports their privileges.
func (p *parts) addInstanceController(ctx context.Context) error {
	tarballs, err := p.tarballs(ctx)
	if err != nil {
		return err
	}
	sources := paramsource.New(ctx, p.metadata, p.plain, p.options.Clock, func(of paramsource.Reference) {
		for _, key := range instance.InstancesUsing(ctx, p.mgr.GetClient(), of) {
			p.enqueue(key)
		}
	})
	privileges := &privilege{reader: p.mgr.GetClient(), settings: p.settings, events: p.events("kudo"), namespace: p.options.Namespace}
	if err := metrics.Register(crmetrics.Registry, privileges); err != nil {
		return err
	}
	if err := p.mgr.Add(privileges); err != nil {
		return err
	}
	reconciler := &instance.Reconciler{
		Client: p.consistent, Reader: p.plain, Sources: sources, History: p.history, Keys: p.keys, Mirror: p.mirror, Share: p.share,
		Tarballs: tarballs, Runner: p.runner, Versions: p.contents, Events: p.events(instanceComponent), Clock: p.options.Clock,
		Metrics: p.runs, Settings: p.settings.get, Judge: p.guard.Judge, Installer: installer(p.options.Namespace), Enqueue: p.enqueue,
		ScheduledRuns: p.options.ScheduledRuns, ProgressDelay: progressDelay,
	}
	p.rulesChanged = reconciler.RulesChanged
	return reconciler.SetupWithManager(p.mgr, p.instances, p.options.Workers)
}

// addOperatorVersionController adds the controller of OperatorVersions.
func (p *parts) addOperatorVersionController(context.Context) error {
	reconciler := &operatorversion.Reconciler{
		Client: p.consistent, Reader: p.plain, History: p.history, Keys: p.keys, Runner: p.runner, Share: p.share, Versions: p.contents,
		Events: p.events("kudo"), Clock: p.options.Clock, Metrics: p.runs, Judge: p.guard.Judge,
		Installer: installer(p.options.Namespace),
	}
	return reconciler.SetupWithManager(p.mgr, p.versions, p.options.Workers)
}

// addExploreController adds the controller of Configs and of configurations of webhooks.
func (p *parts) addExploreController(context.Context) error {
	reconciler := &exploreconfig.Reconciler{Client: p.mgr.GetClient(), Interpreter: p.interpreter, Changed: p.enqueueAffected}
	if err := reconciler.SetupWithManager(p.mgr); err != nil {
		return err
	}
	return p.mgr.Add(manager.RunnableFunc(reconciler.Load))
}

// addPolicyController adds the controller of PackagePolicies.
func (p *parts) addPolicyController(context.Context) error {
	return (&packagepolicy.Reconciler{Client: p.mgr.GetClient(), Reader: p.plain}).SetupWithManager(p.mgr)
}

// addInstallationController adds the controller of Installations.
func (p *parts) addInstallationController(context.Context) error {
	reconciler := &installation.Reconciler{Client: p.consistent, Reader: p.plain, Share: p.share, Events: p.events("kudo"),
		Migrator: p.migrator, Clock: p.options.Clock}
	return reconciler.SetupWithManager(p.mgr, p.installations, p.options.Workers)
}

// handlers returns the handlers of the webhooks by path.
func (p *parts) handlers() map[string]http.Handler {
	versions := admission.Versions{Cache: p.mgr.GetCache(), Live: p.mgr.GetAPIReader()}
	return admissionHandlers(map[string]crwebhook.Handler{
		admission.MutatePath:                       &admission.Defaulter{Versions: versions, Keys: p.keys},
		admission.ValidatePath:                     &admission.Validator{Versions: versions, Keys: p.keys},
		admission.ValidateVersionPath:              &admission.VersionValidator{Judge: p.guard.Judge},
		admission.ValidateConfigPath:               &admission.ConfigValidator{Configs: p.mgr.GetAPIReader()},
		admission.ValidateWebhookConfigurationPath: &admission.WebhookConfigurationValidator{},
	})
}
