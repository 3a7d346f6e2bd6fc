package fixture

import (
	_ "github.com/onsi/ginkgo/v2"          // depguard
	_ "github.com/sigstore/sigstore"       // depguard
	_ "github.com/stretchr/testify"        // depguard
	kudo "kudo.dev/kudo/apis/kudo/v1beta1" // importas
	_ "oras.land/oras-go/v2/content/file"  // depguard
)

var _ = kudo.Empty
