package integration

import (
	"context"
	"crypto/md5" //nolint:gosec // the hash of KUDO
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// What an Instance of KUDO has: each kind with pods, and what those read.
const (
	kudoPage = `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-page}, data: {index.html: hello}}`
	kudoKey  = `{apiVersion: v1, kind: Secret, metadata: {name: NAME-key}, stringData: {key: abc}}`
	kudoWeb  = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME-web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "nginx:1.27.4"}]
      volumes: [{name: page, configMap: {name: NAME-page}}]
`
	kudoStore = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: NAME-store}
spec:
  replicas: 1
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers: [{name: store, image: "postgres:17.6"}]
      volumes: [{name: key, secret: {secretName: NAME-key}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`
	kudoJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: NAME-init}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: init, image: "busybox:1.37"}]
`
)

// formerRun writes objects as a plan of KUDO v0.19 leaves them: created by its field manager, with the annotation that it compares with.
func formerRun(t testing.TB, c client.Client, instance *v1beta1.Instance, operator string, texts ...string) {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAME", instance.Name)), &object.Object))
		objects = append(objects, object)
	}
	env.Must(t, enhance.Enhance(objects, enhance.Context{
		Operator: operator, OperatorVersion: "0.1.0", Instance: client.ObjectKeyFromObject(instance), InstanceUID: instance.UID,
		Plan: "deploy", Phase: "main", Step: "step-0", PlanUID: instance.Status.PlanStatus["deploy"].UID,
		Digest: func(text []byte) ([16]byte, error) { return md5.Sum(text), nil }, //nolint:gosec // as above
		Scope:  func(schema.GroupKind) (bool, error) { return true, nil },
	}, nil))
	for _, object := range objects {
		text, err := json.Marshal(object.Object)
		env.Must(t, err)
		annotations := object.GetAnnotations()
		annotations[v1beta1.LastAppliedAnnotation] = string(text)
		object.SetAnnotations(annotations)
		env.Must(t, c.Create(context.Background(), object, client.FieldOwner("manager")))
	}
}

// formerInstance creates an Instance with the status that KUDO v0.19 gives it after its plan deploy.
func formerInstance(t testing.TB, c client.Client, instance *v1beta1.Instance) {
	t.Helper()
	env.Must(t, c.Create(context.Background(), instance, client.FieldOwner("kubectl-kudo")))
	now := metav1.Now().Rfc3339Copy()
	instance.Status = v1beta1.InstanceStatus{
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ResourcesReady", LastTransitionTime: now}},
		PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {
			Name: "deploy", Status: v1beta1.Complete, UID: uuid.NewUUID(), LastUpdatedTimestamp: &now,
			Phases: []v1beta1.PhaseStatus{{Name: "main", Status: v1beta1.Complete, Steps: []v1beta1.StepStatus{{Name: "step-0", Status: v1beta1.Complete}}}},
		}},
	}
	env.Must(t, c.Status().Update(context.Background(), instance, client.FieldOwner("manager")))
}

// podStarts are the uids of the pods of a namespace by their names, with the times at which they started.
func podStarts(t testing.TB, c client.Client, ns string) map[string]string {
	t.Helper()
	list := &corev1.PodList{}
	env.Must(t, c.List(context.Background(), list, client.InNamespace(ns)))
	out := map[string]string{}
	for _, pod := range list.Items {
		if pod.Status.StartTime != nil {
			out[pod.Name] = fmt.Sprintf("%s %s", pod.UID, pod.Status.StartTime)
		}
	}
	return out
}

var _ = It("The next plan of an Instance of KUDO takes over its Deployment, StatefulSet, Job and child, and no pod is started anew", Label("from-kudo"), func() {
	t := GinkgoTB()
	m := newManaged(t)
	ns := m.NewNamespace(t)
	templates := func(texts map[string]string) gen.VersionMod {
		return func(ov *v1beta1.OperatorVersion) {
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				gen.Template(name, strings.ReplaceAll(texts[name], "NAME", "{{ .Name }}"))(ov)
			}
		}
	}
	child := gen.Version(ns, "cache-0.1.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("notes", 1),
		templates(map[string]string{"page.yaml": kudoPage, "web.yaml": kudoWeb}), gen.Apply("web", "page.yaml", "web.yaml", "notes-0.yaml"), gen.Serial("deploy", "web"))
	child.Spec.Operator.Name = "cache"
	parent := gen.Version(ns, "site-0.1.0", gen.Param("VALUE", "a", ""), gen.ConfigMaps("notes", 1),
		templates(map[string]string{"page.yaml": kudoPage, "key.yaml": kudoKey, "web.yaml": kudoWeb, "store.yaml": kudoStore, "job.yaml": kudoJob}),
		gen.Template("cache.yaml", "VALUE: {{ .Params.VALUE }}\n"),
		gen.Apply("all", "page.yaml", "key.yaml", "web.yaml", "store.yaml", "job.yaml", "notes-0.yaml"),
		gen.Task("cache", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "cache", OperatorVersion: "0.1.0", ParameterFile: "cache.yaml"}),
		gen.Serial("deploy", "all", "cache"))
	parent.Spec.Operator.Name = "site"
	env.Must(t, m.Create(t.Context(), child))
	env.Must(t, m.Create(t.Context(), parent))
	site := gen.Instance("site", parent, nil)
	formerInstance(t, m, site)
	cache := gen.Instance("site-cache", child, map[string]string{"VALUE": "a"})
	cache.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: site.Name, UID: site.UID}}
	formerInstance(t, m, cache)
	const notes = `{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-notes-0}, data: {key: a}}`
	formerRun(t, m, site, "site", kudoPage, kudoKey, kudoWeb, kudoStore, kudoJob, notes)
	formerRun(t, m, cache, "cache", kudoPage, kudoWeb, notes)
	env.Eventually(t, "the pods of KUDO's objects", func() string {
		if n := len(podStarts(t, m, ns)); n != 6 {
			return fmt.Sprintf("%d have started, of 6", n)
		}
		return ""
	})
	before := podStarts(t, m, ns)

	m.restart(t)
	old := m.await(t, ns, "site", func(i *v1beta1.Instance) bool { return i != nil && i.Status.ObservedGeneration == i.Generation })
	if st := old.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete || st.UID != site.Status.PlanStatus["deploy"].UID {
		t.Errorf("without a change, a plan was started: %+v", st)
	}
	patch := client.MergeFrom(old.DeepCopy())
	old.Spec.Parameters = map[string]string{"VALUE": "b"}
	env.Must(t, m.Patch(t.Context(), old, patch))
	for _, name := range []string{"site", "site-cache"} {
		i := m.await(t, ns, name, func(i *v1beta1.Instance) bool {
			st := i.Status.PlanStatus["deploy"]
			return st.Revision > 0 && st.Status.IsTerminal()
		})
		if st := i.Status.PlanStatus["deploy"]; st.Status != v1beta1.Complete {
			t.Fatalf("deploy of %s is %s: %s", name, st.Status, st.Message)
		}
		if got := env.Read(t, m, &corev1.ConfigMap{}, ns, name+"-notes-0").Data["key"]; got != "b" {
			t.Errorf("the plan of %s has not written the new value, but %q", name, got)
		}
	}
	if diff := cmp.Diff(before, podStarts(t, m, ns)); diff != "" {
		t.Errorf("pods were started anew: -before +after:\n%s", diff)
	}
	for _, of := range []struct{ apiVersion, kind, name string }{
		{"apps/v1", "Deployment", "site-web"}, {"apps/v1", "StatefulSet", "site-store"}, {"batch/v1", "Job", "site-init"},
		{"apps/v1", "Deployment", "site-cache-web"}, {"v1", "ConfigMap", "site-page"}, {"v1", "Secret", "site-key"},
	} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(of.apiVersion)
		object.SetKind(of.kind)
		env.Must(t, m.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: of.name}, object))
		if object.GetAnnotations()[v1beta1.LastAppliedAnnotation] != "" {
			t.Errorf("%s %s was not taken over: it has KUDO's annotation still", of.kind, of.name)
		}
		if !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Operation == metav1.ManagedFieldsOperationApply && strings.HasPrefix(entry.Manager, "kudo/")
		}) {
			t.Errorf("%s %s was not taken over: its managed fields are %+v", of.kind, of.name, object.GetManagedFields())
		}
	}
	if owners := env.Read(t, m, &v1beta1.Instance{}, ns, "site-cache").OwnerReferences; len(owners) != 1 || owners[0].UID != site.UID {
		t.Errorf("the owners of the child are %+v, want the parent", owners)
	}
})
