package e2e

import (
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
		Eventually(func() string { return try("kudo-local", "status", "--name", instanceName, "--state", state) }).Should(ContainSubstring("node is not ready"))
		local("start", "node/kubelet")
		Eventually(func() error {
			_, err := start("kudo-local", "status", "--name", instanceName, "--state", state)
			return err
		}).Should(Succeed())
		local("kill", "node")
		local("start", "node")
		Eventually(func() string {
			return try("kubectl", "get", "--raw", "/api/v1/namespaces/"+ns+"/services/web/proxy/index.html")
		}).Should(Equal("hello\n"), "the volume keeps its data")
	})
})

// pods is the package of this suite.
var pods = filepath.Join(root, "test", "e2e", "testdata", "pods")

var _ = Describe("The manager in pods", Label("manager"), func() {
	It("is in order: init --verify", func() {
		// The specs before may have killed the leader, or the node.
		Eventually(func() string { return try("kubectl", "kudo", "init", "--verify") }).ShouldNot(ContainSubstring("FAILED"))
		Expect(strings.Fields(kubectl("get", "pods", "-n", "kudo-system", "-o", "jsonpath={.items[*].metadata.name}"))).To(HaveLen(2))
	})

	It("refuses a wrong Instance by its webhook, through the Service", func() {
		ns := namespace()
		install(ns, "p", pods)
		out, err := start("kubectl", "patch", "instance", "p", "-n", ns, "--type=merge", "-p", `{"spec":{"parameters":{"NONE":"1"}}}`)
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("NONE"))
	})

	It("reads the files of a Pipe from a container of its own image", Label("D4"), func() {
		ns := namespace()
		install(ns, "p", pods)
		Expect(kubectl("get", "secret", "p.deploy.main.key.key.key", "-n", ns, "-o", `jsonpath={.data.key\.pem}`)).To(Equal("S0VZCg=="))
	})

	It("says which container made a Job fail", Label("D9"), func() {
		ns := namespace()
		install(ns, "p", pods)
		out, err := start("kubectl", "kudo", "plan", "trigger", "--name", "fail", "--instance", "p", "-n", ns, "--wait")
		Expect(err).To(MatchError("exit status 3"))
		Expect(out).To(MatchRegexp("container upload of pod p-fail-[a-z0-9]+ ended with exit code 3"))
	})

	It("goes on with a plan after the pod of the leader was killed", Serial, func() {
		ns := namespace()
		install(ns, "p", pods)
		kubectl("kudo", "plan", "trigger", "--name", "slow", "--instance", "p", "-n", ns)
		holder := kubectl("get", "lease", "kudo-manager", "-n", "kudo-system", "-o", "jsonpath={.spec.holderIdentity}")
		leader, _, _ := strings.Cut(holder, "_")
		kubectl("delete", "pod", leader, "-n", "kudo-system", "--force", "--grace-period=0")
		kubectl("kudo", "plan", "wait", "--instance", "p", "-n", ns)
		Expect(kubectl("get", "jobs", "-n", ns, "-o", "jsonpath={.items[*].status.succeeded}")).To(Equal("1"), "the Job ran once")
		kubectl("rollout", "status", "deployment/kudo-controller-manager", "-n", "kudo-system", "--timeout", limit.String())
	})
})
