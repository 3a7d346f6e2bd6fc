package e2e

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The catalog", Label("catalog"), func() {
	// These suites expect that their install plans create what they share: no other spec may have installed it.
	It("passes the suites of its packages that share objects", Serial, func() {
		DeferCleanup(func() {
			try("kubectl", "delete", "namespaces", "imageswitch-other", "mariadb-other", "noticeboard-other", "--ignore-not-found")
		})
		passSuites("etcd", "etcd-definition", "imageswitch", "mariadb", "noticeboard", "rabbitmq", "redis")
	})

	for _, name := range []string{"guestbook", "hello", "postgres", "printshop"} {
		It("passes the suites of "+name, Label(name), func() { passSuites(name) })
	}

	It("serves the page of hello, and its next one after an update", Label("hello"), func() {
		ns := namespace()
		install(ns, "web", filepath.Join(catalog, "hello", "operator"), "-p", "MESSAGE=first <b>")
		page := func() string { return kubectl("get", "--raw", "/api/v1/namespaces/"+ns+"/services/web:http/proxy/") }
		Expect(page()).To(ContainSubstring("<h1>first &lt;b&gt;</h1>"))
		kubectl("kudo", "update", "--instance", "web", "-n", ns, "-p", "MESSAGE=second", "--wait")
		Expect(page()).To(ContainSubstring("<h1>second</h1>"))
	})

	It("keeps what was written into the guestbook", Label("guestbook"), func() {
		ns := namespace()
		install(ns, "book", filepath.Join(catalog, "guestbook", "operator"))
		page := func(query string) string {
			return kubectl("get", "--raw", "/api/v1/namespaces/"+ns+"/services/book:http/proxy/guestbook.php?"+query)
		}
		page("cmd=set&key=messages&value=hello")
		Eventually(page).WithArguments("cmd=get&key=messages").Should(ContainSubstring(`"hello"`), "a follower has it")
		kubectl("kudo", "upgrade", nextVersion("guestbook"), "--instance", "book", "-n", ns, "--wait")
		kubectl("delete", "pods", "-n", ns, "--all")
		Eventually(func() string {
			return try("kubectl", "get", "--raw", "/api/v1/namespaces/"+ns+"/services/book:http/proxy/guestbook.php?cmd=get&key=messages")
		}).Should(ContainSubstring(`"hello"`), "the volume has it")
	})

	It("shows notices on the noticeboard", Label("noticeboard"), func() {
		ns := namespace()
		install(ns, "board", filepath.Join(catalog, "noticeboard", "operator"))
		DeferCleanup(func() {
			kubectl("delete", "instances,notices.noticeboard.example.com", "--all", "-n", ns)
			kubectl("kudo", "uninstall-version", "noticeboard-1.27.0-1.0.0", "-n", ns, "--force", "--wait")
		})
		apply(ns, "apiVersion: noticeboard.example.com/v1\nkind: Notice\nmetadata: {name: one}\nspec: {text: closed on Monday}\n")
		Eventually(func() string {
			return try("kubectl", "get", "--raw", "/api/v1/namespaces/"+ns+"/services/board:http/proxy/index.txt")
		}).Should(Equal("closed on Monday\n"), "the board shows the notice")
	})

	It("keeps what was written into etcd when its members die, and when it grows", Label("etcd-definition"), func() {
		ns := namespace()
		DeferCleanup(func() {
			kubectl("delete", "instances", "--all", "-n", ns)
			// All versions: what one of them held until the end of its namespace would go under a spec that uses the same.
			for _, name := range strings.Fields(kubectl("get", "operatorversions", "-n", ns, "-o", "name")) {
				kubectl("kudo", "uninstall-version", path.Base(name), "-n", ns, "--force", "--wait")
			}
		})
		install(ns, "db", filepath.Join(catalog, "etcd-definition", "operator"))
		etcdctl := func(member string, args ...string) func() string {
			return func() string {
				return try("kubectl", append([]string{"exec", "db-" + member, "-n", ns, "--", "env", "ETCDCTL_API=3", "etcdctl"}, args...)...)
			}
		}
		Eventually(etcdctl("2", "put", "a", "one")).Should(Equal("OK\n"), "a member takes a value")
		kubectl("delete", "pods", "-n", ns, "--all", "--grace-period=0", "--force")
		Eventually(etcdctl("0", "get", "a")).Should(Equal("a\none\n"), "the volumes have it")
		change(ns, "SIZE=4")
		Eventually(etcdctl("3", "get", "a")).Should(Equal("a\none\n"), "the new member has it")
		kubectl("kudo", "upgrade", nextVersion("etcd-definition"), "--instance", "db", "-n", ns, "--wait")
		Expect(etcdctl("1", "get", "a")()).To(Equal("a\none\n"))
	})

	It("has the webhook of imageswitch change the images of pods", Label("imageswitch"), func() {
		kubectl("label", "node", "--all", "hardware=gpu", "--overwrite")
		DeferCleanup(func() { kubectl("label", "node", "--all", "hardware-") })
		ns := namespace()
		install(ns, "app", filepath.Join(catalog, "imageswitch", "operator"))
		DeferCleanup(func() {
			kubectl("delete", "instances", "--all", "-n", ns)
			kubectl("kudo", "uninstall-version", "imageswitch-1.0.0-1.0.0", "-n", ns, "--force", "--wait")
		})
		Eventually(func() string {
			return try("kubectl", "get", "mutatingwebhookconfiguration", "imageswitch", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}")
		}).ShouldNot(BeEmpty(), "the webhook publishes its certificate")
		kubectl("kudo", "update", "--instance", "app", "-n", ns, "-p", "HARDWARE=gpu", "--wait")
		Expect(strings.Fields(kubectl("get", "pods", "-n", ns, "--field-selector=status.phase=Running", "-o", "jsonpath={.items[*].spec.containers[0].image}"))).
			To(ContainElement("docker.io/library/nginx:1.27-otel"))
	})
})

// catalog is the folder of the catalog.
var catalog = filepath.Join(root, "operators", "catalog")

// passSuites runs the suites of packages, some at a time.
func passSuites(names ...string) {
	GinkgoHelper()
	args := []string{"kudo", "test", "--timeout", "300", "--parallel", "4"}
	for _, name := range names {
		args = append(args, filepath.Join(catalog, name, "tests"))
	}
	out, err := start("kubectl", args...)
	Expect(err).NotTo(HaveOccurred(), out)
}

// install installs a package, and waits until the Instance is ready.
func install(ns, name, folder string, args ...string) {
	GinkgoHelper()
	kubectl(append([]string{"kudo", "install", folder, "--instance", name, "-n", ns, "--create-service-account", "-y", "--wait"}, args...)...)
}

// change sets a parameter of the Instance db, and waits for the plan that this starts.
func change(ns, parameter string) {
	GinkgoHelper()
	kubectl("kudo", "update", "--instance", "db", "-n", ns, "-p", parameter, "--wait")
}

// nextVersion returns a folder with the next version of a package of the catalog.
func nextVersion(name string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.CopyFS(folder, os.DirFS(filepath.Join(catalog, name, "operator")))).To(Succeed())
	file := filepath.Join(folder, "operator.yaml")
	data, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	next := strings.NewReplacer("operatorVersion: 1.0.0", "operatorVersion: 1.1.0", "operatorVersion: 2.0.0", "operatorVersion: 2.1.0").Replace(string(data))
	Expect(next).NotTo(Equal(string(data)))
	Expect(os.WriteFile(file, []byte(next), 0o600)).To(Succeed())
	return folder
}
