package preview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// environment is what other clients do between the installation and the upgrade of the hand-written package. The next version has a mutation.
type environment struct {
	mutation string
	change   func(t *testing.T, ns string)
	// install are arguments of the installation, and without is the text that is removed from operator.yaml before it.
	install []string
	without string
	// waits is set if the plan would retry until what keeps it from going on has passed, and fails if it fails.
	waits, fails bool
}

var environments = map[string]environment{
	"a quota is used up":                     {mutation: "new object", change: useUpQuota, waits: true},
	"the account lacks a right":              {mutation: "new secret", without: "login.yaml, ", install: []string{"--create-service-account", "--yes"}, waits: true},
	"a policy denies a new object":           {mutation: "new object", change: deny("CREATE", "configmaps", "i-new"), fails: true},
	"a policy denies a change":               {mutation: "image", change: deny("UPDATE", "deployments", "i"), fails: true},
	"a webhook denies a new object":          {mutation: "new object", change: denyByWebhook("CREATE", "configmaps", "i-new"), fails: true},
	"a webhook denies a change":              {mutation: "image", change: denyByWebhook("UPDATE", "deployments", "i"), fails: true},
	"a ConfigMap was edited":                 {mutation: "image", change: editObject("ConfigMap", "i-config", `{"data":{"KEY":"by hand","more":"by hand"},"metadata":{"labels":{"tier":"by-hand"}}}`)},
	"a Secret was edited":                    {mutation: "label of pods", change: editObject("Secret", "i-login", `{"stringData":{"password":"by hand"}}`)},
	"a Secret got a key":                     {mutation: "label", change: editObject("Secret", "i-login", `{"stringData":{"more":"by hand"}}`)},
	"a pod template was edited":              {mutation: "value", change: editObject("Deployment", "i", `{"spec":{"template":{"metadata":{"annotations":{"by":"hand"}},"spec":{"terminationGracePeriodSeconds":5}}}}`)},
	"labels of kudo were taken off":          {mutation: "value", change: editObject("Service", "i", `{"metadata":{"labels":{"kudo.dev/instance":null,"heritage":null}}}`)},
	"an object was deleted":                  {mutation: "image", change: deleteObject("ConfigMap", "i-extra")},
	"an object was replaced":                 {mutation: "image", change: replaceConfigMap("i-extra")},
	"a new object is there already":          {mutation: "new object", change: createConfigMap("i-new"), fails: true},
	"another manager owns the replicas":      {mutation: "replicas", change: scaleDeployment},
	"an autoscaler owns the replicas":        {mutation: "image", change: autoscaleDeployment},
	"an object that is dropped was released": {mutation: "drop template", change: editObject("ConfigMap", "i-extra", `{"metadata":{"ownerReferences":null}}`)},
}

// environmentCases are upgrades of the hand-written package in environments, and of packages with definitions.
func environmentCases(t *testing.T) map[string]upgrade {
	t.Helper()
	out := map[string]upgrade{}
	for name, e := range environments {
		b := written()
		if e.without != "" {
			b.files["operator.yaml"] = replaceOnce(t, b.files["operator.yaml"], e.without, "")
		}
		v := b.version(t, rand.New(rand.NewSource(0)))
		if !mutations[e.mutation](v) {
			t.Fatalf("%s: mutation %s finds nothing to change", name, e.mutation)
		}
		v.seal(t)
		out["environment: "+name] = upgrade{base: b, next: v.files, install: e.install, change: e.change, waits: e.waits, fails: e.fails}
	}
	narrowed := definitions(replaceOnce(t, definition, "MOST", "64"))
	out["environment: living objects do not fit a definition"] = upgrade{
		base: narrowed, next: narrowed.with(t, "templates/kind.yaml", "maxLength: 64", "maxLength: 8"), change: makeOrderOf, fails: true,
	}
	out["environment: living objects fit a definition"] = upgrade{
		base: narrowed, next: narrowed.with(t, "templates/kind.yaml", "maxLength: 64", "maxLength: 63"), change: makeOrderOf,
	}
	migrated := narrowed.with(t, "templates/kind.yaml", "storage: true", "storage: false")
	migrated["templates/kind.yaml"] += secondVersion
	out["environment: the storage version of a definition changes"] = upgrade{base: narrowed, next: migrated, change: makeOrderOf}
	before := definitions("")
	before.files["operator.yaml"] = replaceOnce(t, newerOperator(plan), "RESOURCES", "config.yaml")
	next := definitions(replaceOnce(t, definition, "MOST", "64")).with(t, "operator.yaml", "resources: [config.yaml]", "resources: [config.yaml, order.yaml]")
	next["templates/order.yaml"] = "apiVersion: shop.example.com/v1\nkind: Order\nmetadata: {name: '{{ .Name }}-first'}\nspec: {customer: anyone}\n"
	out["environment: a definition comes with its object"] = upgrade{base: before, next: next}
	return out
}

// definitions is a package with an install plan that makes a definition.
func definitions(kind string) base {
	return base{name: "definitions", shared: []string{"shop.example.com"}, files: files{
		"operator.yaml": newerOperator(installed), "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/kind.yaml":   kind,
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n",
	}}
}

// newerOperator is an operator.yaml of the version that is installed.
func newerOperator(rest string) string {
	return "apiVersion: kudo.dev/v1beta1\nname: definitions\noperatorVersion: 1.0.0" + rest
}

// with returns the next version, with another text in a file.
func (b base) with(t *testing.T, path, old, next string) files {
	t.Helper()
	out := maps.Clone(b.files)
	out[path] = replaceOnce(t, out[path], old, next)
	out["operator.yaml"] = replaceOnce(t, out["operator.yaml"], "operatorVersion: 1.0.0", "operatorVersion: 2.0.0")
	return out
}

func makeOrderOf(t *testing.T, ns string) {
	t.Helper()
	makeOrder(t, ns, "shop.example.com-"+ns)
}

// useUpQuota leaves no room for another ConfigMap.
func useUpQuota(t *testing.T, ns string) {
	t.Helper()
	list := &corev1.ConfigMapList{}
	env.Must(t, suite.List(t.Context(), list, client.InNamespace(ns)))
	most := *resource.NewQuantity(int64(len(list.Items)), resource.DecimalSI)
	env.Must(t, suite.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: gen.Meta(ns, "most"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/configmaps": most}},
	}))
	env.Eventually(t, "a quota in force", func() string {
		return refusal(suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "probe")}, client.DryRunAll), "exceeded quota")
	})
}

// refusal returns "" if the error contains the words, or else the error.
func refusal(err error, words string) string {
	if err != nil && strings.Contains(err.Error(), words) {
		return ""
	}
	return fmt.Sprint(err)
}

// deny has a policy refuse a request for an object of a name.
func deny(operation admissionv1.OperationType, resources, name string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		fail := admissionv1.Fail
		inNamespace := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: gen.Meta("", "deny-in-"+ns), Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{NamespaceSelector: inNamespace, ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resources}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.name != '" + name + "'", Message: "not on Fridays"}},
		}}
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: gen.Meta("", "deny-in-"+ns), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
		for _, obj := range []client.Object{policy, binding} {
			env.Must(t, suite.Create(t.Context(), obj))
			t.Cleanup(func() { _ = suite.Delete(context.Background(), obj) })
		}
		env.Eventually(t, "a policy in force", func() string {
			if operation == admissionv1.Update {
				patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"yes"}}}`))
				return refusal(suite.Patch(t.Context(), reference("Deployment", ns, name), patch, client.DryRunAll), "not on Fridays")
			}
			return refusal(suite.Create(t.Context(), reference("ConfigMap", ns, name), client.DryRunAll), "not on Fridays")
		})
	}
}

// reference is an object of a kind without its content.
func reference(kind, ns, name string) *unstructured.Unstructured {
	versions := map[string]string{"Deployment": "apps/v1", "StatefulSet": "apps/v1"}
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(cmp.Or(versions[kind], "v1"))
	obj.SetKind(kind)
	obj.SetNamespace(ns)
	obj.SetName(name)
	return obj
}

// editObject returns a change that patches an object as another client, a second after its last write: the API server compares the times of
// field managers by seconds.
func editObject(kind, name, patch string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		awaitNextSecond(t)
		env.Must(t, suite.Patch(t.Context(), reference(kind, ns, name), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner("hand")))
		if kind == "Deployment" {
			awaitRollout(t, ns, name)
		}
	}
}

func awaitNextSecond(t *testing.T) {
	t.Helper()
	begin := time.Now().Unix()
	env.Eventually(t, "the next second", env.Condition(func() bool { return time.Now().Unix() > begin+1 }))
}

func awaitRollout(t *testing.T, ns, name string) {
	t.Helper()
	env.Eventually(t, "a rollout", env.Condition(func() bool {
		d := env.Read(t, suite, &appsv1.Deployment{}, ns, name)
		return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.ReadyReplicas == *d.Spec.Replicas
	}))
}

func deleteObject(kind, name string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		env.Must(t, suite.Delete(t.Context(), reference(kind, ns, name)))
	}
}

// createConfigMap returns a change that creates a ConfigMap as another client.
func createConfigMap(name string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		env.Must(t, suite.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, name), Data: map[string]string{"by": "hand"}}))
	}
}

// replaceConfigMap returns a change that deletes a ConfigMap and creates another one of the name.
func replaceConfigMap(name string) func(*testing.T, string) {
	return func(t *testing.T, ns string) {
		t.Helper()
		deleteObject("ConfigMap", name)(t, ns)
		createConfigMap(name)(t, ns)
	}
}

// scaleDeployment sets the replicas as another field manager.
func scaleDeployment(t *testing.T, ns string) {
	t.Helper()
	body := reference("Deployment", ns, "i")
	body.Object["spec"] = map[string]any{"replicas": int64(4)}
	env.Must(t, suite.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(body), client.FieldOwner("scaler"), client.ForceOwnership))
	awaitRollout(t, ns, "i")
}

// autoscaleDeployment creates a HorizontalPodAutoscaler of the Deployment, and sets the replicas as its controller does.
func autoscaleDeployment(t *testing.T, ns string) {
	t.Helper()
	least := int32(4)
	env.Must(t, suite.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: gen.Meta(ns, "i"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "i"}, MinReplicas: &least, MaxReplicas: 9,
	}}))
	env.Eventually(t, "a Deployment of 4 pods", env.Condition(func() bool {
		return *env.Read(t, suite, &appsv1.Deployment{}, ns, "i").Spec.Replicas == 4
	}))
	awaitRollout(t, ns, "i")
}
