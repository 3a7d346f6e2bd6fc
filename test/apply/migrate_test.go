package apply

import (
	"context"
	"encoding/json"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

const old = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {heritage: kudo, kudo.dev/instance: i, tier: front}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        env: [{name: KEPT, value: a}, {name: GONE, value: b}]
        ports: [{containerPort: 80}]
`

const next = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx
        env: [{name: KEPT, value: a}]
        ports: [{containerPort: 80}]
`

// What another program of KUDO's field manager wrote stays; pods are not restarted by the taking over itself.
var _ = It("What KUDO wrote and the template no longer has leaves the object", Label("migrate", "rule-23"), func() {
	t := GinkgoTB()
	ns, ctx := cluster.NewNamespace(t), context.Background()
	made := &unstructured.Unstructured{}
	env.Must(t, yaml.Unmarshal([]byte(old), &made.Object))
	made.SetNamespace(ns)
	text, err := json.Marshal(made.Object)
	env.Must(t, err)
	made.SetAnnotations(map[string]string{v1beta1.LastAppliedAnnotation: string(text)})
	env.Must(t, cluster.Create(ctx, made, client.FieldOwner("manager")))
	other := &appsv1.Deployment{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "web"}, other))
	patch := client.MergeFrom(other.DeepCopy())
	other.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	other.Annotations["example.com/other"] = "x"
	env.Must(t, cluster.Patch(ctx, other, patch, client.FieldOwner("manager")))

	s := newSide(t, "i")
	wanted := &unstructured.Unstructured{}
	env.Must(t, yaml.Unmarshal([]byte(next), &wanted.Object))
	wanted.SetNamespace(ns)
	env.Must(t, s.apply(wanted).Err())
	now := &appsv1.Deployment{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "web"}, now))
	if env := now.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || env[0].Name != "KEPT" {
		t.Errorf("what left the template is still there: %v", env)
	}
	if now.Labels["tier"] != "" || now.Annotations[v1beta1.LastAppliedAnnotation] != "" {
		t.Errorf("a label that left the template, and KUDO's annotation, are still there: %v %v", now.Labels, now.Annotations)
	}
	if now.Spec.Template.Spec.NodeSelector["disk"] != "ssd" || now.Annotations["example.com/other"] != "x" {
		t.Errorf("what another program wrote was removed: %v %v", now.Spec.Template.Spec.NodeSelector, now.Annotations)
	}
	for _, entry := range now.ManagedFields {
		if entry.Manager == "kudo/test/i" && entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("entry %+v", entry)
		}
	}

	t.Log("the same template as KUDO's changes nothing of the spec: no pod is restarted")
	second := made.DeepCopy()
	second.SetName("same")
	second.SetResourceVersion("")
	second.SetUID("")
	second.SetManagedFields(nil)
	second.Object["metadata"].(map[string]any)["annotations"] = map[string]any{v1beta1.LastAppliedAnnotation: string(text)}
	delete(second.Object, "status")
	env.Must(t, cluster.Create(ctx, second, client.FieldOwner("manager")))
	again := &unstructured.Unstructured{}
	env.Must(t, yaml.Unmarshal([]byte(old), &again.Object))
	again.SetNamespace(ns)
	again.SetName("same")
	before := &appsv1.Deployment{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "same"}, before))
	env.Must(t, s.apply(again).Err())
	now = &appsv1.Deployment{}
	env.Must(t, cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "same"}, now))
	if diff := cmp.Diff(before.Spec, now.Spec); diff != "" {
		t.Error(diff)
	}
})
