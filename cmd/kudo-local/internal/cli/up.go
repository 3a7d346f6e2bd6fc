package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

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

func newUp(o *options) *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane, or what of it does not run",
		Long: `Start a control plane, or what of it does not run.

Flags that are not given keep the value they had the last time. The profile of
an instance cannot be changed later.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runUp(cmd, o, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.profile, "profile", string(instance.Full), "full, or api: no scheduler, no nodes, and no controllers but those for namespaces, owners and service accounts")
	flags.DurationVar(&f.readyDelay, "pod-ready-delay", time.Second, "how long after it was scheduled a pod becomes ready")
	flags.StringVar(&f.nodes, "nodes", "fake", "fake: pods become ready, and nothing runs in them; or real: one node with kubelet, containerd, Services and DNS, on Linux as root")
	flags.StringVar(&f.version, "kubernetes-version", "", "minor version of Kubernetes to emulate, such as 1.33, of the three before its own: APIs and features of later ones are off (default its own)")
	flags.StringVar(&f.servers, "kubernetes-dir", "", "folder with the servers of another version of Kubernetes, kube-apiserver, kube-controller-manager and kube-scheduler, to run instead of its own")
	flags.StringVar(&f.featureGates, "feature-gates", "", "features of the API server, the controller manager and the scheduler to turn on or off, such as StorageVersionMigrator=true")
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "APIs to turn on or off, such as storagemigration.k8s.io/v1beta1=true")
	flags.BoolVar(&f.auditLog, "audit-log", false, "write each request at the API server down in logs/audit.log of the instance's folder")
	flags.BoolVar(&f.withKudo, "with-kudo", false, "install kudo and run its manager as one more component")
	flags.BoolVar(&f.privileged, "privileged", false, "with --with-kudo: run plans of Instances that name no ServiceAccount with the rights of kudo, as KUDO did")
	flags.StringArrayVar(&f.initArgs, "init-arg", nil, "argument for 'kubectl kudo init'; may be repeated, an empty one takes all away")
	flags.StringVar(&f.binDir, "bin-dir", "", "folder with kudo's programs, kubectl-kudo and manager (default the folder of this program)")
	flags.StringArrayVar(&f.managerArgs, "manager-arg", nil, "argument for the manager; may be repeated, an empty one takes all away")
	return cmd
}

func runUp(cmd *cobra.Command, o *options, f *upFlags) error {
	unlock, err := instance.Lock(cmd.Context(), o.root, o.name, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer unlock()

	i, err := instance.Load(o.root, o.name)
	fresh := errors.Is(err, instance.ErrNotFound)
	if fresh {
		i, err = instance.New(o.root, o.name, instance.Settings{Profile: instance.Full, PodReadyDelay: time.Second}), nil
	}
	if err != nil {
		return err
	}
	if err := f.apply(cmd, o, i, fresh); err != nil {
		return err
	}
	p, err := plane.New(o.root, i, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if err := p.CheckNode(); err != nil {
		return err
	}
	if err := p.CheckPrograms(); err != nil {
		return err
	}
	if err := p.Up(cmd.Context()); err != nil {
		return err
	}
	printUp(cmd, o, p)
	return nil
}

// apply changes the settings of an instance to those flags that were given.
func (f *upFlags) apply(cmd *cobra.Command, o *options, i *instance.Instance, fresh bool) error {
	given := cmd.Flags().Changed
	s := &i.Settings
	if given("profile") {
		profile := instance.Profile(f.profile)
		if profile != instance.Full && profile != instance.API {
			return fmt.Errorf("there is no profile %q: use full or api", f.profile)
		}
		if !fresh && profile != s.Profile {
			return fmt.Errorf("instance %q has the profile %s: take another --name, or first '%s'", i.Name, s.Profile, o.commandLine("down --delete"))
		}
		s.Profile = profile
	}
	if given("pod-ready-delay") {
		if f.readyDelay < 0 {
			return fmt.Errorf("--pod-ready-delay cannot be negative")
		}
		s.PodReadyDelay = f.readyDelay
	}
	if given("nodes") {
		if f.nodes != "fake" && f.nodes != "real" {
			return fmt.Errorf("there are no nodes %q: use fake or real", f.nodes)
		}
		if real := f.nodes == "real"; !fresh && real != s.RealNodes {
			return fmt.Errorf("instance %q was made with other nodes: take another --name, or first '%s'", i.Name, o.commandLine("down --delete"))
		} else if s.RealNodes = real; real && s.Profile == instance.API {
			return fmt.Errorf("--nodes real and --profile api exclude each other: the profile has no nodes")
		}
	}
	if given("kubernetes-version") {
		if err := plane.CheckEmulatedVersion(f.version); err != nil {
			return fmt.Errorf("--kubernetes-version: %w", err)
		}
		if !fresh && f.version != s.EmulatedVersion {
			return fmt.Errorf("instance %q was made with another version of Kubernetes: take another --name, or first '%s'", i.Name, o.commandLine("down --delete"))
		}
		s.EmulatedVersion = f.version
	}
	if given("kubernetes-dir") {
		dir, err := filepath.Abs(f.servers)
		if err != nil {
			return fmt.Errorf("finding --kubernetes-dir: %w", err)
		}
		if !fresh && dir != s.KubernetesDir {
			return fmt.Errorf("instance %q was made with other servers: take another --name, or first '%s'", i.Name, o.commandLine("down --delete"))
		}
		s.KubernetesDir = dir
	}
	if s.KubernetesDir != "" && (s.EmulatedVersion != "" || s.RealNodes) {
		return fmt.Errorf("--kubernetes-dir excludes --kubernetes-version and --nodes real: the servers are those of one version, and run pods on played nodes")
	}
	if given("feature-gates") {
		s.FeatureGates = f.featureGates
	}
	if given("runtime-config") {
		s.RuntimeConfig = f.runtimeConfig
	}
	if given("audit-log") {
		s.AuditLog = f.auditLog
	}
	if given("with-kudo") {
		s.WithKudo = f.withKudo
	}
	if given("privileged") {
		s.Privileged = &f.privileged
	}
	if given("init-arg") {
		s.InitArgs = slices.DeleteFunc(slices.Clone(f.initArgs), func(a string) bool { return a == "" })
	}
	if given("bin-dir") {
		dir, err := filepath.Abs(f.binDir)
		if err != nil {
			return fmt.Errorf("finding --bin-dir: %w", err)
		}
		s.BinDir = dir
	}
	if given("manager-arg") {
		s.ManagerArgs = slices.DeleteFunc(slices.Clone(f.managerArgs), func(a string) bool { return a == "" })
	}
	return nil
}

func printUp(cmd *cobra.Command, o *options, p *plane.Plane) {
	kubernetes := version.Get().GitVersion
	switch {
	case p.Settings.KubernetesDir != "":
		kubernetes = "of " + p.Settings.KubernetesDir
	case p.Settings.EmulatedVersion != "":
		kubernetes += " that emulates " + p.Settings.EmulatedVersion
	}
	fmt.Fprintf(cmd.OutOrStdout(), `Kubernetes %s is up at %s (instance %q, profile %s).
The kubeconfig is %s

  export KUBECONFIG=%s
  kubectl get nodes

Stop it with '%s'; its data stays until '%s'.
`, kubernetes, p.Server(), p.Name, p.Settings.Profile, p.Kubeconfig(), p.Kubeconfig(), o.commandLine("down"), o.commandLine("down --delete"))
}
