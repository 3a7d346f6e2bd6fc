package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

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
	f.register(cmd.Flags())
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
	if err := f.apply(cmd.Flags().Changed, o, i, fresh); err != nil {
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
`, kubernetes, p.Server(), p.Name, p.Settings.Profile, p.Kubeconfig(), p.Kubeconfig(),
		o.commandLine("down"), o.commandLine("down --delete"))
}
