package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const web = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {runAsUser: 999, fsGroup: 999}
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: busybox:1
        args: [-c, "echo started; echo hello > /data/index.html; busybox httpd -f -p 8080 -h /data"]
        readinessProbe: {httpGet: {path: /index.html, port: 8080}, periodSeconds: 1}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

var _ = Describe("A real node", Label("node"), func() {
	It("runs pods with volumes, Services, DNS, logs and exec", func() {
		ns := namespace()
		apply(ns, web)
		kubectl("rollout", "status", "deployment/web", "-n", ns, "--timeout", limit.String())
		Expect(kubectl("logs", "deployment/web", "-n", ns)).To(Equal("started\n"))
		Expect(kubectl("get", "--raw", "/api/v1/namespaces/"+ns+"/services/web/proxy/index.html")).To(Equal("hello\n"))
		Eventually(func() string {
			return try("kubectl", "exec", "deployment/web", "-n", ns, "--", "sh", "-c", "printf 'GET /index.html HTTP/1.0\\r\\n\\r\\n' | busybox nc web."+ns+".svc.cluster.local 80")
		}).Should(HaveSuffix("hello\n"), "by the name of the Service")
		_, err := start("kubectl", "exec", "deployment/web", "-n", ns, "--", "sh", "-c", "exit 7")
		Expect(err).To(MatchError("exit status 7"))
		Expect(kubectl("exec", "deployment/web", "-n", ns, "--", "sh", "-c", "busybox stat -c %u:%g /data/index.html")).To(Equal("999:999\n"))
	})

	It("goes on after its kubelet, or all of it, was killed", Serial, func() {
		ns := namespace()
		apply(ns, web)
		kubectl("rollout", "status", "deployment/web", "-n", ns, "--timeout", limit.String())
		local("kill", "node/kubelet")
		Eventually(func() string { return try("kudo-local", "status", "--name", instanceName, "--state", state) }).Should(ContainSubstring("node is not ready"), "the status without the kubelet")
		local("start", "node/kubelet")
		Eventually(func() error {
			_, err := start("kudo-local", "status", "--name", instanceName, "--state", state)
			return err
		}).Should(Succeed(), "the node is ready again")
		local("kill", "node")
		local("start", "node")
		Eventually(func() string {
			return try("kubectl", "get", "--raw", "/api/v1/namespaces/"+ns+"/services/web/proxy/index.html")
		}).Should(Equal("hello\n"), "the volume keeps its data")
	})

	// One process runs these, while others run the rest.
	Describe("that dies", Ordered, ContinueOnFailure, Label("crash"), func() {
		DescribeTable("leaves nothing behind, and disturbs no other one, after the death of", func(part string) {
			defer nodeLock()()
			state := GinkgoT().TempDir()
			second := func(args ...string) string {
				return command("kudo-local", append(args, "--name", instanceName, "--state", state)...)
			}
			second("up", "--nodes", "real")
			second("load", filepath.Join(root, "dist", "images", "busybox.tar"))
			config := strings.TrimSpace(second("kubeconfig"))
			objects := filepath.Join(GinkgoT().TempDir(), "web.yaml")
			Expect(os.WriteFile(objects, []byte(web), 0o600)).To(Succeed())
			kubectl("--kubeconfig", config, "apply", "-f", objects)
			kubectl("--kubeconfig", config, "rollout", "status", "deployment/web", "--timeout", limit.String())
			second("kill", part)
			takeDown(state)
			Expect(kubectl("get", "nodes", "--no-headers")).To(MatchRegexp(`^node-1 +Ready `))
		}, parts())

		It("leaves nothing behind after kudo-local was killed while it started", func() {
			defer nodeLock()()
			state := GinkgoT().TempDir()
			up := exec.Command(filepath.Join(root, "bin", "kudo-local"), "up", "--nodes", "real", "--name", instanceName, "--state", state)
			Expect(up.Start()).To(Succeed())
			Eventually(func() error {
				_, err := os.Stat(filepath.Join(state, instanceName, "node", "run", "containerd.sock"))
				return err
			}).Should(Succeed(), "containerd runs")
			Expect(up.Process.Kill()).To(Succeed())
			_ = up.Wait()
			takeDown(state)
		})
	})
})

// parts are what a control plane with a real node consists of.
func parts() []TableEntry {
	var out []TableEntry
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "node", "node/containerd", "node/kubelet", "node/kube-proxy", "node/dns"} {
		out = append(out, Entry(part, part))
	}
	return out
}
