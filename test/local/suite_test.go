// Package local tries kudo-local as a person would: it runs the program, and looks at the cluster through its kubeconfig.
package local

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) != "" {
		os.Exit(fakeManager(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func TestLocal(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The local control plane")
}
