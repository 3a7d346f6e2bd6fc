// Package preview checks that previews are honest: what they say is compared with what happens.
package preview

import (
	"flag"
	"testing"

	"kudo.dev/kudo/test/env"
)

var suite env.Suite

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // upgrades wait more than they compute
		panic(err)
	}
	suite.Main(m, "--audit-log")
}
