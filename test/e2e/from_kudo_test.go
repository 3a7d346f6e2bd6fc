package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/lifecycle"
)

// create creates an object by a field manager, and reads what the API server has made of it.
func create(object client.Object, manager string) {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(GinkgoT().TempDir(), "object.json")
	Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	Expect(json.Unmarshal([]byte(kubectl("create", "-f", file, "--field-manager", manager, "-o", "json")), object)).To(Succeed())
}

// createFormer creates an Instance, with its status and its objects as KUDO v0.19 leaves them after its plan deploy.
func createFormer(instance *v1beta1.Instance) {
	GinkgoHelper()
	instance.APIVersion, instance.Kind = "kudo.dev/v1beta1", "Instance"
	create(instance, "kubectl-kudo")
	instance.Status = lifecycle.FormerStatus()
	status, err := json.Marshal(map[string]any{"status": instance.Status})
	Expect(err).NotTo(HaveOccurred())
	kubectl("patch", "instance", instance.Name, "-n", instance.Namespace, "--subresource=status", "--type=merge", "--field-manager=manager", "-p", string(status))
	for _, object := range lifecycle.FormerObjects(GinkgoTB(), instance) {
		create(object, "manager")
	}
}

// It runs alone, as kudo is removed for a while: KUDO's Instances are older than kudo.
var _ = It("Pods of an Instance of KUDO run on when kudo is installed and takes it over", Serial, Label("from-kudo"), func() {
	ns := namespace()
	kubectl("create", "serviceaccount", "kudo", "-n", ns)
	kubectl("create", "rolebinding", "kudo", "-n", ns, "--clusterrole=admin", "--serviceaccount="+ns+":kudo")
	kubectl("create", "rolebinding", "kudo-instances", "-n", ns, "--clusterrole=kudo-user", "--serviceaccount="+ns+":kudo")
	kubectl("create", "rolebinding", "kudo-run-as", "-n", ns, "--clusterrole=kudo-run-as", "--serviceaccount=kudo-system:kudo-manager")
	kubectl("kudo", "init", "--remove", "--instances", "keep")
	DeferCleanup(func() { kubectl("kudo", "init", "--wait", "--kudo-image", managerImage, "--manager-replicas", "2") })
	parent, child := lifecycle.FormerVersions(ns)
	for _, ov := range []*v1beta1.OperatorVersion{child, parent} {
		ov.APIVersion, ov.Kind = "kudo.dev/v1beta1", "OperatorVersion"
		create(ov, "kubectl-kudo")
	}
	site := gen.Instance("site", parent, nil)
	createFormer(site)
	createFormer(lifecycle.FormerCacheInstance(site, child))
	pods := func(phase string) string {
		return kubectl("get", "pods", "-n", ns, "--field-selector", "status.phase="+phase, "--sort-by", ".metadata.name", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.startTime} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
	}
	for workload, kind := range map[string]string{"site-web": "deployment", "site-cache-web": "deployment", "site-store": "statefulset"} {
		kubectl("rollout", "status", kind, workload, "-n", ns, "--timeout", limit.String())
	}
	kubectl("wait", "--for=condition=Complete", "job/site-init", "-n", ns, "--timeout", limit.String())
	running, done := pods("Running"), pods("Succeeded")
	Expect(strings.Count(running+done, "\n")).To(Equal(lifecycle.FormerPods))

	kubectl("kudo", "init", "--wait", "--kudo-image", managerImage, "--manager-replicas", "2")
	kubectl("kudo", "update", "--instance", "site", "-n", ns, "-p", "VALUE=b", "--wait")
	for _, name := range []string{"site", "site-cache"} {
		Expect(kubectl("get", "configmap", name+"-notes", "-n", ns, "-o", "jsonpath={.data.key}")).To(Equal("b"), "the plan of %s has run", name)
	}
	Expect(pods("Running")).To(Equal(running))
	Expect(pods("Succeeded")).To(Equal(done))
	Expect(kubectl("get", "deployment", "site-web", "-n", ns, "-o", "jsonpath={.metadata.annotations}")).NotTo(ContainSubstring(v1beta1.LastAppliedAnnotation))
})
