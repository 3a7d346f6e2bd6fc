package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("A plan that needs more than a ResourceQuota has left says so once, with numbers, and runs all the same", Label("C64", "quota"), func() {
	t := GinkgoTB()
	ctx, ns := context.Background(), cluster.NewNamespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: gen.Meta(ns, "team")}
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("3"), "requests.cpu": resource.MustParse("1")}
	env.Must(t, cluster.Create(ctx, quota))
	used(t, ns, "0")
	pack := func(version string) string {
		return write(t, map[string]string{
			"operator.yaml": strings.Replace(operatorYAML, "0.1.0", version, 1), "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters:\n- {name: REPLICAS, default: '2'}\n",
			"templates/app.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: main, image: nginx, resources: {requests: {cpu: 250m}}}]
`,
		})
	}
	kudo(t, 0, "install", pack("0.1.0"), "--instance", "i", "-n", ns, "--wait")
	used(t, ns, "2")
	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "REPLICAS=3", "--wait")
	used(t, ns, "3")
	if n, last := quotaWarnings(t, ns); n > 0 {
		t.Fatalf("what is there already was counted twice: %s", last)
	}

	kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "REPLICAS=5")
	hasEvent(t, ns, v1beta1.EventQuotaWouldExceed+": Plan deploy was started, and needs more than is left in namespace "+ns+
		": ResourceQuota team: pods: needed 2, left 0, ResourceQuota team: requests.cpu: needed 500m, left 250m. ")
	await(t, ns, "i", func(i *v1beta1.Instance) bool { // it was written all the same, and waits for its pods
		return i != nil && strings.Contains(i.Status.PlanStatus[v1beta1.DeployPlan].Message, "Deployment "+ns+"/app")
	})
	contains(t, kudo(t, 0, "upgrade", pack("0.2.0"), "--instance", "i", "-n", ns, "--dry-run", "-p", "REPLICAS=7"),
		"plan deploy would need more than is left in namespace "+ns+": ResourceQuota team: pods: needed 2, left 0, ResourceQuota team: requests.cpu: needed 500m, left 250m. ")

	before := client.MergeFrom(quota.DeepCopy())
	quota.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("10"), "requests.cpu": resource.MustParse("4")}
	env.Must(t, cluster.Patch(ctx, quota, before))
	status(t, await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 3)), v1beta1.DeployPlan, v1beta1.Complete)
	used(t, ns, "5")
	if out := kudo(t, 0, "upgrade", pack("0.2.0"), "--instance", "i", "-n", ns, "--dry-run", "-p", "REPLICAS=7"); strings.Contains(out, "quota") {
		t.Errorf("it fits now:\n%s", out)
	}
	if n, last := quotaWarnings(t, ns); n != 1 {
		t.Errorf("%d warnings of one run: %s", n, last)
	}
})

var _ = It("A plan is held against quotas of limits, of storage by class, and of scopes", Label("C64", "quota-scopes"), func() {
	t := GinkgoTB()
	ctx, ns := context.Background(), cluster.NewNamespace(t)
	quota := func(name, hard string, scopes ...corev1.ResourceQuotaScope) {
		q := &corev1.ResourceQuota{ObjectMeta: gen.Meta(ns, name), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}, Scopes: scopes}}
		for _, pair := range strings.Fields(hard) {
			key, quantity, _ := strings.Cut(pair, "=")
			q.Spec.Hard[corev1.ResourceName(key)] = resource.MustParse(quantity)
		}
		env.Must(t, cluster.Create(ctx, q))
		env.Eventually(t, "status.used of ResourceQuota "+name, func() string {
			if counted := get(t, &corev1.ResourceQuota{}, ns, name).Status.Used; len(counted) != len(q.Spec.Hard) {
				return fmt.Sprint(counted)
			}
			return ""
		})
	}
	quota("limits", "limits.cpu=1 limits.memory=1Gi")
	quota("claims", "persistentvolumeclaims=1 requests.storage=1Gi gold.storageclass.storage.k8s.io/requests.storage=1Gi")
	quota("ending", "pods=1", corev1.ResourceQuotaScopeTerminating)
	quota("lasting", "pods=1", corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeNotBestEffort)
	quota("best", "pods=1", corev1.ResourceQuotaScopeBestEffort)
	pack := write(t, map[string]string{
		"operator.yaml": operatorYAML, "params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/app.yaml": `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: app}
spec:
  replicas: 2
  serviceName: app
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers: [{name: main, image: nginx, resources: {limits: {cpu: 600m, memory: 256Mi}}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: gold, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`,
	})
	kudo(t, 0, "install", pack, "--instance", "i", "-n", ns)
	hasEvent(t, ns, v1beta1.EventQuotaWouldExceed+": Plan deploy was started, and needs more than is left in namespace "+ns+
		": ResourceQuota claims: gold.storageclass.storage.k8s.io/requests.storage: needed 2Gi, left 1Gi, ResourceQuota claims: persistentvolumeclaims: needed 2, left 1, "+
		"ResourceQuota claims: requests.storage: needed 2Gi, left 1Gi, ResourceQuota lasting: pods: needed 2, left 1, ResourceQuota limits: limits.cpu: needed 1200m, left 1. ")
})

// used waits until the controller of quotas has counted the pods of a namespace.
func used(t testing.TB, ns, pods string) {
	t.Helper()
	env.Eventually(t, pods+" pods in status.used of ResourceQuota "+ns+"/team", func() string {
		counted, has := get(t, &corev1.ResourceQuota{}, ns, "team").Status.Used[corev1.ResourcePods]
		if text := counted.String(); !has || text != pods {
			return fmt.Sprintf("%s, counted: %v", text, has)
		}
		return ""
	})
}

// quotaWarnings counts how often the event was recorded, and returns the last message.
func quotaWarnings(t testing.TB, ns string) (times int32, last string) {
	t.Helper()
	list := &corev1.EventList{}
	env.Must(t, cluster.List(context.Background(), list, client.InNamespace(ns)))
	for _, e := range list.Items {
		if e.Reason == v1beta1.EventQuotaWouldExceed {
			times, last = times+e.Count, e.Message
		}
	}
	return times, last
}
