// Package conformance runs the kuttl suites that others wrote for KUDO, unmodified, by kudo's own runner and by kuttl: they know of no
// accounts, so kudo is privileged.
package conformance

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/pkg/testsuite"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

var (
	plane   *env.Env
	cluster *testsuite.Cluster
)

func TestConformance(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Suites of others")
}

var _ = SynchronizedBeforeSuite(func() []byte {
	t := GinkgoTB()
	corpus.Require(t)
	plane, _ = start(t, "full")
	data, err := plane.Share()
	env.Must(t, err)
	return data
}, func(data []byte) {
	t := GinkgoTB()
	var err error
	plane, err = env.Join(data)
	env.Must(t, err)
	cluster, err = testsuite.Connect(plane.Kubeconfig)
	env.Must(t, err)
})

var _ = SynchronizedAfterSuite(func() {}, func() { plane.Stop() })
