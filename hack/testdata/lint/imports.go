package fixture

import (
	_ "github.com/onsi/ginkgo/v2" // depguard
	"github.com/onsi/gomega"
	_ "github.com/sigstore/sigstore"       // depguard
	_ "github.com/stretchr/testify"        // depguard
	kudo "kudo.dev/kudo/apis/kudo/v1beta1" // importas
	_ "oras.land/oras-go/v2/content/file"  // depguard
)

var _ = kudo.Empty

// unfinished has an assertion that asserts nothing: ginkgolinter.
func unfinished() { gomega.Expect(1) }
