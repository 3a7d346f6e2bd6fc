// Package versions tests that kudo runs on the versions of Kubernetes that a newer control plane can emulate.
package versions

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

func TestVersions(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Versions of Kubernetes")
}

// emulated returns the minor versions of supported-versions.yaml that are tested by emulation.
func emulated() (minors []string) {
	text, err := os.ReadFile(filepath.Join(sourcetree.Root(), "supported-versions.yaml"))
	if err != nil {
		panic(err)
	}
	var table struct {
		Kubernetes []struct{ Minor, Tested string } `json:"kubernetes"`
	}
	if err := yaml.Unmarshal(text, &table); err != nil {
		panic(err)
	}
	for _, v := range table.Kubernetes {
		if v.Tested == "emulated" {
			minors = append(minors, v.Minor)
		}
	}
	return minors
}

// packages have install plans: with a CustomResourceDefinition, and with an admission webhook.
var packages = []string{"noticeboard", "imageswitch"}

var _ = Describe("R23: kudo runs on Kubernetes", Label("versions", "slow"), Serial, func() {
	for _, minor := range emulated() {
		It(minor+": the checks of init pass, and so do the suites of packages", func() {
			t := GinkgoTB()
			e, err := env.Start("--kubernetes-version", minor)
			env.Must(t, err)
			t.Cleanup(e.Stop)
			if !e.IsDisposable() {
				t.Skip("starts a control plane of each version, and KUDO_TEST_KUBECONFIG names a cluster")
			}
			config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig)
			env.Must(t, err)
			server, err := discovery.NewDiscoveryClientForConfig(config)
			env.Must(t, err)
			version, err := server.ServerVersion()
			env.Must(t, err)
			if got := version.EmulationMajor + "." + version.EmulationMinor; got != minor {
				t.Fatalf("the API server emulates %s", got)
			}
			env.Contains(t, e.MustKudo(t, 0, "init", "--verify"), "kudo-account", "OK")
			args := []string{"test"}
			for _, name := range packages {
				args = append(args, filepath.Join(sourcetree.Root(), "operators", "catalog", name, "tests"))
			}
			e.MustKudo(t, 0, args...)
		})
	}
})
