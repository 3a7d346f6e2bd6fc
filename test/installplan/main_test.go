package installplan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var crds = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// fleet is what an install plan installs in these tests: a definition, a ClusterRole, and a server in a namespace of its
// own. The word makes its names.
type fleet struct{ word string }

func newFleet() fleet { return fleet{"fleet-" + rand.String(8)} }

func (f fleet) group() string { return f.word + ".example.com" }
func (f fleet) crd() string   { return "ships." + f.group() }

// ship is a custom resource of the definition.
func (f fleet) ship(namespace, name string) *unstructured.Unstructured {
	ship := &unstructured.Unstructured{}
	ship.SetGroupVersionKind(schema.GroupVersionKind{Group: f.group(), Version: "v1", Kind: "Ship"})
	ship.SetNamespace(namespace)
	ship.SetName(name)
	return ship
}

func (f fleet) objects() map[string]client.Object {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(crds)
	crd.SetName(f.crd())
	return map[string]client.Object{
		"crd":        crd,
		"role":       &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", f.word)},
		"namespace":  &corev1.Namespace{ObjectMeta: gen.Meta("", f.word)},
		"deployment": &appsv1.Deployment{ObjectMeta: gen.Meta(f.word, "harbor")},
	}
}

func (f fleet) templates() map[string]string {
	return map[string]string{
		"crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + f.crd() + `
spec:
  group: ` + f.group() + `
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, description: what it is, properties: {size: {type: integer}}}
`,
		"role.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ` + f.word + `
rules:
- apiGroups: [` + f.group() + `]
  resources: [ships]
  verbs: [{{ .Params.VERB }}]
`,
		"server.yaml": `apiVersion: v1
kind: Namespace
metadata:
  name: ` + f.word + `
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: harbor
  namespace: ` + f.word + `
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: harbor}}
  template:
    metadata: {labels: {app: harbor}}
    spec:
      containers:
      - name: server
        image: nginx
`,
	}
}

// version builds an OperatorVersion that installs the fleet in one step, and whose Instances have a ConfigMap.
func (f fleet) version(namespace, name string, mods ...gen.VersionMod) *v1beta1.OperatorVersion {
	all := []gen.VersionMod{gen.Param("VERB", "get", ""), gen.Param("REPLICAS", "1", ""), gen.Param("VALUE", "a", "")}
	for file, text := range f.templates() {
		all = append(all, gen.Template(file, text))
	}
	all = append(all, gen.Apply("fleet", "crd.yaml", "role.yaml", "server.yaml"), gen.ConfigMaps("cm", 1),
		gen.Serial("install", "fleet"), gen.Serial("deploy", "cm"), gen.InstallPlan("install"))
	return gen.Version(namespace, name, append(all, mods...)...)
}

// install creates an OperatorVersion and waits for the end of its install plan.
func install(t testing.TB, ov *v1beta1.OperatorVersion) *v1beta1.OperatorVersion {
	t.Helper()
	env.Must(t, suite.Create(ctx, ov))
	return ended(t, ov, 1)
}

// ended waits for the end of a run of the install plan.
func ended(t testing.TB, ov *v1beta1.OperatorVersion, revision int64) *v1beta1.OperatorVersion {
	t.Helper()
	now := &v1beta1.OperatorVersion{}
	env.Eventually(t, "the end of the install plan of "+ov.Name, func() string {
		if err := suite.Get(ctx, client.ObjectKeyFromObject(ov), now); err != nil {
			return err.Error()
		}
		if now.Status.Revision < revision || plans.Running(now.Status.PlanStatus) != "" || now.Status.AggregatedStatus.Status == "" {
			return fmt.Sprintf("%+v", now.Status.AggregatedStatus)
		}
		return ""
	})
	return now
}

// complete wants an install plan that has succeeded.
func complete(t testing.TB, ov *v1beta1.OperatorVersion) *v1beta1.OperatorVersion {
	t.Helper()
	if a := ov.Status.AggregatedStatus; a.Status != v1beta1.Complete || !ov.Installed() {
		t.Fatalf("the install plan of %s is %s: %s", ov.Name, a.Status, a.Message)
	}
	return ov
}

// fatal wants an install plan that has failed, and texts in its message.
func fatal(t testing.TB, ov *v1beta1.OperatorVersion, texts ...string) {
	t.Helper()
	a := ov.Status.AggregatedStatus
	if a.Status != v1beta1.FatalError || ov.Installed() {
		t.Fatalf("the install plan of %s is %s: %s", ov.Name, a.Status, a.Message)
	}
	env.Contains(t, a.Message, texts...)
	evented(t, ov, "Warning PlanFailed: Install plan install failed: "+a.Message)
	evented(t, ov, "Normal PlanFinished: Execution of install plan install finished with status FATAL_ERROR")
}

// evented wants an event on an OperatorVersion.
func evented(t testing.TB, ov *v1beta1.OperatorVersion, want string) {
	t.Helper()
	eventedWhere(t, ov, want, func(e string) bool { return e == want })
}

// eventedWith wants an event on an OperatorVersion that begins with a text.
func eventedWith(t testing.TB, ov *v1beta1.OperatorVersion, want string) {
	t.Helper()
	eventedWhere(t, ov, want, func(e string) bool { return strings.HasPrefix(e, want) })
}

func eventedWhere(t testing.TB, ov *v1beta1.OperatorVersion, want string, meets func(string) bool) {
	t.Helper()
	env.Eventually(t, "the event "+want, func() string {
		list := &corev1.EventList{}
		if err := suite.List(ctx, list, client.InNamespace(ov.Namespace), client.MatchingFields{"involvedObject.name": ov.Name}); err != nil {
			return err.Error()
		}
		var have []string
		for _, e := range list.Items {
			have = append(have, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
		if slices.ContainsFunc(have, meets) {
			return ""
		}
		return strings.Join(have, "\n")
	})
}

// uninstall deletes an OperatorVersion and waits until it and its Installation no longer exist.
func uninstall(t testing.TB, ov *v1beta1.OperatorVersion) {
	t.Helper()
	env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, ov)))
	released(t, ov)
}

func released(t testing.TB, ov *v1beta1.OperatorVersion) {
	t.Helper()
	env.Eventually(t, "the release of "+ov.Name, func() string {
		now := &v1beta1.OperatorVersion{}
		if err := suite.Get(ctx, client.ObjectKeyFromObject(ov), now); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the OperatorVersion is there: %v %+v", err, now.Status.Conditions)
		}
		if i := holder(ov); i != nil {
			return fmt.Sprintf("the Installation is there: %+v", i.Status)
		}
		return ""
	})
}

// holder reads the Installation of an OperatorVersion; it returns nil if there is none.
func holder(ov *v1beta1.OperatorVersion) *v1beta1.Installation {
	i := &v1beta1.Installation{}
	if suite.Get(ctx, client.ObjectKey{Name: ov.InstallationName()}, i) != nil {
		return nil
	}
	return i
}

// states of what an OperatorVersion holds, by kind.
func states(t testing.TB, ov *v1beta1.OperatorVersion) map[string]v1beta1.HoldState {
	t.Helper()
	i := holder(ov)
	if i == nil {
		t.Fatalf("OperatorVersion %s has no Installation", ov.Name)
		return nil
	}
	out := map[string]v1beta1.HoldState{}
	for _, r := range i.Status.Resources {
		out[r.Kind] = r.State
	}
	return out
}

// exists reports whether an object is there, and reads it.
func exists(t testing.TB, obj client.Object) bool {
	t.Helper()
	err := suite.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		t.Fatal(err)
	}
	return err == nil
}

// owners of an object, without the guard.
func owners(obj client.Object) []string {
	var out []string
	for _, o := range obj.GetOwnerReferences() {
		if o.Kind != "Namespace" {
			out = append(out, o.Name)
		}
	}
	return out
}

// waits wants a condition Released with a reason on an OperatorVersion that is being deleted.
func waits(t testing.TB, ov *v1beta1.OperatorVersion, reason string, texts ...string) {
	t.Helper()
	message := ""
	env.Eventually(t, "a release that waits", func() string {
		now := &v1beta1.OperatorVersion{}
		if err := suite.Get(ctx, client.ObjectKeyFromObject(ov), now); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ReleasedCondition)
		if c == nil || c.Reason != reason || c.Status != metav1.ConditionFalse {
			return fmt.Sprintf("%+v", now.Status.Conditions)
		}
		message = c.Message
		return ""
	})
	env.Contains(t, message, texts...)
}

// role is a ClusterRole with one verb.
func role(name, verb, group string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"ships"}, Verbs: []string{verb}},
	}}
}

// edit changes an object, again if others change it at the same time.
func edit[T client.Object](t testing.TB, obj T, change func(T)) {
	t.Helper()
	env.Eventually(t, "an edit of "+obj.GetName(), func() string {
		env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(obj), obj))
		change(obj)
		if err := suite.Update(ctx, obj); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		} else if err != nil {
			return err.Error()
		}
		return ""
	})
}
