package explore

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

var _ = It("The components of an object count instead of its replicas, for the command get, a dry run and quotas", Label("C54", "C64", "components"), func() {
	t := GinkgoTB()
	define(t, kind("Range", "ranges"))
	ns := suite.NewNamespace(t)
	configure(t, config("ranges", group, "Range", `replicaLua: return 99
componentsLua: |
  return {
    {name = 'oven', replicas = 1, replicaRequirements = {resourceRequest = {cpu = '2'}}},
    {name = 'hob', replicas = tonumber(desiredObj.spec.hobs), replicaRequirements = {resourceRequest = {cpu = '250m'}}},
  }`))
	quota := &corev1.ResourceQuota{ObjectMeta: gen.Meta(ns, "team")}
	quota.Spec.Hard = corev1.ResourceList{"requests.cpu": resource.MustParse("1")}
	env.Must(t, suite.Create(ctx, quota))
	env.Eventually(t, "status.used of the ResourceQuota", func() string {
		env.Must(t, suite.Get(ctx, client.ObjectKeyFromObject(quota), quota))
		if len(quota.Status.Used) == 0 {
			return "nothing is counted yet"
		}
		return ""
	})
	i := install(t, operator(ns, [][2]string{{"range", "apiVersion: " + group + "\nkind: Range\nmetadata: {name: range}\nspec: {hobs: '4'}\n"}}), nil)
	complete(t, i, 1)
	env.Contains(t, suite.MustKudo(t, 0, "explore", "run", "-n", ns, "--operation", "InterpretComponent", "--live", "range.explore.example.com/range"),
		"answered by: user (Config/ranges)", "oven", "hob")
	env.Contains(t, suite.MustKudo(t, 0, "get", "instances", "-n", ns, "-o", "wide"), "REPLICAS", " 5 ", "cpu=3")
	const exceeded = "ResourceQuota team: requests.cpu: needed 3, left 1"
	env.Eventually(t, "the warning of the quota", func() string {
		list, last := &corev1.EventList{}, ""
		env.Must(t, suite.List(ctx, list, client.InNamespace(ns)))
		for _, e := range list.Items {
			if e.Reason == v1beta1.EventQuotaWouldExceed && strings.Contains(e.Message, exceeded) {
				return ""
			}
			last = e.Reason + ": " + e.Message
		}
		return fmt.Sprintf("%d events, the last %s", len(list.Items), last)
	})
})
