package kudoinit

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// kubernetes is a cluster of a version.
type kubernetes struct {
	version.Info
	err error
}

func (k kubernetes) ServerVersion() (*version.Info, error) { return &k.Info, k.err }

// TestCheckKubernetes shows R25: init refuses a version of Kubernetes that is too old, and warns of one that was not tested.
func TestCheckKubernetes(t *testing.T) {
	for reason, tc := range map[string]struct {
		cluster       kubernetes
		warning, fail string
	}{
		"the lowest":             {kubernetes{Info: version.Info{Major: "1", Minor: "30"}}, "", ""},
		"one of a provider":      {kubernetes{Info: version.Info{Major: "1", Minor: "33+"}}, "", ""},
		"the highest":            {kubernetes{Info: version.Info{Major: "1", Minor: strconv.Itoa(TestedKubernetes)}}, "", ""},
		"too old":                {kubernetes{Info: version.Info{Major: "1", Minor: "29"}}, "", "Kubernetes 1.29 is too old: kudo needs ValidatingAdmissionPolicies, stable since 1.30; upgrade the cluster"},
		"newer":                  {kubernetes{Info: version.Info{Major: "1", Minor: "99"}}, "kudo was not tested with Kubernetes 1.99, but with up to 1.36", ""},
		"another major":          {kubernetes{Info: version.Info{Major: "2", Minor: "1", GitVersion: "v2.1.0"}}, `kudo was not tested with Kubernetes "v2.1.0", but with 1.36`, ""},
		"no number":              {kubernetes{Info: version.Info{Major: "1", Minor: "x", GitVersion: "v1.x"}}, `kudo was not tested with Kubernetes "v1.x"`, ""},
		"no answer":              {kubernetes{err: errors.New("refused")}, "", "ask for the version of Kubernetes: refused"},
		"a hostile API server's": {kubernetes{Info: version.Info{Major: "1", Minor: "\x1b[31m", GitVersion: "\x1b[31m" + strings.Repeat("x", 1000)}}, `\x1b[31m`, ""},
	} {
		warning, err := CheckKubernetes(tc.cluster)
		if tc.fail != "" != (err != nil) || err != nil && err.Error() != tc.fail || !strings.Contains(warning, tc.warning) || tc.warning == "" && warning != "" || len(warning) > 300 {
			t.Errorf("%s: %q, %v", reason, warning, err)
		}
	}
}

// TestTestedKubernetes compares the version with that of the local control plane, and our own packages with the lowest one.
func TestTestedKubernetes(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "cmd", "kudo-local", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+)\.`).FindStringSubmatch(string(text)); found == nil || found[1] != strconv.Itoa(TestedKubernetes) {
		t.Errorf("the local control plane has Kubernetes 1.%v, want 1.%d", found, TestedKubernetes)
	}
	packages := []string{filepath.Join(root, "pkg", "cli", "packages", "scaffold", "operator.yaml")}
	for _, pattern := range []string{"operators/catalog/*/operator/operator.yaml", "docs/examples/*/operator.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		packages = append(packages, found...)
	}
	for _, file := range packages {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		operator := struct{ KubernetesVersion string }{}
		if err := yaml.Unmarshal(text, &operator); err != nil {
			t.Fatal(err)
		}
		lowest, err := semver.NewVersion(operator.KubernetesVersion)
		if err != nil || lowest.Minor() < MinKubernetes {
			t.Errorf("%s: kubernetesVersion is %s (%v), and kudo needs 1.%d", file, operator.KubernetesVersion, err, MinKubernetes)
		}
	}
}

// TestSupportedVersions: R23, supported-versions.yaml is the one table: init accepts what it lists, and warns beyond what is tested on a
// real control plane, which is that of the suites.
func TestSupportedVersions(t *testing.T) {
	text, err := os.ReadFile("../../supported-versions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Kubernetes []struct{ Minor, Tested string }
	}
	if err := yaml.Unmarshal(text, &table); err != nil || len(table.Kubernetes) == 0 {
		t.Fatal("no table", err)
	}
	tested := 0
	for i, v := range table.Kubernetes {
		minor := MinKubernetes + i
		if v.Minor != "1."+strconv.Itoa(minor) {
			t.Errorf("entry %d is %s, not 1.%d: the table begins with MinKubernetes and has no gap", i, v.Minor, minor)
		}
		if v.Tested == "real" {
			tested = minor
		}
	}
	if tested != TestedKubernetes || tested != MinKubernetes+len(table.Kubernetes)-1 {
		t.Errorf("the highest version that is tested on a real control plane is 1.%d, the last entry 1.%d, and TestedKubernetes is 1.%d", tested,
			MinKubernetes+len(table.Kubernetes)-1, TestedKubernetes)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^K8S_VERSION := v1\.(\d+)\.`).FindSubmatch(makefile); m == nil || string(m[1]) != strconv.Itoa(tested) {
		t.Errorf("the control plane of the suites is %s, and the table says 1.%d", m, tested)
	}
}
