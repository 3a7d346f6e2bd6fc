package e2e

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/corpus"
)

// The others of the corpus want software that Debian has not, or APIs that today's Kubernetes does not serve.
var _ = Describe("Packages of others", Label("corpus"), func() {
	It("keep the data of mysql through backup, loss and restore", func() {
		folder := filepath.Join(corpus.Require(GinkgoTB()), "packages", "mysql", "operator")
		ns := namespace()
		install(ns, "db", folder, "-p", "PASSWORD=secret", "-p", "STORAGE=1Gi")
		query := func(sql string) string {
			return kubectl("exec", "deployment/db", "-n", ns, "--", "mysql", "-psecret", "-h", "127.0.0.1", "-Ne", sql, "kudo")
		}
		content := func() string { return query("SELECT count(*), md5(group_concat(name ORDER BY id)) FROM example") }
		query("INSERT INTO example (name) SELECT concat('row ', seq) FROM (SELECT 1 AS seq UNION SELECT 2 UNION SELECT 3) AS numbers")
		before := content()
		Expect(before).To(HavePrefix("3\t"))
		trigger := func(plan string) {
			GinkgoHelper()
			kubectl("kudo", "plan", "trigger", "--name", plan, "--instance", "db", "-n", ns, "--wait")
		}
		trigger("backup")
		query("DROP TABLE example")
		trigger("restore")
		Expect(content()).To(Equal(before))

		kubectl("delete", "pods", "--all", "-n", ns)
		kubectl("rollout", "status", "deployment/db", "-n", ns, "--timeout", limit.String())
		Expect(content()).To(Equal(before), "the volume has it")
	})

	It("run the first operator of KUDO's documentation, and more of it", func() {
		folder := filepath.Join(corpus.Require(GinkgoTB()), "packages", "first-operator", "operator")
		ns := namespace()
		install(ns, "web", folder)
		kubectl("kudo", "update", "--instance", "web", "-n", ns, "-p", "replicas=3", "--wait")
		Expect(kubectl("get", "deployment", "nginx-deployment", "-n", ns, "-o", "jsonpath={.status.readyReplicas}")).To(Equal("3"))
		pod := kubectl("get", "pods", "-n", ns, "-o", "jsonpath={.items[0].metadata.name}")
		Expect(kubectl("get", "--raw", "/api/v1/namespaces/"+ns+"/pods/"+pod+":80/proxy/")).To(ContainSubstring("nginx"))
	})
})
