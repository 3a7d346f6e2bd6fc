package e2e

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/corpus"
)

// cowServer answers in place of the server that cowsay asks.
const cowServer = `apiVersion: v1
kind: ConfigMap
metadata: {name: cow}
data: {say: "<pre>moo, said a cow of the test</pre>"}
---
apiVersion: v1
kind: Pod
metadata: {name: cow}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: httpd
    image: busybox:1
    args: [-c, "busybox httpd -f -p 80 -h /www"]
    readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
    volumeMounts: [{name: www, mountPath: /www}]
  volumes: [{name: www, configMap: {name: cow}}]
`

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

	// The image has no tag, so that a node asks a registry for it each time, and the server is one of the internet: both are replaced.
	It("run cowsay, whose page is that of a server of ours", func() {
		folder := filepath.Join(corpus.Require(GinkgoTB()), "packages", "cowsay", "operator")
		ns := namespace()
		apply(ns, cowServer)
		kubectl("wait", "--for=condition=Ready", "pod/cow", "-n", ns, "--timeout", limit.String())
		copied := GinkgoT().TempDir()
		Expect(os.CopyFS(copied, os.DirFS(folder))).To(Succeed())
		file := filepath.Join(copied, "templates", "pipe-pod.yaml")
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		address := kubectl("get", "pod", "cow", "-n", ns, "-o", "jsonpath={.status.podIP}")
		edited := strings.NewReplacer("cowsay.morecode.org", address, "image: busybox\n", "image: busybox:1\n").Replace(string(text))
		Expect(os.WriteFile(file, []byte(edited), 0o600)).To(Succeed())
		install(ns, "cow", copied)
		kubectl("rollout", "status", "deployment/cow-deployment", "-n", ns, "--timeout", limit.String())
		pod := strings.TrimSpace(kubectl("get", "pods", "-n", ns, "-l", "app=nginx", "-o", "jsonpath={.items[0].metadata.name}"))
		Expect(kubectl("exec", pod, "-n", ns, "--", "cat", "/usr/share/nginx/html/index.html")).To(ContainSubstring("a cow of the test"))
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
