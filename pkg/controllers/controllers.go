// Package controllers is the composition root of the manager: it puts the engine, the controllers and the webhooks
// together.
package controllers

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	explorewebhook "kudo.dev/kudo/pkg/explore/webhook"
	"kudo.dev/kudo/pkg/runner"
)

// Options of the manager.
type Options struct {
	// Namespace of the manager: its lease and its webhook certificate are there.
	Namespace string
	// MetricsAddress and HealthAddress to listen on; "0" turns metrics off.
	MetricsAddress, HealthAddress string
	// ProfileAddress is where net/http/pprof serves profiles to any client; empty for none.
	ProfileAddress string
	// PlainMetrics serves the metrics by http and to any client, instead of by https and only to clients that the API server allows to get the
	// path /metrics.
	PlainMetrics bool
	// MetricsCertDir holds tls.crt and tls.key of the metrics; empty for a certificate that is made at each start and
	// that no client can verify.
	MetricsCertDir string
	// WebhookPort to listen on; 0 turns the webhooks off.
	WebhookPort int
	// WebhookAddress is the IP address that the webhooks listen on; empty for all addresses of the machine.
	WebhookAddress string
	// WebhookCertDir is where the serving certificate is written to.
	WebhookCertDir string
	// CertRotation makes and renews the webhooks' certificate; without it another program, such as cert-manager, does.
	CertRotation bool
	// LeaderElection lets several managers run, of which one works.
	LeaderElection bool
	// Workers is how many Instances are worked on at a time.
	Workers int
	// MigrationRate is how many objects are rewritten in a second when a storage version has changed; 0 for no bound.
	MigrationRate int
	// ScheduledRuns is how many runs of schedules may be running at once.
	ScheduledRuns int
	// PipeImage is the image of the container that the files of Pipe tasks are read from: that of the manager.
	PipeImage string
	// PipeRefusal is why Pipe tasks are refused, or nil if they are not.
	PipeRefusal error
	// Tarballs says where CRD tarballs are kept and may come from.
	Tarballs fetch.Options
	// Explore says how explore webhooks are called.
	Explore explorewebhook.Access
	// Executor reads the files of Pipe tasks; nil reads them through the apiserver.
	Executor runner.Executor
	// Hub places the Instances of a hub on clusters; no plans run.
	Hub bool
	// ClustersEngine carries Instances to clusters: KarmadaEngine or InventoryEngine.
	ClustersEngine string
	// ClusterNamespace has the ClusterProfiles that placements name without a namespace; Namespace if empty.
	ClusterNamespace string
	// ProviderFile lists programs that give credentials of ClusterProfiles; empty for none.
	ProviderFile string
	// KarmadaLease is `<namespace>/<name>` of the Lease that the controllers of Karmada renew.
	KarmadaLease string
	// Clock tells the time of runs, back-offs and the cache of tarballs; nil is the real one. Leader election and
	// certificates go by the real one.
	Clock clock.WithDelayedExecution

	// fence refuses writes after the end of the lease.
	fence *fence
}

// NewManager returns a manager that serves kudo.dev on the cluster of the config. The context ends its watches.
func NewManager(ctx context.Context, config *rest.Config, o Options) (manager.Manager, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the apiserver's priority and fairness decides, not the client
	config.UserAgent = "kudo-manager"
	apply.EscapeApplyBodies(config)
	if err := measureRequests(config, o.Namespace); err != nil {
		return nil, err
	}
	o.fence = &fence{clock: clock.RealClock{}, namespace: o.Namespace}
	config.Wrap(o.fence.wrap)
	config.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	options := ctrl.Options{
		Scheme:                        scheme,
		Metrics:                       metricsOptions(o),
		HealthProbeBindAddress:        o.HealthAddress,
		PprofBindAddress:              o.ProfileAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              leaseName,
		LeaseDuration:                 ptr.To(leaseDuration),
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(time.Minute),
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&corev1.Secret{}: onlySecret(o.Namespace), &corev1.ConfigMap{}: onlySettings(o.Namespace),
			},
		},
	}
	if err := cacheForHub(options.Cache.ByObject, o); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, setupError(err, o)
	}
	add := addControllers
	if o.Hub {
		add = addHub
	}
	handlers, err := add(ctx, mgr, config, o)
	if err != nil {
		return nil, err
	}
	return mgr, addServers(ctx, mgr, o, handlers)
}

// addServers adds the checks of health and, if it has a port, the server of the webhooks.
func addServers(ctx context.Context, mgr manager.Manager, o Options, handlers map[string]http.Handler) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if o.WebhookPort == 0 {
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	return addWebhooks(ctx, mgr, o, handlers)
}

// metricsOptions serves the metrics by TLS, to who shows a token that the API server takes and that may get /metrics. They
// name namespaces and Instances, and their errors.
func metricsOptions(o Options) metricsserver.Options {
	out := metricsserver.Options{BindAddress: o.MetricsAddress}
	if !o.PlainMetrics {
		out.SecureServing, out.CertDir, out.FilterProvider = true, o.MetricsCertDir, filters.WithAuthenticationAndAuthorization
	}
	return out
}

// prewatchedKinds are watched from the start, so that the first plan need not wait for a first list.
var prewatchedKinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "PersistentVolumeClaim"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
}

// addControllers adds the controllers to the manager, and returns the handlers of the webhooks by path.
func addControllers(ctx context.Context, mgr manager.Manager, config *rest.Config, o Options) (map[string]http.Handler, error) {
	p, err := newParts(ctx, mgr, config, o)
	if err != nil {
		return nil, err
	}
	warm := manager.RunnableFunc(func(ctx context.Context) error {
		p.mirror.Watch(ctx, prewatchedKinds...)
		return nil
	})
	if err := mgr.Add(warm); err != nil {
		return nil, err
	}
	for _, add := range []func(context.Context) error{
		p.addInstanceController, p.addOperatorVersionController, p.addExploreController, p.addInstallationController,
		p.addPolicyController,
	} {
		if err := add(ctx); err != nil {
			return nil, err
		}
	}
	return p.handlers(), nil
}

// instanceComponent is the source of events of Instances. KUDO calls it so, and asserts of tests may name it.
const instanceComponent = "instance-controller"

// recorders returns a function that makes a recorder of events for a component. Events with the same reason are merged only if there are
// many, since several of them may occur at a time, and each message matters.
func recorders(ctx context.Context, set kubernetes.Interface, scheme *runtime.Scheme) func(component string) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx),
		record.WithCorrelatorOptions(record.CorrelatorOptions{BurstSize: 100, MaxEvents: 50, QPS: 1}))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: set.CoreV1().Events("")})
	return func(component string) record.EventRecorder {
		return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: component})
	}
}

// WebhookSecret holds the webhooks' serving certificate.
const WebhookSecret = "kudo-webhook-server-secret"

// addWebhooks serves the webhooks once their certificate is there. The certificate is made and rotated by
// cert-controller; its files are written from the Secret, so that this works outside of a cluster too.
func addWebhooks(ctx context.Context, mgr manager.Manager, o Options, handlers map[string]http.Handler) error {
	secret := types.NamespacedName{Namespace: o.Namespace, Name: WebhookSecret}
	service := fmt.Sprintf("kudo-controller-manager-service.%s.svc", o.Namespace)
	ready := make(chan struct{})
	files := &certFiles{cache: mgr.GetCache(), dir: o.WebhookCertDir}
	if !o.CertRotation {
		files.written = ready
		return serveWebhooks(mgr, o, handlers, files, ready)
	}
	name, err := certificateName(ctx, mgr.GetAPIReader(), service)
	if err != nil {
		return err
	}
	err = rotator.AddRotator(rotatorManager{mgr}, &rotator.CertRotator{
		SecretKey: secret, CertDir: o.WebhookCertDir, CAName: "kudo-ca", CAOrganization: "kudo",
		DNSName: name, ExtraDNSNames: []string{"localhost", service, service + ".cluster.local"}, IsReady: ready,
		Webhooks: []rotator.WebhookInfo{
			{Name: "kudo-manager-instance-admission-webhook-config", Type: rotator.Mutating},
			{Name: instanceValidation, Type: rotator.Validating},
			{Name: "kudo-manager-explore-validation-webhook-config", Type: rotator.Validating},
		},
	})
	if err != nil {
		return fmt.Errorf("set up the webhooks' certificate: %w", err)
	}
	return serveWebhooks(mgr, o, handlers, files, ready)
}

// admissionHandlers returns handlers of HTTP for those of admission.
func admissionHandlers(handlers map[string]crwebhook.Handler) map[string]http.Handler {
	out := map[string]http.Handler{}
	for path, handler := range handlers {
		out[path] = &crwebhook.Webhook{Handler: handler}
	}
	return out
}

// serveWebhooks writes the certificate's files, and serves the webhooks once it is ready.
func serveWebhooks(mgr manager.Manager, o Options, handlers map[string]http.Handler, files *certFiles, ready <-chan struct{}) error {
	if err := mgr.Add(files); err != nil {
		return err
	}
	server := webhook.NewServer(webhook.Options{Host: o.WebhookAddress, Port: o.WebhookPort, CertDir: o.WebhookCertDir})
	started := server.StartedChecker()
	serve := manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
		for path, handler := range handlers {
			server.Register(path, handler)
		}
		return server.Start(ctx)
	})
	if err := mgr.Add(allReplicas{serve}); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", func(req *http.Request) error { return started(req) })
}
