package controllers

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	crwebhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/admission"
	"kudo.dev/kudo/pkg/clusters/inventory"
	"kudo.dev/kudo/pkg/clusters/karmada"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestKarmadaLease checks C30: the Lease is named with its namespace.
func TestKarmadaLease(t *testing.T) {
	for _, tc := range []struct {
		reason, flag string
		want         types.NamespacedName
		fails        bool
	}{
		{"Karmada's own", "karmada-system/karmada-controller-manager", types.NamespacedName{Namespace: "karmada-system", Name: "karmada-controller-manager"}, false},
		{"another one", "a/b", types.NamespacedName{Namespace: "a", Name: "b"}, false},
		{"without a namespace", "karmada-controller-manager", types.NamespacedName{}, true},
		{"nothing", "", types.NamespacedName{}, true},
		{"an empty namespace", "/b", types.NamespacedName{}, true},
		{"an empty name", "a/", types.NamespacedName{}, true},
		{"three names", "a/b/c", types.NamespacedName{}, true},
	} {
		got, err := karmadaLease(Options{KarmadaLease: tc.flag})
		if (err != nil) != tc.fails || got != tc.want {
			t.Errorf("%s: %v, %v, want %v", tc.reason, got, err, tc.want)
		}
		if err != nil && !strings.Contains(err.Error(), "must be NAMESPACE/NAME") {
			t.Errorf("%s: %v does not say what is right", tc.reason, err)
		}
	}
}

// TestCacheForHub checks C30 and C40: a hub keeps the one Lease, and of the other kinds of Karmada what it reads; other managers keep none.
func TestCacheForHub(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		options Options
		want    []string
		fails   bool
	}{
		{"no hub", Options{KarmadaLease: "a/b"}, nil, false},
		{"no hub needs no Lease", Options{KarmadaLease: "wrong"}, nil, false},
		{"a hub", Options{Hub: true, ClustersEngine: KarmadaEngine, KarmadaLease: "a/b"}, []string{"Cluster", "Lease", "ResourceBinding"}, false},
		{"a hub with an inventory", Options{Hub: true, ClustersEngine: InventoryEngine, KarmadaLease: "wrong"}, nil, false},
		{"a hub without Lease", Options{Hub: true, ClustersEngine: KarmadaEngine, KarmadaLease: "wrong"}, nil, true},
	} {
		secret := &corev1.Secret{}
		kept := map[client.Object]cache.ByObject{secret: onlySecret("kudo-system")}
		if err := cacheForHub(kept, tc.options); (err != nil) != tc.fails {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if _, has := kept[secret]; !has || len(kept) != 1+len(tc.want) {
			t.Errorf("%s: %d kinds, want %v and what was there", tc.reason, len(kept), tc.want)
		}
		found := map[string]cache.ByObject{}
		for object, how := range kept {
			if kind, ok := object.(*unstructured.Unstructured); ok {
				found[kind.GetKind()] = how
			}
		}
		for _, kind := range tc.want {
			how, has := found[kind]
			switch {
			case !has:
				t.Errorf("%s: %s is not there", tc.reason, kind)
			case kind != "Lease" && how.Transform == nil:
				t.Errorf("%s: all of each %s is kept", tc.reason, kind)
			case kind == "Lease" && (len(how.Namespaces) != 1 || how.Namespaces["a"].FieldSelector.String() != "metadata.name=b"):
				t.Errorf("%s: Leases of %v are kept, want a/b", tc.reason, how.Namespaces)
			}
		}
	}
}

// karmadaKinds are the kinds of Karmada that a hub reads or writes; all but Cluster have a namespace.
var karmadaKinds = []schema.GroupVersionKind{
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"},
	{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"},
	{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"},
	{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
}

// startHub starts the controller of a hub on a server, and returns the handlers of its webhooks. It may be called again in the same process.
func startHub(t *testing.T, server *apitest.Server) map[string]http.Handler {
	t.Helper()
	registry := crmetrics.Registry
	crmetrics.Registry = prometheus.NewRegistry()
	t.Cleanup(func() { crmetrics.Registry = registry })
	o := Options{Namespace: "kudo-system", Hub: true, ClustersEngine: KarmadaEngine, KarmadaLease: "karmada-system/karmada-controller-manager", Workers: 1, Clock: clock.RealClock{}}
	byObject := map[client.Object]cache.ByObject{}
	if err := cacheForHub(byObject, o); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme: apitest.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Logger: logr.Discard(),
		Cache: cache.Options{ByObject: byObject}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	handlers, err := addHub(ctx, mgr, server.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return handlers
}

// admissionHandler returns the handler of admission at a path.
func admissionHandler(handlers map[string]http.Handler, path string) crwebhook.Handler {
	return handlers[path].(*crwebhook.Webhook).Handler
}

// TestHub checks C2 and C22: the controller of a hub compiles a placement into policies, and writes the status; its webhooks are those of a hub.
func TestHub(t *testing.T) {
	server := apitest.Start(t)
	for _, kind := range karmadaKinds {
		server.AddKind(kind, kind.Kind != "Cluster")
	}
	for _, kind := range []string{"Config", "ResourceExploringWebhookConfiguration"} {
		server.AddKind(configv1alpha1.GroupVersion.WithKind(kind), false)
	}
	version := gen.Version("ns", "web-1.0", gen.Param("REPLICAS", "6", ""))
	instance := gen.Instance("web", version, map[string]string{"REPLICAS": "6"})
	instance.UID, instance.Generation = "u", 1
	instance.Spec.Placement = &v1beta1.Placement{Clusters: []v1beta1.PlacedCluster{{Name: "m1"}}}
	server.Put(version)
	server.Put(instance)
	handlers := startHub(t, server)
	policy := &unstructured.Unstructured{}
	policy.SetGroupVersionKind(karmadaKinds[0])
	policy.SetNamespace("ns")
	policy.SetName("kudo-web")
	apitest.Eventually(t, "a policy of the placement", func() bool { return server.Get(policy) != nil })
	apitest.Eventually(t, "the status, which says that Karmada is not heard of", func() bool {
		server.Read(instance)
		ready := meta.FindStatusCondition(instance.Status.Conditions, v1beta1.ReadyCondition)
		return ready != nil && ready.Reason == v1beta1.ReasonEngineSilent && instance.Status.Wave != nil
	})
	if !metav1.IsControlledBy(server.Get(policy), instance) || len(instance.Finalizers) > 0 {
		t.Errorf("the policy goes with the Instance, which is not held: %v, %v", server.Get(policy), instance.Finalizers)
	}
	want := []string{admission.MutatePath, admission.ValidateConfigPath, admission.ValidatePath, admission.ValidateVersionPath,
		admission.ValidateWebhookConfigurationPath, "/karmada/v1alpha1"}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(handlers)); !slices.Equal(got, want) {
		t.Errorf("webhooks %v, want %v", got, want)
	}
	defaulter, isDefaulter := admissionHandler(handlers, admission.MutatePath).(*admission.Defaulter)
	validator, isValidator := admissionHandler(handlers, admission.ValidatePath).(*admission.Validator)
	if !isDefaulter || !isValidator || !defaulter.Hub || !validator.Hub || defaulter.Keys != nil {
		t.Error("the webhooks of Instances are not those of a hub")
	}
}

// TestReadProviders checks C48: a file of programs is read strictly, and none is needed.
func TestReadProviders(t *testing.T) {
	folder := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(folder, "providers.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		reason, path string
		want         int
		fails        bool
	}{
		{"no file", "", 0, false},
		{"a file that is absent", filepath.Join(folder, "absent"), 0, true},
		{"a file that is no JSON", write("{"), 0, true},
	} {
		got, err := readProviders(tc.path)
		if (err != nil) != tc.fails || len(got) != tc.want {
			t.Errorf("%s: %v, %v", tc.reason, got, err)
		}
	}
	if _, err := newEngine(nil, clients{}, nil, Options{ClustersEngine: "odd"}); err == nil {
		t.Error("an engine that is not known is accepted")
	}
	if _, err := newEngine(nil, clients{}, nil, Options{ClustersEngine: KarmadaEngine, KarmadaLease: "odd"}); err == nil {
		t.Error("a Lease without a namespace is accepted")
	}
	if _, err := newEngine(nil, clients{}, nil, Options{ClustersEngine: InventoryEngine, ProviderFile: write("[]")}); err == nil {
		t.Error("a file of another form is accepted")
	}
	if forgetter(karmada.New(karmada.Options{})) != nil {
		t.Error("the engine of Karmada gives up copies")
	}
}

// TestDecider checks C45: the engine of an inventory reads decisions, and that of Karmada does not.
func TestDecider(t *testing.T) {
	if decider(karmada.New(karmada.Options{})) != nil {
		t.Error("the engine of Karmada reads decisions")
	}
	server := apitest.Start(t)
	set, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	engine, err := inventory.New(inventory.Options{Hub: server.Client(), Live: server.Client(), Decisions: set, Namespace: "kudo-system"})
	if err != nil {
		t.Fatal(err)
	}
	if decider(engine) == nil || forgetter(engine) == nil {
		t.Error("the engine of an inventory reads no decisions, or gives up no copies")
	}
}

// TestAdmissionHandlers checks that each handler of admission is served at its path as a webhook.
func TestAdmissionHandlers(t *testing.T) {
	validator := &admission.WebhookConfigurationValidator{}
	got := admissionHandlers(map[string]crwebhook.Handler{"/a": validator, "/b": &admission.ConfigValidator{}})
	if len(got) != 2 || admissionHandler(got, "/a") != crwebhook.Handler(validator) {
		t.Errorf("handlers %v", got)
	}
	if got := admissionHandlers(nil); len(got) != 0 {
		t.Errorf("no handler gives %v", got)
	}
}

// TestAnswersOfHub checks C22: a hub answers Karmada's questions for the kinds that its Configs name, at once after it has begun, and
// refuses the others with a reason.
func TestAnswersOfHub(t *testing.T) {
	server := apitest.Start(t)
	for _, kind := range karmadaKinds {
		server.AddKind(kind, kind.Kind != "Cluster")
	}
	for _, kind := range []string{"Config", "ResourceExploringWebhookConfiguration"} {
		server.AddKind(configv1alpha1.GroupVersion.WithKind(kind), false)
	}
	handlers := startHub(t, server)
	ask := func(kind string) string {
		body := `{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext", "request": {"uid": "1", "operation": "InterpretHealth", ` +
			`"kind": {"group": "example.org", "version": "v1", "kind": "` + kind + `"}, "name": "a", "namespace": "ns", ` +
			`"object": {"apiVersion": "example.org/v1", "kind": "` + kind + `", "metadata": {"name": "a", "namespace": "ns"}}}}`
		request := httptest.NewRequest(http.MethodPost, "/karmada/v1alpha1", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		handlers["/karmada/v1alpha1"].ServeHTTP(answer, request)
		return answer.Body.String()
	}
	apitest.Eventually(t, "a kind that no Config names is refused with a reason", func() bool {
		answer := ask("Unknown")
		return strings.Contains(answer, `"successful":false`) && strings.Contains(answer, "Config")
	})
}

// TestSetupError checks that a hub names what it lacks without Karmada.
func TestSetupError(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: karmadaKinds[0].GroupKind()}
	for _, tc := range []struct {
		reason string
		err    error
		o      Options
		want   string
	}{
		{"Karmada is missing", missing, Options{Hub: true, ClustersEngine: KarmadaEngine}, "does not serve the kinds of Karmada"},
		{"another kind of hub", missing, Options{Hub: true, ClustersEngine: InventoryEngine}, "set up the manager: "},
		{"another error", errors.New("wrong"), Options{Hub: true, ClustersEngine: KarmadaEngine}, "set up the manager: wrong"},
	} {
		if got := setupError(tc.err, tc.o); !strings.Contains(got.Error(), tc.want) || !errors.Is(got, tc.err) {
			t.Errorf("%s: %v, want %q", tc.reason, got, tc.want)
		}
	}
}
