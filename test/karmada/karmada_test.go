// Package karmada tests the backend for Karmada on an API server that has Karmada's definitions, and on which the test plays Karmada.
package karmada

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/manifests"
	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/pkg/clusters/karmada"
	rules "kudo.dev/kudo/pkg/explore/karmada"
	server "kudo.dev/kudo/pkg/explore/server/karmada"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// hub is an API server with Karmada's definitions and an engine.
type hub struct {
	*env.Cluster
	engine *karmada.Engine
	clock  *clocktesting.FakeClock
	// strict refuses unknown fields.
	strict client.Client
}

// TestHub checks C6, C12, C19, C20, C30, C44 on a real API server, whose definitions are those of Karmada.
func TestHub(t *testing.T) {
	definitions := corpus.Karmada(t)
	plane, err := env.StartBare("--profile", "api")
	env.Must(t, err)
	t.Cleanup(plane.Stop)
	c, err := plane.Connect()
	env.Must(t, err)
	h := &hub{Cluster: c, clock: clocktesting.NewFakeClock(time.Now()), strict: client.WithFieldValidation(c, client.FieldValidation("Strict"))}
	h.DefineFiles(t, manifests.Files, "crds/kudo.dev_instances.yaml")
	h.Define(t, []byte(corpus.KarmadaCluster))
	h.DefineFiles(t, definitions, "policy/*.yaml", "work/*.yaml", "config/*.yaml")
	h.start(t)
	t.Run("documents", h.checkDocuments)
	t.Run("rules", h.checkRules)
	t.Run("place", h.checkPlace)
	t.Run("foreign", h.checkForeign)
	t.Run("observe", h.checkObserve)
	t.Run("events", h.checkEvents)
}

// start runs the engine until the test ends.
func (h *hub) start(t *testing.T) {
	t.Helper()
	kept, err := cache.New(h.Config, cache.Options{Scheme: h.Scheme(), ByObject: karmada.CachedObjects(types.NamespacedName{})})
	env.Must(t, err)
	h.engine = karmada.New(karmada.Options{Client: h.strict, Cache: kept, Config: h.Config, Clock: h.clock})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- kept.Start(ctx) }()
	go func() { ended <- h.engine.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// instance creates an Instance that is placed on m1 and m2, in a namespace of its own.
func (h *hub) instance(t *testing.T, name string) *v1beta1.Instance {
	t.Helper()
	out := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: h.NewBareNamespace(t), Name: name}}
	out.Spec.OperatorVersion.Name = "book-1.0.0"
	out.Spec.Parameters = map[string]string{"REPLICAS": "6", "REGION": "eu-1"}
	out.Spec.Placement = &v1beta1.Placement{Divide: "REPLICAS", Clusters: []v1beta1.PlacedCluster{
		{Name: "m1", Weight: 2}, {Name: "m2", Parameters: map[string]string{"REGION": "eu-2"}}}}
	env.Must(t, h.Create(t.Context(), out))
	return out
}

// placed returns what the hub writes for an Instance, with a release for some clusters.
func placed(instance *v1beta1.Instance, released ...string) clusters.Placed {
	out := clusters.Placed{Instance: instance}
	for _, c := range instance.Spec.Placement.Clusters {
		target := clusters.Target{Name: c.Name, Weight: c.EffectiveWeight(), Parameters: c.Parameters}
		for _, name := range released {
			if name == c.Name {
				target.Released = v1beta1.Template(instance.UID, instance.Generation)
			}
		}
		out.Clusters = append(out.Clusters, target)
	}
	return out
}

// get reads an object of the API server.
func (h *hub) get(t *testing.T, kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	env.Must(t, h.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, out))
	return out
}

// checkDocuments creates each form of the compiled policies; the API server refuses a field that it does not know.
func (h *hub) checkDocuments(t *testing.T) {
	instance := h.instance(t, "book")
	whole := func(change func(*v1beta1.Instance)) clusters.Placed {
		i := instance.DeepCopy()
		change(i)
		return placed(i, "m1")
	}
	for reason, p := range map[string]clusters.Placed{
		"divided, overridden and released": whole(func(*v1beta1.Instance) {}),
		"without a rule": whole(func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters = i.Spec.Placement.Clusters[1:]
			i.Spec.Placement.Clusters[0].Parameters = nil
			i.Spec.Placement.Divide = ""
		}),
		"copies that stay": whole(func(i *v1beta1.Instance) { i.Spec.Placement.OnDelete = v1beta1.OrphanPlaced }),
		"a long name":      whole(func(i *v1beta1.Instance) { i.Name = strings.Repeat("a", 200) + ".b" }),
		"a parameter with letters of JSON pointers": whole(func(i *v1beta1.Instance) {
			i.Spec.Placement.Clusters[0].Parameters = map[string]string{"a/b~c": "\x00\"ü\n"}
		}),
	} {
		t.Run(reason, func(t *testing.T) {
			policy, override := karmada.Compile(p)
			for _, o := range []*unstructured.Unstructured{policy, override} {
				want := o.DeepCopy()
				env.Must(t, h.strict.Create(t.Context(), o, client.DryRunAll))
				rules, found, err := unstructured.NestedSlice(o.Object, "spec", "overrideRules")
				if o.GetKind() == "OverridePolicy" && (err != nil || !found) {
					t.Errorf("the API server has taken out the rules of %v: %v, %v", want.Object, rules, err)
				}
			}
			policy.Object["spec"].(map[string]any)["unknown"] = true
			policy.SetResourceVersion("")
			if err := h.strict.Create(t.Context(), policy, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "unknown field") {
				t.Errorf("an unknown field gives %v", err)
			}
		})
	}
}

// checkRules creates what Configs become for Karmada, by scripts and by the webhook of a hub in each form; the API server refuses a field that
// it does not know. It checks what Karmada's webhooks refuse, too.
func (h *hub) checkRules(t *testing.T) {
	config := configv1alpha1.Config{ObjectMeta: metav1.ObjectMeta{Name: "rules"}}
	config.Spec.Retentions = []configv1alpha1.LocalValueRetention{{APIVersion: "v1", Kind: "Pod", Fields: []string{"{.spec.nodeName}"}},
		{APIVersion: "example.com/v1", Kind: "Ship", Fields: []string{"{.spec.sail}"}}}
	config.Spec.Explorations = []configv1alpha1.Exploration{{APIVersion: "example.com/v1", Kind: "Ship", StatusLua: "return observedObj.status",
		Health: &configv1alpha1.HealthRule{Field: "{.status.phase}", Healthy: []string{"Afloat"}}}}
	byURL, err := rules.NewURL("https://hub.example.org:9443", server.Path)
	env.Must(t, err)
	byService, err := rules.NewService("kudo-system/kudo-controller-manager-service", server.Path)
	env.Must(t, err)
	certified := *byURL
	certified.CABundle = h.Config.CAData
	for reason, endpoint := range map[string]*rules.Endpoint{"a URL": byURL, "a Service": byService, "a URL and certificates": &certified} {
		documents, warnings, err := rules.FromConfigs([]configv1alpha1.Config{config}, endpoint)
		env.Must(t, err)
		if len(documents) != 3 || len(warnings) > 0 {
			t.Errorf("%s: %d documents, %q", reason, len(documents), warnings)
		}
		for _, fields := range documents {
			document := &unstructured.Unstructured{Object: fields}
			env.Must(t, h.strict.Create(t.Context(), document, client.DryRunAll))
			hooks, _, _ := unstructured.NestedSlice(document.Object, "webhooks")
			for _, hook := range hooks {
				checkHook(t, reason, hook.(map[string]any))
			}
		}
	}
}

// checkHook checks what Karmada's webhooks check of a ResourceInterpreterWebhookConfiguration, and its definition does not.
func checkHook(t *testing.T, reason string, hook map[string]any) {
	t.Helper()
	name, _, _ := unstructured.NestedString(hook, "name")
	_, hasURL, _ := unstructured.NestedString(hook, "clientConfig", "url")
	_, hasService, _ := unstructured.NestedMap(hook, "clientConfig", "service")
	timeout, _, _ := unstructured.NestedInt64(hook, "timeoutSeconds")
	versions, _, _ := unstructured.NestedStringSlice(hook, "interpreterContextVersions")
	if len(validation.IsFullyQualifiedName(nil, name)) > 0 || hasURL == hasService || timeout < 1 || timeout > 30 || !slices.Equal(versions, []string{"v1alpha1"}) {
		t.Errorf("%s: %v", reason, hook)
	}
	hookRules, _, _ := unstructured.NestedSlice(hook, "rules")
	for _, rule := range hookRules {
		for _, field := range []string{"operations", "apiGroups", "apiVersions", "kinds"} {
			values, _, _ := unstructured.NestedStringSlice(rule.(map[string]any), field)
			if len(values) == 0 || slices.Contains(values, "*") || slices.Contains(values, "Prune") {
				t.Errorf("%s: %s are %v", reason, field, values)
			}
		}
	}
}

// checkPlace checks what Place writes, and that it writes only what differs.
func (h *hub) checkPlace(t *testing.T) {
	instance := h.instance(t, "book")
	place := func(p clusters.Placed) {
		t.Helper()
		env.Must(t, h.engine.Place(t.Context(), p))
	}
	version := func() [2]string {
		t.Helper()
		return [2]string{h.get(t, karmada.PolicyKind, instance.Namespace, "kudo-book").GetResourceVersion(),
			h.get(t, karmada.OverrideKind, instance.Namespace, "kudo-book").GetResourceVersion()}
	}
	place(placed(instance, "m1"))
	first := version()
	// The cache may be older than the write for a moment, and a call that sees that reads the API server.
	apitest.Eventually(t, "an unchanged Instance costs no request", func() bool {
		before, err := h.Requests(t.Context())
		env.Must(t, err)
		place(placed(instance, "m1"))
		after, err := h.Requests(t.Context())
		env.Must(t, err)
		spent := after.Since(before)
		if spent.Writes() > 0 {
			t.Fatalf("an unchanged Instance costs %v", spent)
		}
		return spent.Of("propagationpolicies")+spent.Of("overridepolicies") == 0
	})
	place(placed(instance, "m1", "m2"))
	if now := version(); now[0] != first[0] || now[1] == first[1] {
		t.Errorf("a release changes the versions %v to %v, want another OverridePolicy only", first, now)
	}
	instance.Spec.Placement.Divide = ""
	place(placed(instance))
	policy, override := h.get(t, karmada.PolicyKind, instance.Namespace, "kudo-book"), h.get(t, karmada.OverrideKind, instance.Namespace, "kudo-book")
	if _, found, _ := unstructured.NestedMap(policy.Object, "spec", "placement", "replicaScheduling"); found {
		t.Error("the policy divides after spec.placement.divide was taken out")
	}
	if rules, _, _ := unstructured.NestedSlice(override.Object, "spec", "overrideRules"); len(rules) != 1 {
		t.Errorf("after the releases were taken back, the rules are %v", rules)
	}
	// A change by another client is undone, and a field that it has added stays.
	for _, change := range []func(){
		func() { _ = unstructured.SetNestedField(policy.Object, true, "spec", "preserveResourcesOnDeletion") },
		func() { _ = unstructured.SetNestedField(policy.Object, true, "spec", "suspension", "dispatching") },
	} {
		change()
	}
	env.Must(t, h.Update(t.Context(), policy, client.FieldOwner("ann")))
	apitest.Eventually(t, "the change is undone", func() bool {
		place(placed(instance))
		policy = h.get(t, karmada.PolicyKind, instance.Namespace, "kudo-book")
		kept, _, _ := unstructured.NestedBool(policy.Object, "spec", "preserveResourcesOnDeletion")
		return !kept
	})
	if suspended, _, _ := unstructured.NestedBool(policy.Object, "spec", "suspension", "dispatching"); !suspended {
		t.Error("the suspension of another client was taken out")
	}
	for _, field := range policy.GetManagedFields() {
		if field.Manager == clusters.FieldManager && field.Operation == metav1.ManagedFieldsOperationApply {
			return
		}
	}
	t.Errorf("the fields are of %v", policy.GetManagedFields())
}

// checkForeign checks that a policy of others is not touched, and that nothing else is written then.
func (h *hub) checkForeign(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{karmada.PolicyKind, karmada.OverrideKind} {
		t.Run(kind.Kind, func(t *testing.T) {
			instance := h.instance(t, "book")
			former := instance.DeepCopy()
			former.UID = "of-before"
			policy, override := karmada.Compile(placed(former))
			theirs, other := policy, karmada.OverrideKind
			if kind == karmada.OverrideKind {
				theirs, other = override, karmada.PolicyKind
			}
			env.Must(t, h.Create(t.Context(), theirs))
			version := theirs.GetResourceVersion()
			err := h.engine.Place(t.Context(), placed(instance))
			refused := &clusters.RefusedError{}
			if !errors.As(err, &refused) || refused.Reason != "ForeignPolicy" || !strings.Contains(refused.Message, kind.Kind+" "+instance.Namespace+"/kudo-book") {
				t.Fatalf("Place returns %v", err)
			}
			if now := h.get(t, kind, instance.Namespace, "kudo-book"); now.GetResourceVersion() != version {
				t.Error("the policy of another owner was written")
			}
			absent := &unstructured.Unstructured{}
			absent.SetGroupVersionKind(other)
			if err := h.Get(t.Context(), client.ObjectKeyFromObject(theirs), absent); !apierrors.IsNotFound(err) {
				t.Errorf("the other policy was written: %v", err)
			}
			env.Must(t, h.Delete(t.Context(), theirs))
			h.await(t, instance)
			env.Must(t, h.engine.Place(t.Context(), placed(instance)))
		})
	}
}
