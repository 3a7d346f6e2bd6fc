// Package layers checks the structure of the source tree: imports point down, packages have tests, and names and
// comments use the words of docs/design/vocabulary.md. docs/design/architecture.md explains the rules.
package layers

const (
	module = "kudo.dev/kudo"
	// pureLevel holds the packages that touch no cluster, network, disk, clock or log.
	pureLevel = 1
	// testLevel may import anything, and no other level imports it.
	testLevel = 6
)

// rules are what the imports of a tree must follow. All paths are relative to the module, and match as prefixes.
type rules struct {
	// levels give each package the level of the longest prefix; a package imports lower levels.
	levels map[string]int
	// edges are the imports within a level: each package to those it may import. A trailing "/*" matches the packages
	// below a path, and not the path itself.
	edges map[string][]string
	// testEdges are edges of _test.go files only.
	testEdges map[string][]string
	// impure are imports of other modules that packages of the pure level must not have; exceptions are prefixes of
	// impure ones that they may have.
	impure, exceptions []string
	// isolated packages import nothing of this module but one another.
	isolated []string
	// narrow packages import of this module what is listed only: they know nothing of what their users are about.
	narrow map[string][]string
	// fixtures are packages of the test level that _test.go files below pkg may import.
	fixtures []string
	// untested are packages without a _test.go file of their own, each with its reason.
	untested map[string]string
}

// tree are the rules of this module.
var tree = rules{
	levels: map[string]int{
		"apis": 0, "manifests": 0, "pkg/text": 0, "pkg/atomicfile": 0, "pkg/processgroup": 0, "pkg/apierror": 0, "pkg/reach": 0, "pkg/metrics": 0, "pkg/registry": 0,
		"operators": 1, "plans": 1, "pkg/keyring": 1,
		"pkg/apply": 2, "pkg/health": 2, "pkg/health/culprit": 2, "pkg/history": 2, "pkg/repository": 2, "pkg/conditions": 2, "pkg/podexec": 2, "pkg/pkginstall": 2, "pkg/ocilayout": 2,
		"pkg/apiproxy": 2, "pkg/crdtarball": 2, "pkg/crdcompat": 2, "pkg/settings": 2, "pkg/share": 2, "pkg/paramsource": 2, "pkg/quota": 2, "pkg/dryrun": 2, "pkg/trust": 2, "pkg/helmstore": 2, "pkg/storedversions": 2, "pkg/explore": 2, "pkg/clusters": 2,
		"pkg/runner": 3, "pkg/rights": 3, "pkg/admission": 3, "pkg/kudoinit": 3, "pkg/testsuite": 3, "pkg/diagnostics": 3, "pkg/preview": 3, "pkg/act": 3,
		"pkg/controllers": 4, "pkg/cli": 4, "pkg/ui": 4,
		"cmd": 5, "hack": 5,
		"test": testLevel,
	},
	edges: map[string][]string{
		"pkg/share":               {"pkg/apply"},
		"plans/schedule":          {"plans"},
		"plans/deadline":          {"plans"},
		"plans/trigger":           {"plans"},
		"plans/task":              {"operators"},
		"operators":               {"operators/versions", "operators/yamldoc"},
		"operators/params":        {"operators/yamldoc"},
		"operators/render":        {"operators/params", "operators/yamldoc"},
		"operators/edit":          {"operators", "operators/yamldoc"},
		"operators/jsonschema":    {"operators", "operators/params", "operators/yamldoc"},
		"operators/lint":          {"operators", "operators/params", "operators/render", "operators/yamldoc"},
		"operators/helmrelease":   {"operators", "operators/yamldoc"},
		"operators/artifact":      {"operators", "operators/archive", "operators/content"},
		"operators/containment":   {"operators", "operators/params", "operators/render"},
		"pkg/registry":            {"pkg/text"},
		"pkg/repository":          {"pkg/ocilayout", "pkg/trust"},
		"pkg/dryrun":              {"pkg/apply", "pkg/crdcompat"},
		"pkg/preview":             {"pkg/rights", "pkg/runner"},
		"pkg/act":                 {"pkg/kudoinit", "pkg/preview", "pkg/rights", "pkg/runner"},
		"pkg/repository/*":        {"pkg/repository"},
		"pkg/explore/*":           {"pkg/explore"},
		"pkg/explore/config":      {"pkg/explore/fields", "pkg/explore/lua"},
		"pkg/explore/karmada":     {"pkg/explore/lua", "pkg/explore/lua/sandbox"},
		"pkg/explore/cases":       {"pkg/explore/config", "pkg/explore/karmada", "pkg/explore/lua", "pkg/explore/pods"},
		"pkg/explore/interpreter": {"pkg/explore/library", "pkg/explore/lua"},
		"pkg/explore/library":     {"pkg/explore/karmada", "pkg/explore/lua"},
		"pkg/explore/live":        {"pkg/explore/config", "pkg/explore/interpreter", "pkg/explore/lua", "pkg/explore/native", "pkg/explore/webhook", "pkg/health"},
		"pkg/explore/lua":         {"pkg/explore/lua/sandbox", "pkg/explore/pods"},
		"pkg/explore/native":      {"pkg/explore/pods"},
		"pkg/explore/webhook":     {"pkg/explore/pods"},
		"pkg/clusters/inventory":  {"pkg/apply", "pkg/clusters"},
		"pkg/clusters/karmada":    {"pkg/clusters", "pkg/clusters/karmada/remote"},
		"pkg/controllers":         {"pkg/controllers/*"},
		"pkg/controllers/*":       {"pkg/controllers/loop"},
		"pkg/storedversions":      {"pkg/crdcompat"},
		"pkg/crdtarball/fetch":    {"pkg/crdtarball", "pkg/settings"},
		"pkg/kudoinit":            {"pkg/rights"},
		"pkg/cli":                 {"pkg/cli/*"},
		"pkg/cli/*":               {"pkg/cli/command"},
		"pkg/cli/command":         {"pkg/cli/offline"},
		"pkg/cli/ui":              {"pkg/ui", "pkg/ui/access"},
		"pkg/ui":                  {"pkg/ui/access"},
		"cmd/explore-sample":      {"cmd/explore-sample/sample"},

		"pkg/explore/server/karmada": {"pkg/explore/server"},
	},
	testEdges: map[string][]string{
		"operators":             {"operators/params", "operators/render"},
		"operators/helmrelease": {"operators/lint", "operators/params", "operators/render"},
		"operators/content":     {"operators"},
		"operators/render":      {"operators"},
		"pkg/explore":           {"pkg/explore/exploretest"},
		"pkg/explore/*":         {"pkg/explore/exploretest"},
		"pkg/explore/library":   {"pkg/explore/cases", "pkg/explore/pods"},
		"pkg/explore/webhook":   {"pkg/explore/server"},
		"pkg/cli/*":             {"pkg/cli/commandtest"},

		"pkg/explore/server/karmada": {"pkg/explore/cases", "pkg/explore/config", "pkg/explore/library", "pkg/explore/lua"},
	},
	impure: []string{
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/klog", "github.com/go-logr", "log", "net", "os", "syscall",
		"math/rand", "crypto/rand", module + "/pkg/atomicfile",
	},
	exceptions: []string{"net/url", "net/netip"},
	isolated:   []string{"pkg/text", "pkg/atomicfile", "pkg/crdcompat", "pkg/explore/lua/sandbox"},
	narrow:     map[string][]string{"pkg/controllers/loop": {"pkg/apierror"}},
	fixtures:   []string{"test/gen", "test/corpus", "test/apitest", "test/ocitest", "test/sigstore", "test/terminal"},
	untested: map[string]string{
		"apis/config/v1alpha1": "types only",
		"manifests":            "embedded YAML; pkg/kudoinit tests it",
		"pkg/cli/commandtest":  "helpers of tests",
		"test/apitest":         "helpers of tests",
		"test/corpus":          "helpers of tests",
		"test/env":             "helpers of tests",
		"test/gen":             "helpers of tests",
		"test/lifecycle":       "helpers of tests",
		"test/ocitest":         "helpers of tests",
		"test/sigstore":        "the tests of pkg/trust use it",
		"test/terminal":        "helpers of tests",
	},
}
