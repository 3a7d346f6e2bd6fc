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
	ctx, ns := context.Background(), namespace(t)
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
