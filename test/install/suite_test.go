// Package install tests how kudo comes onto a cluster that has never seen it.
package install

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/env"
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Installing kudo")
}

// startBare starts a control plane without kudo, which ends with the test.
func startBare(t testing.TB) (*env.Env, *env.Cluster) {
	t.Helper()
	if os.Getenv("KUDO_TEST_KUBECONFIG") != "" {
		t.Skip("needs a control plane of its own, and KUDO_TEST_KUBECONFIG names a cluster that others may use")
	}
	e, err := env.StartBare()
	env.Must(t, err)
	t.Cleanup(e.Stop)
	c, err := e.Connect()
	env.Must(t, err)
	return e, c
}
