package instance

import (
	"errors"
	"fmt"
	"time"
)

// Profile says how much of a cluster runs.
type Profile string

const (
	// Full is a cluster in which pods run: scheduler, all controllers, nodes.
	Full Profile = "full"
	// API is the API alone: nothing makes a Deployment progress, which suites
	// need that assert what a cluster looks like before it does.
	API Profile = "api"
)

// Settings are what the person has asked for. They hold until they are asked
// for differently.
type Settings struct {
	Profile       Profile       `json:"profile"`
	PodReadyDelay time.Duration `json:"podReadyDelay"`
	// RealNodes runs pods on a real node, instead of playing them.
	RealNodes bool `json:"realNodes,omitempty"`
	// EmulatedVersion is the minor version of Kubernetes that the components emulate, such as 1.33; empty for their own.
	EmulatedVersion string `json:"emulatedVersion,omitempty"`
	// FeatureGates turn features of the components on or off, and RuntimeConfig APIs, each as their flags take them.
	FeatureGates  string `json:"featureGates,omitempty"`
	RuntimeConfig string `json:"runtimeConfig,omitempty"`
	// KubernetesDir is a folder with the servers of another version of Kubernetes; empty for those in this program.
	KubernetesDir string `json:"kubernetesDir,omitempty"`
	// AuditLog makes the API server write down each request.
	AuditLog bool `json:"auditLog,omitempty"`
	// WithKudo says that the kudo manager belongs to this instance.
	WithKudo bool `json:"withKudo,omitempty"`
	// InitArgs are added to the arguments of 'kubectl kudo init'.
	InitArgs []string `json:"initArgs,omitempty"`
	// Privileged runs plans of Instances that name no ServiceAccount with the
	// rights of kudo; nil if that was never said.
	Privileged *bool `json:"privileged,omitempty"`
	// BinDir holds kubectl-kudo and manager.
	BinDir string `json:"binDir,omitempty"`
	// ManagerArgs are added to the arguments of the manager.
	ManagerArgs []string `json:"managerArgs,omitempty"`
}

// CheckChange returns an error if an instance that exists cannot get other settings, because of what cannot be changed later.
func (s Settings) CheckChange(next Settings) error {
	switch {
	case next.Profile != s.Profile:
		return fmt.Errorf("has the profile %s", s.Profile)
	case next.RealNodes != s.RealNodes:
		return errors.New("was made with other nodes")
	case next.EmulatedVersion != s.EmulatedVersion:
		return errors.New("was made with another version of Kubernetes")
	case next.KubernetesDir != s.KubernetesDir:
		return errors.New("was made with other servers")
	}
	return nil
}

// Check returns an error if settings exclude each other. It names the flags of up that set them.
func (s Settings) Check() error {
	switch {
	case s.RealNodes && s.Profile == API:
		return errors.New("--nodes real and --profile api exclude each other: the profile has no nodes")
	case s.KubernetesDir != "" && s.EmulatedVersion != "":
		return errors.New("--kubernetes-dir and --kubernetes-version exclude each other: the servers are those of one version")
	case s.KubernetesDir != "" && s.RealNodes:
		return errors.New("--kubernetes-dir and --nodes real exclude each other: the servers run pods on played nodes")
	}
	return nil
}
