// Package explore tests on a real control plane, under the rights that the manifests give the manager, how webhooks,
// fields and scripts change what plans do.
package explore

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	ctx   = context.Background()
)

func TestExplore(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Exploring")
}

var _ = SynchronizedBeforeSuite(
	func() []byte { return suite.Begin(GinkgoTB()) },
	func(data []byte) { suite.Join(GinkgoTB(), data) },
)

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
