// Package installplan tests how OperatorVersions share cluster resources, on a real control plane with its garbage
// collector, under the rights that the manifests give the manager.
package installplan

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

func TestInstallPlans(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Install plans")
}

var _ = SynchronizedBeforeSuite(
	func() []byte { return suite.Begin(GinkgoTB()) },
	func(data []byte) { suite.Join(GinkgoTB(), data) },
)

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
