// Package apply tests the object engine by itself, as administrator of a real control plane, one side against another.
package apply

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

func TestApply(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The object engine")
}

var _ = SynchronizedBeforeSuite(func() []byte { return suite.Begin(GinkgoTB(), "--profile", "api") }, func(data []byte) {
	suite.Join(GinkgoTB(), data)
	plane, cluster = suite.Env, suite.Cluster
})

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
