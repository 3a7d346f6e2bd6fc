// Command manager runs the plans of Instances.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	_ "time/tzdata" // the image has no time zones, which schedules name

	"go.uber.org/zap/zapcore"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"kudo.dev/kudo/pkg/controllers"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/explore/webhook"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/pkg/storedversions"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == runner.PipeCommand {
		os.Exit(pipe(ctrl.SetupSignalHandler(), os.Stdout, os.Stderr, os.Args[2:]))
	}
	limitMemory(os.Getenv(memoryLimit), os.Getenv("GOMEMLIMIT"))
	var o controllers.Options
	flag.StringVar(&o.Namespace, "namespace", "kudo-system", "namespace of the manager: its lease and webhook certificate are there")
	secure := flag.Bool("metrics-secure", true, "serve the metrics by https, and to who shows a token that may get /metrics (ClusterRole "+
		"kudo-metrics-reader) only")
	flag.StringVar(&o.MetricsCertDir, "metrics-cert-dir", "", "folder with tls.crt and tls.key of the metrics; default a certificate that "+
		"is made at each start")
	flag.IntVar(&o.WebhookPort, "webhook-port", 9443, "port of the admission webhooks; 0 turns them off")
	flag.StringVar(&o.WebhookAddress, "webhook-bind-address", "", "IP address that the webhooks listen on; default all of them")
	flag.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/cert", "folder that the webhooks' serving certificate is written to")
	flag.BoolVar(&o.CertRotation, "webhook-cert-rotation", true, "make and renew the webhooks' certificate; false if another program, such "+
		"as cert-manager, does")
	flag.BoolVar(&o.LeaderElection, "leader-elect", true, "let several managers run, of which one works")
	flag.IntVar(&o.ScheduledRuns, "scheduled-runs", 20, "how many runs of schedules may be running at once; what is due beyond them waits")
	flag.IntVar(&o.MigrationRate, "migration-rate", storedversions.DefaultRate, "how many objects are rewritten in a second when the storage "+
		"version of their CustomResourceDefinition has changed; 0 for no bound")
	flag.IntVar(&o.Workers, "workers", 12, "how many Instances are worked on at a time; those of one namespace have two thirds of them")
	flag.StringVar(&o.PipeImage, "pipe-image", "", "image of the container that the files of Pipe tasks are read from, with its digest: "+
		"this manager's own, or a copy of it, name@sha256:…; Pipe tasks fail without one")
	unpinned := flag.Bool("allow-unpinned-pipe-image", false, "take a --pipe-image without a digest: who moves its tag gets at the files of "+
		"Pipe tasks")
	tarballs(&o)
	explore(&o)
	hub(&o)
	addresses(&o)
	log := zap.Options{TimeEncoder: zapcore.ISO8601TimeEncoder}
	log.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(newLogger(&log))
	if o.ScheduledRuns < 1 {
		fail(fmt.Errorf("--scheduled-runs is %d", o.ScheduledRuns), "invalid flag: at least one run of a schedule must be able to run")
	}
	o.PlainMetrics = !*secure
	if o.PipeImage == "" || !*unpinned {
		o.PipeRefusal = settings.CheckPipeImage(o.PipeImage)
	}

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

// tarballs are the flags of CRD tarballs.
func tarballs(o *controllers.Options) {
	cache, limits := &o.Tarballs.Cache, crdtarball.DefaultLimits()
	cache.Limits = limits
	flag.StringVar(&cache.Dir, "cache-dir", crdtarball.DefaultDir, "folder of the cache of CRD tarballs")
	flag.Int64Var(&cache.MaxBytes, "crd-cache-size", crdtarball.DefaultMaxBytes, "size in bytes from which tarballs are evicted that were "+
		"not used for long")
	flag.Int64Var(&cache.Limits.Compressed, "crd-max-compressed", limits.Compressed, "largest tarball, in bytes")
	flag.Int64Var(&cache.Limits.Unpacked, "crd-max-unpacked", limits.Unpacked, "largest content of a tarball, in bytes")
	flag.Int64Var(&cache.Limits.File, "crd-max-file", limits.File, "largest file in a tarball, in bytes")
	flag.Int64Var(&cache.Limits.Ratio, "crd-max-ratio", limits.Ratio, "how many times as large as the tarball its content may be")
	flag.IntVar(&cache.Limits.Entries, "crd-max-entries", limits.Entries, "how many entries a tarball may have")
	flag.IntVar(&cache.Limits.Depth, "crd-max-depth", limits.Depth, "how deep a path in a tarball may be")
	flag.IntVar(&cache.Limits.Name, "crd-max-name", limits.Name, "how long a part of a path in a tarball may be, in bytes")
	o.Tarballs.Access.Proxy = http.ProxyFromEnvironment
}

// explore are the flags of explore webhooks.
func explore(o *controllers.Options) {
	access := &o.Explore
	flag.StringVar(&access.CertFile, "explore-client-cert-file", "", "file of the certificate, in PEM format, that explore webhooks are "+
		"shown which ask for one; it is read again when it changes")
	flag.StringVar(&access.KeyFile, "explore-client-key-file", "", "file of the key of --explore-client-cert-file")
	flag.StringVar(&access.Proxy, "explore-proxy", "", "URL of the proxy for explore webhooks that are configured by a url; those behind a "+
		"Service are called without one")
	flag.DurationVar(&access.MaxTimeout, "explore-max-timeout", webhook.DefaultMaxTimeout, "longest time of a call of an explore webhook, "+
		"whatever its timeoutSeconds; from 1s to 30s")
}

// hub are the flags of a manager on a hub.
func hub(o *controllers.Options) {
	flag.BoolVar(&o.Hub, "hub", false, "place the Instances of a hub on clusters, and run no plans")
	flag.StringVar(&o.ClustersEngine, "clusters-engine", controllers.KarmadaEngine, "what carries Instances to clusters: karmada, or "+
		"inventory for the clusters that ClusterProfiles describe")
	flag.StringVar(&o.ClusterNamespace, "cluster-namespace", "", "namespace of the ClusterProfiles that spec.placement names without one; "+
		"default that of the manager")
	flag.StringVar(&o.ProviderFile, "clusterprofile-provider-file", "", "file of the programs that give credentials of ClusterProfiles, "+
		"in JSON")
	flag.StringVar(&o.KarmadaLease, "karmada-lease", "karmada-system/karmada-controller-manager", "NAMESPACE/NAME of the Lease that shows "+
		"that Karmada's controllers are alive")
}

// addresses are the flags of what is served beside the webhooks.
func addresses(o *controllers.Options) {
	flag.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8443", "address of the metrics; 0 turns them off")
	flag.StringVar(&o.HealthAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.Func("pprof-bind-address", "loopback `address` and port, such as 127.0.0.1:6060, that profiles for go tool pprof are served at; "+
		"default none", func(address string) error {
		o.ProfileAddress = address
		return checkProfileAddress(address)
	})
}

// checkProfileAddress returns an error if other machines could read profiles at an address, since profiles are served to any client.
func checkProfileAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return errors.New("other machines could read the profiles there: name a loopback address, such as 127.0.0.1:6060, and use " +
			"kubectl port-forward")
	}
	return nil
}

func fail(err error, what string) {
	ctrl.Log.Error(err, what)
	os.Exit(1)
}
