// Package testsuite tests kubectl kudo test as people use it: on folders of cases, one for each field of the format, and one
// that fails by it.
package testsuite

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/test/env"
)

var suite env.Suite

func TestTestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "kubectl kudo test")
}

var _ = SynchronizedBeforeSuite(
	func() []byte { return suite.Begin(GinkgoTB()) },
	func(data []byte) { suite.Join(GinkgoTB(), data) },
)

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })

// command is kubectl-kudo test on a cluster; an empty kubeconfig is none.
func command(t testing.TB, dir, kubeconfig string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(filepath.Join(suite.Bin, "kubectl-kudo"), append([]string{"test"}, args...)...)
	cmd.Dir = dir
	// The programs beside kubectl-kudo are found without being in the PATH.
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "TMPDIR=" + os.TempDir(), "WORD=hello",
		"STATE=" + filepath.Join(t.TempDir(), "state"), "SECOND_KUBECONFIG=" + suite.Kubeconfig, "KUBECONFIG=" + kubeconfig}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out
}

// kudoTest runs kubectl-kudo test, and wants an exit code.
func kudoTest(t testing.TB, code int, dir, kubeconfig string, args ...string) string {
	t.Helper()
	cmd, out := command(t, dir, kubeconfig, args...)
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("kubectl kudo test %s: exit code %d, want %d\n%s\nThe whole output:\n%s", strings.Join(args, " "), got, code, failures(out.String()), out)
	}
	return out.String()
}

// failures are the lines of a run that say what failed.
func failures(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "FAIL") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// linesOf are what a run printed of a case, without its name.
func linesOf(out, name string) string {
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		if rest, found := strings.CutPrefix(line, name+" | "); found {
			lines = append(lines, rest)
		}
	}
	return strings.Join(lines, "\n")
}

// contains wants texts in the output; one that begins with ! must not be there.
func contains(t testing.TB, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		text, unwanted := strings.CutPrefix(text, "!")
		if strings.Contains(out, text) == unwanted {
			t.Errorf("%q (unwanted: %v) in the output:\n%s", text, unwanted, out)
		}
	}
}

// namespaces are those that cases have left.
func namespaces(t testing.TB) []string {
	t.Helper()
	list := &corev1.NamespaceList{}
	env.Must(t, suite.List(context.Background(), list))
	var out []string
	for _, ns := range list.Items {
		if strings.HasPrefix(ns.Name, "kudo-test-") || strings.HasPrefix(ns.Name, "scenario-") {
			out = append(out, ns.Name)
		}
	}
	return out
}

func testdata(t testing.TB, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"testdata"}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
