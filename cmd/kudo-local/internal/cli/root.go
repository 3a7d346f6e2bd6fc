// Package cli is the command line of kudo-local.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"kudo.dev/kudo/cmd/kudo-local/internal/instance"
	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

const longHelp = `kudo-local runs a real Kubernetes control plane on this machine: etcd,
kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which plays
the nodes. Pods are scheduled and become ready, but nothing runs in them. It
needs no container runtime and no download. On Linux as root, --nodes real runs
pods: on one node with a kubelet and containerd.

  kudo-local up
  export KUBECONFIG=$(kudo-local kubeconfig)
  kubectl get nodes
  kudo-local down`

// options are the flags that all commands have.
type options struct {
	root, name string
}

// Main runs the command line and returns the exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The servers in this binary have registered flags of their own there,
	// which cobra would add to ours.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	// The client library tells about calls that fail while servers start.
	klog.SetLogger(logr.Discard())
	if err := newRoot().ExecuteContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted")
		}
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:           "kudo-local",
		Short:         "A real Kubernetes control plane on this machine, in one binary",
		Long:          longHelp,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return o.complete()
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.name, "name", "default", "name of the instance; several run side by side")
	flags.StringVar(&o.root, "state", "", "folder for the state of all instances (default $KUDO_LOCAL_STATE, else ~/.local/state/kudo-local)")
	root.AddCommand(
		newUp(o), newDown(o), newReset(o), newStatus(o), newKubeconfig(o), newList(o),
		newLogs(o), newKill(o), newStart(o), newLoad(o),
	)
	return root
}

func (o *options) complete() error {
	if err := instance.CheckName(o.name); err != nil {
		return err
	}
	var err error
	if o.root == "" {
		o.root, err = instance.DefaultRoot()
	} else {
		o.root, err = filepath.Abs(o.root)
	}
	if err != nil {
		return fmt.Errorf("finding the state folder: %w", err)
	}
	return nil
}

// load returns the plane of an instance that was made before.
func (o *options) load(progress io.Writer) (*plane.Plane, error) {
	i, err := instance.Load(o.root, o.name)
	if err != nil {
		return nil, err
	}
	return plane.New(o.root, i, progress)
}

// change runs a function on an instance that was made before, under its lock.
func (o *options) change(cmd *cobra.Command, f func(context.Context, *plane.Plane) error) error {
	unlock, err := instance.Lock(cmd.Context(), o.root, o.name, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer unlock()
	p, err := o.load(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return f(cmd.Context(), p)
}

// commandLine returns a command of this program for the same instance.
func (o *options) commandLine(command string) string {
	if o.name != "default" {
		command += " --name " + o.name
	}
	if standard, err := instance.DefaultRoot(); err != nil || standard != o.root {
		command += " --state " + o.root
	}
	return "kudo-local " + command
}
