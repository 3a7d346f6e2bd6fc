// Package rights shows on a real control plane that the rights which kudo computes for the plans of a package are enough,
// and that none of them is too much.
package rights

import (
	"flag"
	"testing"

	"kudo.dev/kudo/test/env"
)

var suite env.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most of the time, plans wait for pods
	suite.Setup = func() (func() error, error) {
		return func() error { deleteShared(); return nil }, nil
	}
	suite.Main(m)
}
