package cli

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/pkg/install"
)

type tokenOptions struct {
	kubeconfig, account string
	duration            seconds
}

func (t *tool) tokenCommand() *cobra.Command {
	o := &tokenOptions{duration: seconds(install.DefaultTokenDuration)}
	cmd := &cobra.Command{
		Use:   "token --manager-kubeconfig FILE",
		Short: "Renew the token of an external manager",
		Long: `Renew the token of a manager outside of the cluster, whose kubeconfig kubectl kudo init --manager-kubeconfig wrote. A manager
that runs goes on with the new token within a minute. The command needs the right to make tokens of the ServiceAccount, which
the manager itself does not have.

  kubectl kudo token --manager-kubeconfig manager.kubeconfig`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.renewToken(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.kubeconfig, "manager-kubeconfig", "", "kubeconfig of the manager")
	cmd.Flags().StringVar(&o.account, "service-account", install.ServiceAccount, "ServiceAccount that the manager runs under")
	cmd.Flags().Var(&o.duration, "token-duration", "how long the token is good, at most 8760h")
	return cmd
}

func (t *tool) renewToken(ctx context.Context, o *tokenOptions) error {
	if o.kubeconfig == "" {
		return usage("--manager-kubeconfig is missing: name the file that kubectl kudo init --manager-kubeconfig wrote")
	}
	if err := install.CheckTokenDuration(time.Duration(o.duration)); err != nil {
		return usage("%s", err)
	}
	path := install.TokenFile(o.kubeconfig)
	if _, err := os.Stat(path); err != nil {
		return usage("%s is not there: kubectl kudo init --external-manager --manager-kubeconfig %s writes it", path, o.kubeconfig)
	}
	c, _, _, err := t.connect()
	if err != nil {
		return err
	}
	namespace := install.DefaultNamespace
	if n := t.flags.Namespace; n != nil && *n != "" {
		namespace = *n
	}
	ends, err := install.RenewToken(ctx, c, namespace, o.account, path, time.Duration(o.duration))
	if err != nil {
		return err
	}
	t.say("token in %s renewed: it is good until %s", path, ends.UTC().Format(time.RFC3339))
	return nil
}
