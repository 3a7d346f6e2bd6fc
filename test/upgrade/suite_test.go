// Package upgrade tests that kudo can be upgraded to the next version and back while plans run.
package upgrade

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var (
	suite env.Suite
	ctx   = context.Background()
	// earlier and current are the programs of the two versions.
	earlier, current version
)

func TestUpgrade(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Upgrading kudo")
}

// shared is what each process of the suite needs.
type shared struct {
	Plane            []byte
	Earlier, Current version
}

// All specs change the one installation of the cluster: they run in the first process, and the others have nothing to do.
var _ = SynchronizedBeforeSuite(
	func() []byte {
		t := GinkgoTB()
		dir, err := os.MkdirTemp("", "kudo-upgrade-")
		env.Must(t, err)
		DeferCleanup(func() { _ = os.RemoveAll(dir) })
		programs, err := earlierPrograms(earlierCommit, earlierVersion)
		env.Must(t, err)
		s := shared{Earlier: version{earlierVersion, programs}, Current: version{currentVersion, dir}}
		env.Must(t, build(sourcetree.Root(), dir, currentVersion))
		plane, err := env.StartBare("--pod-ready-delay=0s")
		env.Must(t, err)
		suite.Env = plane
		s.Plane, err = plane.Share()
		env.Must(t, err)
		data, err := json.Marshal(s)
		env.Must(t, err)
		return data
	},
	func(data []byte) {
		s := shared{}
		env.Must(GinkgoTB(), json.Unmarshal(data, &s))
		earlier, current = s.Earlier, s.Current
		suite.Join(GinkgoTB(), s.Plane)
	},
)

var _ = SynchronizedAfterSuite(func() {}, func() { suite.Stop() })
