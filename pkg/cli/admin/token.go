package admin

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
)

type tokenOptions struct {
	env *command.Env

	kubeconfig, account string
	duration            command.Seconds
}

// NewToken returns the command token.
func NewToken(env *command.Env) *cobra.Command {
	o := &tokenOptions{env: env, duration: command.Seconds(kudoinit.DefaultTokenDuration)}
	cmd := &cobra.Command{
		Use:   "token --manager-kubeconfig FILE",
		Short: "Renew the token of an external manager",
		Long: `Renew the token of a manager outside of the cluster, whose kubeconfig kubectl kudo init --manager-kubeconfig wrote. A manager
that runs continues with the new token within a minute. The command needs the right to make tokens of the ServiceAccount, which
the manager itself does not have.

  kubectl kudo token --manager-kubeconfig manager.kubeconfig`,
		Args: command.ExactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.kubeconfig, "manager-kubeconfig", "", "kubeconfig of the manager")
	cmd.Flags().StringVar(&o.account, "service-account", kudoinit.ServiceAccount, "ServiceAccount that the manager runs under")
	cmd.Flags().Var(&o.duration, "token-duration", "how long the token is good, at most 8760h")
	return cmd
}

func (o *tokenOptions) run(ctx context.Context) error {
	if o.kubeconfig == "" {
		return command.UsageError("--manager-kubeconfig is missing: name the file that kubectl kudo init --manager-kubeconfig wrote")
	}
	if err := kudoinit.CheckTokenDuration(time.Duration(o.duration)); err != nil {
		return command.UsageError("%s", err)
	}
	path := kudoinit.TokenFile(o.kubeconfig)
	if _, err := os.Stat(path); err != nil {
		return command.UsageError("%s is not there: kubectl kudo init --external-manager --manager-kubeconfig %s writes it", path, o.kubeconfig)
	}
	c, _, _, err := o.env.Connect()
	if err != nil {
		return err
	}
	namespace := kudoinit.DefaultNamespace
	if n := o.env.Flags.Namespace; n != nil && *n != "" {
		namespace = *n
	}
	ends, err := kudoinit.RenewToken(ctx, c, client.ObjectKey{Namespace: namespace, Name: o.account}, path, time.Duration(o.duration))
	if err != nil {
		return err
	}
	o.env.Printf("token in %s renewed: it is good until %s", path, ends.UTC().Format(time.RFC3339))
	return nil
}
