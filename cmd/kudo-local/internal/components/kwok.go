package components

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"

	"kudo.dev/kudo/cmd/kudo-local/internal/podlogs"
	"kudo.dev/kudo/cmd/kudo-local/internal/volumes"
)

// runKwok runs kwok, which plays the kubelets, and beside it the loop that
// plays the volume provisioner, and the server of the logs of pods: all stand
// in for what runs on real nodes.
func runKwok() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := kwokAndOthers(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
		return 1
	}
	return 0
}

func kwokAndOthers(ctx context.Context) error {
	// kwok's own main reads its configuration before its command exists.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	kubeconfig := flags.String("kubeconfig", "", "")
	logs := logsFlags(flags)
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		return fmt.Errorf("reading the stages: %w", err)
	}

	command := kwok.NewCommand(ctx)
	command.Version = "" // its flag is taken: Kubernetes has a global --version
	command.PersistentFlags().AddFlag(flags.Lookup("config"))
	command.PersistentFlags().AddFlag(flags.Lookup("v"))
	flags.VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, logsPrefix) {
			command.PersistentFlags().AddFlag(f)
		}
	})

	listener, err := net.Listen("tcp", logs.address) // before kwok says that it is ready
	if err != nil {
		return fmt.Errorf("listening for requests for logs: %w", err)
	}
	if err := deleteNodeLeases(ctx, *kubeconfig); err != nil { // the leases expire by themselves
		fmt.Fprintf(os.Stderr, "kwok: %v\n", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 3)
	go func() { ended <- serveLogs(ctx, listener, logs.files, *kubeconfig) }()
	go func() { ended <- bindVolumes(ctx, *kubeconfig) }()
	go func() { ended <- command.ExecuteContext(ctx) }()
	return <-ended
}

// deleteNodeLeases deletes the leases of the nodes, which a former process of
// kwok held under a random name. kwok plays no pod of a node whose lease another
// process holds, which would be so for 40 seconds. No other process runs.
func deleteNodeLeases(ctx context.Context, kubeconfig string) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("deleting the leases of the nodes: %w", err)
	}
	return nil
}

// newClient returns a client for what stands in for nodes beside kwok.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of kwok: %w", err)
	}
	rest.QPS, rest.Burst = 200, 400
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("making the client of kwok: %w", err)
	}
	return client, nil
}

func bindVolumes(ctx context.Context, kubeconfig string) error {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the volume loop: %w", err)
	}
	return volumes.Run(ctx, rest, volumes.Local{})
}

// logsPrefix is that of the flags that are not kwok's own.
const logsPrefix = "pod-logs-"

type logsConfig struct {
	address string
	files   podlogs.Files
}

func logsFlags(flags *pflag.FlagSet) *logsConfig {
	c := &logsConfig{}
	flags.StringVar(&c.address, logsPrefix+"address", "", "where the API server asks for logs")
	flags.StringVar(&c.files.Cert, logsPrefix+"cert-file", "", "certificate of the server of logs")
	flags.StringVar(&c.files.Key, logsPrefix+"key-file", "", "its key")
	flags.StringVar(&c.files.ClientCA, logsPrefix+"client-ca-file", "", "authority of its clients")
	return c
}

func serveLogs(ctx context.Context, listener net.Listener, files podlogs.Files, kubeconfig string) error {
	config, err := files.TLS()
	if err != nil {
		return err
	}
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	return podlogs.Serve(ctx, listener, config, podlogs.PodsFn(func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
		return client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	}))
}
