package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

// upFlags are the flags of up. Each sets one of the settings of an instance.
type upFlags struct {
	profile                     string
	readyDelay                  time.Duration
	nodes                       string
	version                     string
	servers                     string
	featureGates, runtimeConfig string
	auditLog                    bool
	withKudo                    bool
	privileged                  bool
	initArgs                    []string
	binDir                      string
	managerArgs                 []string
}

func (f *upFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.profile, "profile", string(instance.Full),
		"full, or api: no scheduler, no nodes, and no controllers but those for namespaces, owners and service accounts")
	flags.DurationVar(&f.readyDelay, "pod-ready-delay", time.Second, "how long after it was scheduled a pod becomes ready")
	flags.StringVar(&f.nodes, "nodes", "fake", "fake: pods become ready, and nothing runs in them; "+
		"or real: one node with kubelet, containerd, Services and DNS, on Linux as root")
	flags.StringVar(&f.version, "kubernetes-version", "", "minor version of Kubernetes to emulate, such as 1.33, "+
		"of the three before its own: APIs and features of later ones are off (default its own)")
	flags.StringVar(&f.servers, "kubernetes-dir", "", "folder with the servers of another version of Kubernetes, "+
		"kube-apiserver, kube-controller-manager and kube-scheduler, to run instead of its own")
	flags.StringVar(&f.featureGates, "feature-gates", "", "features of the API server, the controller manager and the scheduler "+
		"to turn on or off, such as StorageVersionMigrator=true")
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "APIs to turn on or off, such as storagemigration.k8s.io/v1beta1=true")
	flags.BoolVar(&f.auditLog, "audit-log", false, "write each request at the API server down in logs/audit.log of the instance's folder")
	flags.BoolVar(&f.withKudo, "with-kudo", false, "install kudo and run its manager as one more component")
	flags.BoolVar(&f.privileged, "privileged", false,
		"with --with-kudo: run plans of Instances that name no ServiceAccount with the rights of kudo, as KUDO did")
	flags.StringArrayVar(&f.initArgs, "init-arg", nil, "argument for 'kubectl kudo init'; may be repeated, an empty one takes all away")
	flags.StringVar(&f.binDir, "bin-dir", "", "folder with kudo's programs, kubectl-kudo and manager (default the folder of this program)")
	flags.StringArrayVar(&f.managerArgs, "manager-arg", nil, "argument for the manager; may be repeated, an empty one takes all away")
}

// apply changes the settings of an instance to those flags that were given. It changes none if it returns an error.
func (f *upFlags) apply(given func(flag string) bool, o *options, i *instance.Instance, fresh bool) error {
	next := i.Settings
	for _, s := range f.setters() {
		if !given(s.flag) {
			continue
		}
		if err := s.set(&next); err != nil {
			return fmt.Errorf("--%s: %w", s.flag, err)
		}
	}
	if err := i.Settings.CheckChange(next); err != nil && !fresh {
		return fmt.Errorf("instance %q %w: take another --name, or first '%s'", i.Name, err, o.commandLine("down --delete"))
	}
	if err := next.Check(); err != nil {
		return err
	}
	i.Settings = next
	return nil
}

// setter changes settings to the value of a flag.
type setter struct {
	flag string
	set  func(*instance.Settings) error
}

func (f *upFlags) setters() []setter {
	always := func(set func(*instance.Settings)) func(*instance.Settings) error {
		return func(s *instance.Settings) error { set(s); return nil }
	}
	return []setter{
		{"profile", f.setProfile},
		{"pod-ready-delay", f.setReadyDelay},
		{"nodes", f.setNodes},
		{"kubernetes-version", f.setVersion},
		{"kubernetes-dir", func(s *instance.Settings) error { return setDir(&s.KubernetesDir, f.servers) }},
		{"feature-gates", always(func(s *instance.Settings) { s.FeatureGates = f.featureGates })},
		{"runtime-config", always(func(s *instance.Settings) { s.RuntimeConfig = f.runtimeConfig })},
		{"audit-log", always(func(s *instance.Settings) { s.AuditLog = f.auditLog })},
		{"with-kudo", always(func(s *instance.Settings) { s.WithKudo = f.withKudo })},
		{"privileged", always(func(s *instance.Settings) { s.Privileged = &f.privileged })},
		{"init-arg", always(func(s *instance.Settings) { s.InitArgs = withoutEmpty(f.initArgs) })},
		{"bin-dir", func(s *instance.Settings) error { return setDir(&s.BinDir, f.binDir) }},
		{"manager-arg", always(func(s *instance.Settings) { s.ManagerArgs = withoutEmpty(f.managerArgs) })},
	}
}

func (f *upFlags) setProfile(s *instance.Settings) error {
	s.Profile = instance.Profile(f.profile)
	if s.Profile != instance.Full && s.Profile != instance.API {
		return fmt.Errorf("there is no profile %q: use full or api", f.profile)
	}
	return nil
}

func (f *upFlags) setReadyDelay(s *instance.Settings) error {
	s.PodReadyDelay = f.readyDelay
	if f.readyDelay < 0 {
		return errors.New("the delay cannot be negative")
	}
	return nil
}

func (f *upFlags) setNodes(s *instance.Settings) error {
	s.RealNodes = f.nodes == "real"
	if f.nodes != "fake" && f.nodes != "real" {
		return fmt.Errorf("there are no nodes %q: use fake or real", f.nodes)
	}
	return nil
}

func (f *upFlags) setVersion(s *instance.Settings) error {
	s.EmulatedVersion = f.version
	return plane.CheckEmulatedVersion(f.version)
}

// setDir sets a folder, which may be given relative to that of this process.
func setDir(dir *string, given string) (err error) {
	*dir, err = filepath.Abs(given)
	return err
}

func withoutEmpty(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "" })
}
