package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// pods is the package of this suite.
var pods = filepath.Join(root, "test", "e2e", "testdata", "pods")

var _ = Describe("The manager in pods", Label("manager"), func() {
	It("is in order: init --verify", func() {
		// The specs before may have killed the leader, or the node.
		Eventually(func() string { return try("kubectl", "kudo", "init", "--verify") }).ShouldNot(ContainSubstring("FAILED"), "init --verify finds nothing wrong")
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

	It("says which container made a Job fail, and with which last words", Label("D9", "P22"), func() {
		ns := namespace()
		install(ns, "p", pods)
		out, err := start("kubectl", "kudo", "plan", "trigger", "--name", "fail", "--instance", "p", "-n", ns, "--wait")
		Expect(err).To(MatchError("exit status 3"))
		Expect(out).To(MatchRegexp("container upload of pod p-fail-[a-z0-9]+ ended with exit code 3"))
		Expect(kubectl("kudo", "plan", "status", "--instance", "p", "-n", ns)).
			To(MatchRegexp(`\n  Pod p-fail-[a-z0-9]+, container upload: exit code 3.*\n  \| no disk\n  What to do: correct what made container upload end with exit code 3, then kubectl kudo plan retry --instance p -n ` + ns +
				`   \(all of the log: kubectl logs p-fail-[a-z0-9]+ -c upload -n ` + ns + `\)\n$`))
		Expect(out).To(MatchRegexp(`\n  \| no disk\n  What to do: `))
	})

	It("says which container made a Job of an install plan fail, and with which last words", func() {
		ns := namespace()
		DeferCleanup(func() {
			kubectl("delete", "instances", "--all", "-n", ns)
			kubectl("kudo", "uninstall-version", "migration-1.0.0-0.1.0", "-n", ns, "--force", "--wait")
		})
		out, err := start("kubectl", "kudo", "install", filepath.Join(root, "test", "e2e", "testdata", "migration"), "--instance", "m", "-n", ns, "--create-service-account", "-y", "--wait", "--wait-time", "60")
		Expect(err).To(HaveOccurred(), out)
		Expect(kubectl("kudo", "plan", "status", "--operator-version", "migration-1.0.0-0.1.0", "-n", ns)).
			To(MatchRegexp(`\n  Pod migrate-[a-z0-9]+, container migrate: exit code 4.*\n  \| no schema\n  What to do: `))
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

	It("collects the logs of failed pods, and its own", Label("diagnostics"), func() {
		ns := namespace()
		install(ns, "p", pods)
		_, err := start("kubectl", "kudo", "plan", "trigger", "--name", "fail", "--instance", "p", "-n", ns, "--wait")
		Expect(err).To(HaveOccurred())
		folder := filepath.Join(GinkgoT().TempDir(), "diag")
		kubectl("kudo", "diagnostics", "collect", "--instance", "p", "-n", ns, "--output-directory", folder)
		logs := map[string]string{}
		Expect(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".log") {
				return err
			}
			data, err := os.ReadFile(path)
			logs[strings.TrimPrefix(path, folder)] = string(data)
			return err
		})).To(Succeed())
		Expect(logs).To(ContainElement(HaveSuffix("no disk\n")))
		Expect(logs).To(HaveKeyWithValue(ContainSubstring("kudo-controller-manager"), Not(BeEmpty())))
	})

	It("is replaced by another version amid a plan, and refuses wrong Instances all the time", Serial, Label("upgrade"), func() {
		ns := namespace()
		install(ns, "p", pods)
		kubectl("kudo", "plan", "trigger", "--name", "slow", "--instance", "p", "-n", ns)
		unrefused := watchWebhook(ns)
		kubectl("kudo", "init", "--upgrade", "--wait", "--kudo-image", nextManagerImage)
		kubectl("rollout", "status", "deployment/kudo-controller-manager", "-n", "kudo-system", "--timeout", limit.String())
		Expect(unrefused()).To(BeEmpty(), "requests that the webhook did not refuse")
		kubectl("kudo", "plan", "wait", "--instance", "p", "-n", ns)
		Expect(kubectl("get", "jobs", "-n", ns, "-o", "jsonpath={.items[*].status.succeeded}")).To(Equal("1"), "the Job ran once")
		Expect(kubectl("get", "deployment", "kudo-controller-manager", "-n", "kudo-system", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}")).
			To(Equal("2 " + nextManagerImage))
		kubectl("kudo", "plan", "trigger", "--name", "deploy", "--instance", "p", "-n", ns, "--wait")
		kubectl("kudo", "init", "--upgrade", "--wait", "--kudo-image", managerImage)
		Eventually(func() string { return try("kubectl", "kudo", "init", "--verify") }).ShouldNot(ContainSubstring("FAILED"), "init --verify finds nothing wrong")
	})

	It("is removed and installed again, and Instances keep what they have", Serial, Label("remove"), func() {
		ns := namespace()
		install(ns, "p", pods)
		uid := func() string {
			return kubectl("get", "configmap", "p-use", "-n", ns, "-o", "jsonpath={.metadata.uid}")
		}
		before := uid()
		out, err := start("kubectl", "kudo", "init", "--remove")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("--instances"))
		kubectl("kudo", "init", "--remove", "--instances", "keep")
		Expect(try("kubectl", "get", "pods", "-n", "kudo-system", "-o", "name")).To(BeEmpty())
		Expect(uid()).To(Equal(before))
		kubectl("kudo", "init", "--wait", "--kudo-image", managerImage, "--manager-replicas", "2")
		kubectl("kudo", "plan", "trigger", "--name", "slow", "--instance", "p", "-n", ns, "--wait")
		Expect(uid()).To(Equal(before))
	})
})

// watchWebhook tries to write an Instance with a parameter NONE, which its OperatorVersion does not have, again and again. The function
// that it returns ends this, and returns the answers that do not name the parameter: the webhook let the write in, or was not there.
func watchWebhook(ns string) func() []string {
	end, ended := make(chan struct{}), make(chan []string)
	go func() {
		defer GinkgoRecover()
		var wrong []string
		for {
			out, _ := start("kubectl", "patch", "instance", "p", "-n", ns, "--type=merge", "--dry-run=server", "-p", `{"spec":{"parameters":{"NONE":"1"}}}`)
			if !strings.Contains(out, "NONE") {
				wrong = append(wrong, time.Now().Format(time.StampMilli)+" "+out)
			}
			select {
			case <-end:
				ended <- wrong
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() []string {
		close(end)
		return <-ended
	}
}

var _ = Describe("kubectl kudo test", Label("testsuite"), func() {
	It("runs suites on real pods of an instance of its own", func() {
		defer nodeLock()()
		images := filepath.Join(root, "dist", "images")
		out, err := start("kubectl", "kudo", "test", filepath.Join(root, "test", "e2e", "testdata", "suite"), "--local", "--nodes", "real",
			"--load", filepath.Join(images, "manager.tar"), "--load", filepath.Join(images, "busybox.tar"), "--artifacts-dir", GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("1 passed, 0 failed"))
	})
})
