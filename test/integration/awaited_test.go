package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// workload is a template with two replicas, and with none in a step "step-0" of the plan stop. Its pods do not end before a finalizer is
// removed.
func workload(kind, more string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: "{{ .Name }}"}
spec:
  replicas: {{ if and (eq .PlanName "stop") (eq .StepName "step-0") }}0{{ else }}2{{ end }}
  selector: {matchLabels: {app: "{{ .Name }}"}}%s
  template:
    metadata:
      labels: {app: "{{ .Name }}"}
      finalizers: [example.org/hold]
    spec: {containers: [{name: c, image: c}]}
`, kind, more)
}

// says is a predicate: the message of the Instance's status holds a text.
func says(text string) func(*v1beta1.Instance) bool {
	return func(i *v1beta1.Instance) bool {
		return i != nil && strings.Contains(i.Status.AggregatedStatus.Message, text)
	}
}

const job = `apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Name }}"}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}
`

var _ = DescribeTable("A step that scales to zero awaits the end of the pods, since a Job of the next step may use their volumes",
	func(ctx context.Context, template string) {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "store", gen.Template("w.yaml", template), gen.Template("j.yaml", job), gen.Apply("w", "w.yaml"), gen.Apply("j", "j.yaml"),
			gen.Serial("deploy", "w"), gen.Serial("stop", "w", "j"), gen.Param("STOP", "", "stop"))
		status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
		release := func(n int) {
			pods := &corev1.PodList{}
			env.Must(t, cluster.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels{"app": "i"}))
			if len(pods.Items) < n {
				t.Fatalf("there are %d pods, want %d", len(pods.Items), n)
			}
			for i := range pods.Items[:n] {
				patch := client.MergeFrom(pods.Items[i].DeepCopy())
				pods.Items[i].Finalizers = slices.DeleteFunc(pods.Items[i].Finalizers, func(f string) bool { return f == "example.org/hold" })
				env.Must(t, cluster.Patch(ctx, &pods.Items[i], patch))
			}
		}
		env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"STOP": "yes"} }))
		if strings.Contains(template, "kind: Deployment") && cluster.Minor(t) < 35 {
			status(t, await(t, ns, "i", env.PlanEnded("stop", 1)), "stop", v1beta1.Complete)
			return
		}
		for left := 2; left > 0; left-- {
			await(t, ns, "i", says(fmt.Sprintf("%d old replicas still running", left)))
			if err := cluster.Get(ctx, types.NamespacedName{Namespace: ns, Name: "i"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
				t.Fatalf("the Job of the next step is there beside %d pods (%v)", left, err)
			}
			release(1)
		}
		status(t, await(t, ns, "i", env.PlanEnded("stop", 1)), "stop", v1beta1.Complete)
		get(t, &batchv1.Job{}, ns, "i")
	},
	Entry("of a StatefulSet", Label("scaled-down", "G3"), workload("StatefulSet", "\n  podManagementPolicy: Parallel")),
	Entry("of a Deployment", Label("scaled-down", "G3"), workload("Deployment", "")),
)

var _ = It("A bound claim that asks for more is awaited until its volume has grown", Label("claim-growth", "G4"), func(ctx context.Context) {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: ns}, Provisioner: "example.org/none", AllowVolumeExpansion: ptr.To(true)}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class.Name,
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/none"}}}}
	for _, o := range []client.Object{class, volume} {
		env.Must(t, cluster.Create(ctx, o))
		DeferCleanup(func(ctx context.Context) { env.Must(t, client.IgnoreNotFound(cluster.Delete(ctx, o))) })
	}
	claim := fmt.Sprintf(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .Name }}"}
spec: {accessModes: [ReadWriteOnce], storageClassName: %s, resources: {requests: {storage: "{{ .Params.SIZE }}"}}}
`, ns)
	ov := gen.Version(ns, "store", gen.Template("c.yaml", claim), gen.Apply("c", "c.yaml"), gen.Serial("deploy", "c"), gen.Param("SIZE", "1Gi", ""))
	status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
	env.Eventually(t, "the claim is bound", func() string {
		if phase := get(t, &corev1.PersistentVolumeClaim{}, ns, "i").Status.Phase; phase != corev1.ClaimBound {
			return string(phase)
		}
		return ""
	})
	env.Must(t, edit(t, ns, "i", func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"SIZE": "2Gi"} }))
	await(t, ns, "i", says("its volume grows from 1Gi to 2Gi"))
	bound := get(t, &corev1.PersistentVolumeClaim{}, ns, "i")
	patch := client.MergeFrom(bound.DeepCopy())
	bound.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")} // as a resizer does
	env.Must(t, cluster.Status().Patch(ctx, bound, patch))
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 2)), "deploy", v1beta1.Complete)
})
