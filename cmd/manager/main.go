// Command manager runs the plans of Instances.
package main

import (
	"flag"
	"os"

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/pkg/controllers"
)

func main() {
	var o controllers.Options
	flag.StringVar(&o.Namespace, "namespace", "kudo-system", "namespace of the manager: its lease and webhook certificate are there")
	flag.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics; 0 turns them off")
	flag.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.IntVar(&o.WebhookPort, "webhook-port", 9443, "port of the admission webhooks; 0 turns them off")
	flag.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/cert", "folder that the webhooks' serving certificate is written to")
	flag.BoolVar(&o.LeaderElection, "leader-elect", true, "let several managers run, of which one works")
	flag.IntVar(&o.Workers, "workers", 8, "how many Instances are worked on at a time")
	flag.StringVar(&o.PipeImage, "pipe-image", "busybox", "image of the container that the files of Pipe tasks are read from; it needs sh, sleep and cat")
	log := zap.Options{TimeEncoder: zapcore.ISO8601TimeEncoder}
	log.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&log)))

	ctx := ctrl.SetupSignalHandler()
	config, err := ctrl.GetConfig()
	if err != nil {
		fail(err, "cannot find a cluster: run in one, or set --kubeconfig")
	}
	mgr, err := controllers.NewManager(ctx, config, o)
	if err != nil {
		fail(err, "cannot start")
	}
	if err := mgr.Start(ctx); err != nil {
		fail(err, "ended")
	}
}

func fail(err error, what string) {
	ctrl.Log.Error(err, what)
	os.Exit(1)
}
