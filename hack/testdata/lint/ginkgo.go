package fixture

import _ "github.com/onsi/ginkgo/v2" // depguard
