// Package fromhelm takes releases of Helm over on a real control plane, and gives them back. Helm itself installs their charts, and upgrades and
// deletes the releases after they are given back.
package fromhelm

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

func TestFromHelm(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "FromHelm")
}

var _ = SynchronizedBeforeSuite(func() []byte { return suite.Begin(GinkgoTB()) }, func(data []byte) {
	suite.Join(GinkgoTB(), data)
	plane, cluster = suite.Env, suite.Cluster
})

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
