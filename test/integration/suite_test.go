// Package integration tests kudo as people use it: the command line and kubectl-like clients against a real control
// plane, with the manager under the rights that the manifests give it.
package integration

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/env"
)

var (
	suite   env.Suite
	plane   *env.Env
	cluster *env.Cluster
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Integration")
}

var _ = SynchronizedBeforeSuite(func() []byte { return suite.Begin(GinkgoTB()) }, func(data []byte) {
	suite.Join(GinkgoTB(), data)
	plane, cluster = suite.Env, suite.Cluster
})

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
