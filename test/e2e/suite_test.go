// Package e2e tests kudo on real pods: kudo-local runs a kubelet with containerd, and the manager runs in the cluster. "make e2e" builds
// what it needs and runs it, as root.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// root is the folder of the sources, with bin and dist/images; empty if the suite is not run by "make e2e".
var root = os.Getenv("KUDO_E2E")

const (
	instanceName = "e2e"
	managerImage = "example.org/kudo/manager:dev"
	// nextManagerImage is another name of the same image.
	nextManagerImage = "example.org/kudo/manager:next"
	// limit of waiting for what takes seconds on an idle machine.
	limit = 3 * time.Minute
	// commandLimit bounds a command: the suites of the whole catalog take five minutes on an idle machine.
	commandLimit = 20 * time.Minute
)

var state, kubeconfig string

func TestE2E(t *testing.T) {
	if root == "" {
		t.Skip("make e2e runs it, with what it needs")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(limit)
	SetDefaultEventuallyPollingInterval(300 * time.Millisecond)
	RunSpecs(t, "Real pods")
}

// The processes share one cluster, which the first of them starts.
var _ = SynchronizedBeforeSuite(func() []byte {
	var err error
	state, err = os.MkdirTemp("", "kudo-e2e-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(takeDown, state)
	local("up", "--nodes", "real")
	kubeconfig = strings.TrimSpace(local("kubeconfig"))
	for _, image := range []string{"manager", "busybox", "explore-sample", "servers"} {
		local("load", filepath.Join(root, "dist", "images", image+".tar"))
	}
	kubectl("kudo", "init", "--wait", "--kudo-image", managerImage, "--manager-replicas", "2")
	return []byte(state)
}, func(folder []byte) {
	state = string(folder)
	kubeconfig = strings.TrimSpace(local("kubeconfig"))
})

var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() {
		GinkgoWriter.Println(try("kubectl", "get", "pods,events", "-A"))
		pods, _ := start("kubectl", "get", "pods", "-A", "--no-headers", "-o", "custom-columns=N:.metadata.namespace,P:.metadata.name")
		for line := range strings.Lines(pods) {
			if pod := strings.Fields(line); len(pod) == 2 {
				GinkgoWriter.Println(strings.TrimSpace(line), try("kubectl", "logs", "-n", pod[0], pod[1], "--all-containers", "--tail=15"))
			}
		}
	}
})

// takeDown removes the instance of a state folder, and fails if it leaves anything on the machine.
func takeDown(state string) {
	GinkgoHelper()
	node := struct{ Interface, Cgroup string }{}
	data, err := os.ReadFile(filepath.Join(state, instanceName, "node.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &node)).To(Succeed())
	command("kudo-local", "down", "--delete", "--name", instanceName, "--state", state)
	Expect(filepath.Join(state, instanceName)).NotTo(BeAnExistingFile(), "files")
	Expect(os.RemoveAll(state)).To(Succeed())
	mounts, err := os.ReadFile("/proc/mounts")
	Expect(err).NotTo(HaveOccurred())
	Expect(string(mounts)).NotTo(ContainSubstring(state), "mounts")
	Expect(filepath.Join("/sys/class/net", node.Interface)).NotTo(BeADirectory())
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		cgroups, err := filepath.Glob(pattern + node.Cgroup)
		Expect(err).NotTo(HaveOccurred())
		Expect(cgroups).To(BeEmpty(), "cgroups")
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range commands {
		command, _ := os.ReadFile(file)
		Expect(string(command)).NotTo(ContainSubstring(state), "processes")
	}
}

// nodeLock keeps two processes from starting nodes at the same time: both could choose the same subnet.
func nodeLock() (unlock func()) {
	GinkgoHelper()
	file, err := os.OpenFile(filepath.Join(state, "nodes.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	Expect(err).NotTo(HaveOccurred())
	Expect(syscall.Flock(int(file.Fd()), syscall.LOCK_EX)).To(Succeed())
	return func() { _ = file.Close() }
}

func local(args ...string) string {
	GinkgoHelper()
	return command("kudo-local", append(args, "--name", instanceName, "--state", state)...)
}

func kubectl(args ...string) string {
	GinkgoHelper()
	return command("kubectl", args...)
}

// command runs a program of the project, which must succeed, and returns what it prints.
func command(program string, args ...string) string {
	GinkgoHelper()
	out, err := start(program, args...)
	Expect(err).NotTo(HaveOccurred(), "%s %s: %s", program, strings.Join(args, " "), out)
	return out
}

// try runs a program of the project, and returns what it prints, with the error if there is one.
func try(program string, args ...string) string {
	out, err := start(program, args...)
	if err != nil {
		out += err.Error()
	}
	return out
}

func start(program string, args ...string) (string, error) {
	environment := append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	return startWith(environment, "", filepath.Join(root, "bin", program), args...)
}

// startWith runs a program with an environment in a folder, and returns what it prints. A name without a path is looked up in the PATH
// of the environment.
func startWith(environment []string, folder, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	if !filepath.IsAbs(program) {
		program, args = "/usr/bin/env", append([]string{program}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = environment, folder
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// apply applies objects in a namespace.
func apply(namespace, objects string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "objects.yaml")
	Expect(os.WriteFile(file, []byte(objects), 0o600)).To(Succeed())
	kubectl("apply", "-n", namespace, "-f", file)
}

// namespace makes a namespace of a new name, which goes with the spec.
func namespace() string {
	GinkgoHelper()
	name := fmt.Sprintf("e2e-%d", time.Now().UnixNano())
	makeNamespace(name)
	return name
}

// makeNamespace makes a namespace, which goes with the spec.
func makeNamespace(name string) {
	GinkgoHelper()
	kubectl("create", "namespace", name)
	DeferCleanup(func() { kubectl("delete", "namespace", name, "--wait=false") })
}
