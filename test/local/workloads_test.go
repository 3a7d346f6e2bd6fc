package local

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/env"
)

func parse[T any](t testing.TB, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func must[T any](object T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
}

// makeNamespace makes a namespace and waits until pods can be made in it.
func makeNamespace(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(client.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}))(t)
	env.Eventually(t, "the default account of a namespace", func() string {
		if _, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
}

const deployment = `
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: prepare, image: busybox, command: [sh, -c, echo hi]}]
      containers: [{name: web, image: nginx, readinessProbe: {httpGet: {port: 80}}}]`

func checkDeployment(t testing.TB, client kubernetes.Interface, ns string) {
	must(client.AppsV1().Deployments(ns).Create(t.Context(), parse[appsv1.Deployment](t, deployment), metav1.CreateOptions{}))(t)
	env.Eventually(t, "an available Deployment", func() string {
		d, err := client.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if d.Status.AvailableReplicas != 3 {
			return fmt.Sprintf("the Deployment has %d of 3 replicas", d.Status.AvailableReplicas)
		}
		return ""
	})
}

const statefulSet = `
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}}
      containers: [{name: db, image: db, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: there-is-no-such-class, accessModes: [ReadWriteOnce], resources: {requests: {storage: 2Gi}}}`

func checkStatefulSet(t testing.TB, client kubernetes.Interface, ns string) {
	must(client.AppsV1().StatefulSets(ns).Create(t.Context(), parse[appsv1.StatefulSet](t, statefulSet), metav1.CreateOptions{}))(t)
	env.Eventually(t, "a ready StatefulSet", func() string {
		s, err := client.AppsV1().StatefulSets(ns).Get(t.Context(), "db", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if s.Status.ReadyReplicas != 2 {
			return fmt.Sprintf("the StatefulSet has %d of 2 replicas", s.Status.ReadyReplicas)
		}
		return ""
	})
	claim := must(client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "data-db-0", metav1.GetOptions{}))(t)
	if got := claim.Status.Capacity.Storage().String(); claim.Status.Phase != corev1.ClaimBound || got != "2Gi" {
		t.Errorf("the claim is %s with %s, want Bound with 2Gi", claim.Status.Phase, got)
	}
}

// job makes a Job of one container with a command.
func job(name, policy, extra, command string) string {
	return fmt.Sprintf("metadata: {name: %s}\nspec: {%s template: {spec: {restartPolicy: %s, containers: [{name: c, image: busybox%s}]}}}", name, extra, policy, command)
}

func checkJobs(t testing.TB, client kubernetes.Interface, ns string) {
	tests := []struct {
		name, policy, extra, command string
		want                         batchv1.JobConditionType
		reason                       string
	}{
		{"completes", "Never", "", "", batchv1.JobComplete, ""},
		{"sleeps", "Never", "", ", command: [sleep, '2']", batchv1.JobComplete, ""},
		{"fails", "Never", "backoffLimit: 2,", ", command: ['false']", batchv1.JobFailed, "BackoffLimitExceeded"},
		{"fails-on", "OnFailure", "backoffLimit: 2,", ", command: [/bin/sh, -c, 'false']", batchv1.JobFailed, "BackoffLimitExceeded"},
		{"late", "Never", "activeDeadlineSeconds: 3,", ", command: [sh, -c, 'sleep 1000']", batchv1.JobFailed, "DeadlineExceeded"},
	}
	for _, tc := range tests {
		object := parse[batchv1.Job](t, job(tc.name, tc.policy, tc.extra, tc.command))
		must(client.BatchV1().Jobs(ns).Create(t.Context(), object, metav1.CreateOptions{}))(t)
	}
	for _, tc := range tests {
		env.Eventually(t, "the end of Job "+tc.name, func() string {
			j, err := client.BatchV1().Jobs(ns).Get(t.Context(), tc.name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range j.Status.Conditions {
				if c.Type == tc.want && c.Status == corev1.ConditionTrue && (tc.reason == "" || c.Reason == tc.reason) {
					return ""
				}
			}
			return fmt.Sprintf("Job %s is not %s %s: %+v", tc.name, tc.want, tc.reason, j.Status)
		})
	}
}

func checkBadImage(t testing.TB, client kubernetes.Interface, ns string) {
	object := parse[corev1.Pod](t, "metadata: {name: bad}\nspec: {containers: [{name: c, image: 'registry.example/does-not-exist:1'}]}")
	must(client.CoreV1().Pods(ns).Create(t.Context(), object, metav1.CreateOptions{}))(t)
	env.Eventually(t, "an image that cannot be pulled", func() string {
		p, err := client.CoreV1().Pods(ns).Get(t.Context(), "bad", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		s := p.Status.ContainerStatuses
		if p.Status.Phase != corev1.PodPending || len(s) != 1 || s[0].State.Waiting == nil || s[0].State.Waiting.Reason != "ImagePullBackOff" {
			return fmt.Sprintf("the pod with a bad image is %s: %+v", p.Status.Phase, s)
		}
		return ""
	})
}

// checkNamespaceEnds deletes the namespace with all that the other checks have
// made, and the volumes with it.
func checkNamespaceEnds(t testing.TB, client kubernetes.Interface, ns string) {
	if err := client.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "the end of a namespace", func() string {
		n, err := client.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("the namespace is still there: %+v", n.Status.Conditions)
	})
	env.Eventually(t, "the end of its volumes", func() string {
		volumes, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		if len(volumes.Items) > 0 {
			return fmt.Sprintf("%d volumes are left of claims that were deleted", len(volumes.Items))
		}
		return ""
	})
}
