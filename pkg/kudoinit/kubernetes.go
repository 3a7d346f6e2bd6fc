package kudoinit

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"
)

// Minor versions of Kubernetes 1: the lowest that kudo works with, and the highest that its suites run on. supported-versions.yaml has the
// table of all of them.
const (
	MinKubernetes    = 30
	TestedKubernetes = 36
)

// CheckKubernetes returns an error if kudo cannot work with the cluster's Kubernetes, and a warning if it was not tested with it. A version
// that cannot be read passes.
func CheckKubernetes(cluster discovery.ServerVersionInterface) (warning string, err error) {
	version, err := cluster.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	minor, err := strconv.Atoi(strings.TrimRight(version.Minor, "+")) // some providers write 30+
	switch {
	case err != nil || version.Major != "1":
		return fmt.Sprintf("kudo was not tested with Kubernetes %.40q, but with 1.%d", version.GitVersion, TestedKubernetes), nil
	case minor < MinKubernetes:
		return "", refuse(fmt.Errorf("%s is too old: kudo needs ValidatingAdmissionPolicies, stable since 1.%d; upgrade the cluster",
			"Kubernetes 1."+strconv.Itoa(minor), MinKubernetes))
	case minor > TestedKubernetes:
		return fmt.Sprintf("kudo was not tested with Kubernetes 1.%d, but with up to 1.%d", minor, TestedKubernetes), nil
	}
	return "", nil
}
