// Package preview checks that previews are honest: what they say is compared with what happens.
package preview

import (
	"testing"

	"kudo.dev/kudo/test/env"
)

var suite env.Suite

func TestMain(m *testing.M) { suite.Main(m, "--audit-log") }
