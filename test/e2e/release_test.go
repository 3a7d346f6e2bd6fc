package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// lease is how long the lease of a manager lasts that has ended without giving it back.
const lease = 15 * time.Second

var _ = Describe("A release", Ordered, Label("release", "R28"), func() {
	var (
		files = filepath.Join(root, "dist", "e2e-release")
		// user has kubectl, a kubeconfig and the files of the release, and nothing else.
		user        func(program string, args ...string) string
		environment []string
		home        string
		// onNode are the words before a command that has it run in the network of the node.
		onNode []string
	)

	BeforeAll(func() {
		state := GinkgoT().TempDir()
		home = GinkgoT().TempDir()
		node := func(args ...string) string {
			return command("kudo-local", append(args, "--name", instanceName, "--state", state)...)
		}
		unlock := nodeLock()
		node("up", "--nodes", "real")
		unlock()
		DeferCleanup(takeDown, state)
		onNode = []string{"nsenter", "-n", "-t", strconv.Itoa(processOf("containerd\x00", state))}
		node("load", filepath.Join(root, "dist", "images", "servers.tar")) // the node cannot pull the image of the database
		bin := filepath.Join(home, "bin")
		Expect(os.Mkdir(bin, 0o700)).To(Succeed())
		Expect(os.Symlink(filepath.Join(root, "bin", "kubectl"), filepath.Join(bin, "kubectl"))).To(Succeed())
		environment = []string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "KUBECONFIG=" + strings.TrimSpace(node("kubeconfig"))}
		user = func(program string, args ...string) string {
			GinkgoHelper()
			out, err := startWith(environment, files, program, args...)
			Expect(err).NotTo(HaveOccurred(), "%s %s: %s", program, strings.Join(args, " "), out)
			return out
		}
	})

	AfterEach(func() {
		if CurrentSpecReport().Failed() {
			out, _ := startWith(environment, files, "kubectl", "get", "pods,events", "-A")
			GinkgoWriter.Println(out)
		}
	})

	// file returns the one file of the release that has a pattern.
	file := func(pattern string) string {
		GinkgoHelper()
		found, err := filepath.Glob(filepath.Join(files, pattern))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1), pattern)
		return found[0]
	}

	It("takes a user from nothing to a running database in three commands", func() {
		registry := startRegistry(onNode)
		user("sha256sum", "--check", "--quiet", "SHA256SUMS")

		user("tar", "-xzf", file("kubectl-kudo_*_linux_"+runtime.GOARCH+".tar.gz"), "-C", filepath.Join(home, "bin"))
		sums := filepath.Join(home, "SHA256SUMS") // as if another machine had built the release, too
		user("cp", file("SHA256SUMS"), sums)
		user(onNode[0], append(onNode[1:], filepath.Join(root, "hack", "publish.sh"), files, sums, registry+"/kudo/manager", "--plain-http")...)
		user("kubectl", "kudo", "init", "--image-registry", registry, "--wait")
		user("kubectl", "kudo", "install", file("postgres-*.tgz"), "--instance", "db", "-p", "PASSWORD=s3cret", "-p", "BACKUP_KEY=battery-staple",
			"-p", "IMAGE_REGISTRY=localhost/catalog", "-p", "REPLICAS=1", "-p", "STORAGE_SIZE=1Gi", "-p", "BACKUP_SIZE=1Gi", "--create-service-account", "-y", "--wait")

		Expect(user("kubectl", "exec", "db-0", "--", "psql", "-U", "postgres", "-qAtc", "SELECT 6 * 7", "app")).To(Equal("42\n"))
	})

	It("runs its image by digest, as a user without rights, on a root file system that cannot be written", func() {
		Expect(user("kubectl", "kudo", "init", "--verify")).NotTo(ContainSubstring("FAILED"))
		digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}`).FindString(user("kubectl", "kudo", "version"))
		Expect(digest).NotTo(BeEmpty())
		pods := user("kubectl", "get", "pods", "-n", "kudo-system", "-o", `jsonpath={range .items[*]}{.spec.securityContext.runAsUser} `+
			`{.spec.containers[0].securityContext.readOnlyRootFilesystem} {.spec.containers[0].image}{"\n"}{end}`)
		Expect(strings.Split(strings.TrimSpace(pods), "\n")).To(And(HaveLen(2), HaveEach(And(HavePrefix("65532 true localhost:"), HaveSuffix("/kudo/manager"+digest)))))
	})

	It("is led again when the lease of a killed manager has ended, and earlier if the manager ends in order", Label("R27"), func() {
		holder := func() string {
			return strings.TrimSpace(user("kubectl", "get", "lease", "kudo-manager", "-n", "kudo-system", "-o", "jsonpath={.spec.holderIdentity}"))
		}
		// next returns how long it takes until another manager leads than the one before.
		next := func(before string) time.Duration {
			begin := time.Now()
			Eventually(holder).WithPolling(100*time.Millisecond).ShouldNot(Or(Equal(before), BeEmpty()), "another manager leads")
			return time.Since(begin)
		}
		before := holder()
		pod, _, _ := strings.Cut(before, "_")
		Expect(syscall.Kill(processOf("/manager\x00", user("kubectl", "get", "pod", pod, "-n", "kudo-system", "-o", "jsonpath={.metadata.uid}")), syscall.SIGKILL)).To(Succeed())
		AddReportEntry("time without a manager that leads, after one was killed", next(before).String())

		user("kubectl", "rollout", "status", "deployment/kudo-controller-manager", "-n", "kudo-system", "--timeout", limit.String())
		before = holder()
		pod, _, _ = strings.Cut(before, "_")
		user("kubectl", "delete", "pod", pod, "-n", "kudo-system", "--wait=false")
		took := next(before)
		AddReportEntry("the same, after one was deleted", took.String())
		Expect(took).To(BeNumerically("<", lease), "the lease was given back, and did not end")
		user("kubectl", "kudo", "plan", "trigger", "--name", "deploy", "--instance", "db", "--wait")
	})
})

// startRegistry runs a registry in the network of a node until the spec ends, and returns its host and port: the container runtime asks
// a registry without TLS only if it is local.
func startRegistry(onNode []string) string {
	GinkgoHelper()
	server := exec.Command(onNode[0], append(onNode[1:], filepath.Join(root, "dist", "images", "programs", "registry"), "-port", "0")...)
	line := startServer(server, server.StderrPipe)
	_, port, found := strings.Cut(strings.TrimSpace(line), "serving on port ")
	Expect(found).To(BeTrue(), line)
	return "localhost:" + port
}

// startServer starts a program, which is killed when the spec ends, and returns the first line that the program prints into a pipe.
func startServer(server *exec.Cmd, pipe func() (io.ReadCloser, error)) string {
	GinkgoHelper()
	out, err := pipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(server.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(server.Process.Kill()).To(Succeed())
		_ = server.Wait()
	})
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return line
}

// processOf returns the first process of an owner that runs a program.
func processOf(program, owner string) int {
	GinkgoHelper()
	found := processesOf(program, owner)
	Expect(found).NotTo(BeEmpty(), "processes of %s that run %s", owner, program)
	return found[0]
}

// processesOf returns the processes whose command line begins with a program and names an owner, or whose cgroup does: a state folder or the
// uid of a pod. Each process runs the program "".
func processesOf(program, owner string) (found []int) {
	GinkgoHelper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range lines {
		folder := filepath.Dir(file)
		line, _ := os.ReadFile(file)
		group, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
		begin, _, _ := strings.Cut(string(line), "\x00")
		if strings.HasSuffix(begin+"\x00", program) && strings.Contains(string(line)+strings.ReplaceAll(string(group), "_", "-"), owner) {
			number, err := strconv.Atoi(filepath.Base(folder))
			Expect(err).NotTo(HaveOccurred())
			found = append(found, number)
		}
	}
	return found
}
