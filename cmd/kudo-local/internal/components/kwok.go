package components

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"

	"kudo.dev/kudo/cmd/kudo-local/internal/volumes"
)

// runKwok runs kwok, which plays the kubelets, and beside it the loop that
// plays the volume provisioner: both stand in for what runs on real nodes.
func runKwok() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := kwokAndVolumes(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return 1
	}
	return 0
}

func kwokAndVolumes(ctx context.Context) error {
	// kwok's own main reads its configuration before its command exists.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	kubeconfig := flags.String("kubeconfig", "", "")
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading the stages: %w", err)
	}

	command := kwok.NewCommand(ctx)
	command.Version = "" // its flag is taken: Kubernetes has a global --version
	command.PersistentFlags().AddFlag(flags.Lookup("config"))
	command.PersistentFlags().AddFlag(flags.Lookup("v"))

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- bindVolumes(ctx, *kubeconfig) }()
	go func() { ended <- command.ExecuteContext(ctx) }()
	return <-ended
}

func bindVolumes(ctx context.Context, kubeconfig string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the volume loop: %w", err)
	}
	return volumes.Run(ctx, rest, volumes.Local{})
}
