// Package tenancy tests that nobody gets more than was given to him: what users of one namespace may set, on a real
// control plane with admission, changes nothing that they could not change themselves.
package tenancy

import (
	"context"
	"testing"

	"kudo.dev/kudo/test/env"
)

var (
	suite env.Suite
	ctx   = context.Background()
)

func TestMain(m *testing.M) { suite.Main(m) }
