package local

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/env"
)

var _ = It("runs a manager of kudo, and replaces it when its program has changed", func() {
	t := GinkgoTB()
	l := newInstance(t, t.TempDir(), "kudo")
	l.run("up", "--profile", "api")
	if _, stderr, err := l.try("up", "--with-kudo", "--bin-dir", t.TempDir()); err == nil || !strings.Contains(stderr, "kubectl-kudo, which is not there") {
		t.Errorf("without kudo's programs: %v %s", err, stderr)
	}
	l.run("status")

	bin := fakeKudo(t)
	l.run("up", "--with-kudo", "--bin-dir", bin, "--manager-arg=--one", "--manager-arg=--two")
	l.run("status")
	log := l.run("logs", "manager")
	for _, want := range []string{"--kubeconfig", "manager.kubeconfig", "--webhook-bind-address 127.0.0.1", "--webhook-port", "--webhook-cert-dir", "--metrics-bind-address 127.0.0.1:", "--namespace kudo-system --pipe-image kudo-manager:dev --allow-unpinned-pipe-image --one --two"} {
		if !strings.Contains(log, want) {
			t.Errorf("the manager is started without %q: %s", want, log)
		}
	}

	first := l.pids()["manager"]
	l.run("up")
	if l.pids()["manager"] != first {
		t.Error("up restarts a manager that has not changed")
	}
	program := filepath.Join(bin, "manager")
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, program, string(content)+"# newer\n")
	l.run("up")
	second := l.pids()["manager"]
	if second == first || running(first) {
		t.Error("up keeps a manager of an older program")
	}

	l.run("up", "--with-kudo=false")
	if running(second) {
		t.Error("--with-kudo=false leaves the manager")
	}
	l.run("up", "--with-kudo")

	l.run("kill", "manager")
	if stdout, _, err := l.try("status"); err == nil || !strings.Contains(stdout, "manager has died") {
		t.Errorf("status does not name the dead manager: %s", stdout)
	}
	l.run("start", "manager")
	l.run("status")
	last := l.pids()["manager"]
	l.run("down")
	if running(last) {
		t.Error("down leaves the manager")
	}
})

var _ = It("names what has died when it does not come up", func() {
	t := GinkgoTB()
	l := newInstance(t, t.TempDir(), "dies")
	bin := fakeKudo(t)
	writeProgram(t, filepath.Join(bin, "manager"), "#!/bin/sh\necho the reason of its death\nexit 1\n")
	_, stderr, err := l.try("up", "--profile", "api", "--with-kudo", "--bin-dir", bin)
	if err == nil {
		t.Fatal("up is content with a manager that dies")
	}
	if !strings.Contains(stderr, "manager has died") || !strings.Contains(stderr, "the reason of its death") {
		t.Errorf("up does not say what has died, and why:\n%s", stderr)
	}
	if pids := l.pids(); len(pids) != 0 {
		t.Errorf("up leaves %v", pids)
	}
})

var _ = It("leaves nothing when it is interrupted", func() {
	t := GinkgoTB()
	l := newInstance(t, t.TempDir(), "stop")
	var stderr bytes.Buffer
	cmd := exec.Command(program(), "up", "--name", l.name, "--state", l.state)
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, "an API server that was started", func() string {
		if l.pids()["kube-apiserver"] == 0 {
			return "the API server is not started"
		}
		return ""
	})
	pids := l.pids()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("an interrupted up says that all is well: %s", &stderr)
	}
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("an interrupted up leaves %s: %s", name, &stderr)
		}
	}
})
