// Package admin has the commands that install, inspect and remove kudo on a cluster.
package admin

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

type initOptions struct {
	env *command.Env

	kudoinit.Options
	dryRun     bool
	output     string
	wait       bool
	kubeconfig string
	token      command.Seconds
	tag        string
	registry   string
	selfSigned bool
	// chosen is set if flags say where the manager runs.
	chosen bool

	upgrade, downgrade, verify, clientOnly bool

	remove, crds bool
	instances    string

	settings settingFlags
	values   valueFlags

	rotate, dropOld bool
	// waitTime is how long to wait until kudo is ready or gone, and how long an upgrade waits for plans that the new version
	// would not go on with.
	waitTime    command.Seconds
	waitTimeSet bool
	// metricsSet and certManagerSet are set if --insecure-metrics and --cert-manager were given: otherwise what there is stays.
	metricsSet, certManagerSet bool
}

// NewInit returns the command init.
func NewInit(env *command.Env) *cobra.Command {
	o := &initOptions{env: env, waitTime: command.DefaultWait, token: command.Seconds(kudoinit.DefaultTokenDuration)}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install kudo on a cluster: CRDs, rights, webhooks and the manager",
		Long: `Install kudo on the cluster of the current context, or bring it up to date; check it, or remove it.

  kubectl kudo init --wait                        install, and wait until the manager runs
  kubectl kudo init --upgrade --wait              bring an installation up to date, also one of KUDO; plans go on
  kubectl kudo init --verify                      check an installation
  kubectl kudo init --rotate-history-key          seal the records of runs with a new key from now on
  kubectl kudo init --remove --dry-run            say what a removal would delete, what stays, and why
  kubectl kudo init --dry-run -o yaml             print what would be installed
  kubectl kudo init --external-manager \
    --manager-kubeconfig manager.kubeconfig       for development: the manager runs outside of the cluster, with a
                                                  kubeconfig that has the rights of its ServiceAccount`,
		Args: command.ExactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.waitTimeSet = cmd.Flags().Changed("wait-time")
			o.certManagerSet = cmd.Flags().Changed("cert-manager")
			o.metricsSet = cmd.Flags().Changed("insecure-metrics")
			o.settings.given = cmd.Flags().Changed
			return o.run(cmd.Context())
		},
	}
	o.add(cmd.Flags())
	return cmd
}

func (o *initOptions) add(f *pflag.FlagSet) {
	f.BoolVar(&o.CRDsOnly, "crd-only", false, "install the CRDs only")
	f.BoolVarP(&o.clientOnly, "client-only", "c", false, "set up the folder of repositories of --home only, and touch no cluster")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be installed or removed, and change nothing")
	f.StringVarP(&o.output, "output", "o", "", "format of --dry-run and --verify: yaml or json")
	f.BoolVarP(&o.wait, "wait", "w", false, "wait until kudo is ready")
	f.Var(&o.waitTime, "wait-time", "how long to wait at most with --wait and --remove, and with --upgrade for plans that the new version would not go on with, for which 0s does not wait: seconds, or a duration such as 5m")
	f.StringVarP(&o.Image, "kudo-image", "i", "", "image of the manager")
	f.StringVar(&o.PullPolicy, "kudo-image-pull-policy", "", "when to pull the image: Always, Never or IfNotPresent")
	f.BoolVar(&o.InsecureMetrics, "insecure-metrics", false, "serve the manager's metrics by plain HTTP to every client (default HTTPS, for clients that may get /metrics)")
	f.Int32Var(&o.Replicas, "manager-replicas", 0, "replicas of the manager, of which one leads and all serve webhooks (default those that it has, or else 2 if the cluster has several nodes that take pods)")
	f.StringVar(&o.PipeImage, "pipe-image", "", "image that the files of Pipe tasks are read from, with its digest: a copy of the manager's, name@sha256:… (default the manager's own)")
	f.StringVar(&o.tag, "version", "", "version of kudo to install, which must be this command's")
	f.StringVar(&o.registry, "image-registry", "", "registry, and folders in it, that holds a copy of the manager's image: HOST[/PREFIX] (default that of the release)")
	f.StringVar(&o.Account, "service-account", "", "existing ServiceAccount for the manager to run under (default: "+kudoinit.ServiceAccount+", which is made, or the one that it has)")
	f.BoolVar(&o.CertManager, "cert-manager", false, "let cert-manager issue the webhooks' certificate, instead of the manager (default: as it is)")
	f.BoolVar(&o.selfSigned, "unsafe-self-signed-webhook-ca", false, "no effect: without --cert-manager, the manager issues the certificate, and renews it")
	f.BoolVar(&o.External, "external-manager", false, "leave the manager out: it runs outside of the cluster")
	f.StringVar(&o.WebhookURL, "webhook-url", "", "where an external manager serves the webhooks, such as https://localhost:9443")
	f.StringVar(&o.kubeconfig, "manager-kubeconfig", "", "file to write an external manager's kubeconfig to")
	o.settings.add(f)
	o.values.add(f)
	f.Var(&o.token, "token-duration", "how long the token of an external manager's kubeconfig is good, at most 8760h; kubectl kudo token renews it")
	f.BoolVar(&o.upgrade, "upgrade", false, "bring an installation up to date; replaces KUDO's manager, if that is there")
	f.BoolVar(&o.downgrade, "allow-downgrade", false, "install an older version over a newer one")
	f.BoolVar(&o.verify, "verify", false, "check an installation, and say what is wrong")
	f.BoolVar(&o.remove, "remove", false, "remove kudo; its CRDs stay, and with them what they hold")
	f.BoolVar(&o.crds, "remove-crds", false, "with --remove: remove the CRDs too, and so all Operators, OperatorVersions and Instances")
	f.BoolVar(&o.rotate, "rotate-history-key", false, "make a new key for the records of runs; the old ones go on opening what they have sealed")
	f.BoolVar(&o.dropOld, "drop-old", false, "with --rotate-history-key, for a key that has leaked: drop the old ones; plans that run fail, and are to be retried")
	f.StringVar(&o.instances, "instances", "", "with --remove, while there are Instances: uninstall (all of them) or keep (what they hold)")
}

func (o *initOptions) validate() error {
	switch {
	case o.output != "" && o.output != "yaml" && o.output != "json":
		return command.UsageError("invalid output format %q: only yaml and json are known", o.output)
	case o.output != "" && (!o.dryRun && !o.verify || o.remove):
		return command.UsageError("--output goes with --dry-run and --verify")
	case o.wait && o.dryRun:
		return command.UsageError("--wait and --dry-run exclude each other")
	case o.waitTimeSet && !o.wait && !o.remove && !o.upgrade:
		return command.UsageError("--wait-time goes with --wait, --remove and --upgrade")
	case o.WebhookURL != "" && !o.External, o.kubeconfig != "" && !o.External:
		return command.UsageError("--webhook-url and --manager-kubeconfig go with --external-manager")
	case kudoinit.CheckTokenDuration(time.Duration(o.token)) != nil:
		return command.UsageError("%s", kudoinit.CheckTokenDuration(time.Duration(o.token)))
	case o.token != command.Seconds(kudoinit.DefaultTokenDuration) && o.kubeconfig == "":
		return command.UsageError("--token-duration goes with --manager-kubeconfig")
	case o.CRDsOnly && o.External:
		return command.UsageError("--crd-only and --external-manager exclude each other")
	case o.PullPolicy != "" && o.PullPolicy != "Always" && o.PullPolicy != "Never" && o.PullPolicy != "IfNotPresent":
		return command.UsageError("--kudo-image-pull-policy %q: must be Always, Never or IfNotPresent", o.PullPolicy)
	case o.Image != "" && o.tag != "":
		return command.UsageError("--kudo-image and --version exclude each other")
	case o.Image != "" && o.registry != "":
		return command.UsageError("--kudo-image and --image-registry exclude each other")
	case o.registry != "" && (o.External || o.CRDsOnly):
		return command.UsageError("--image-registry cannot be used with --external-manager and --crd-only, which install no manager")
	case o.registry != "" && kudoinit.Image == "":
		return command.UsageError("--image-registry: %s", noImage)
	case o.tag != "" && strings.TrimPrefix(o.tag, "v") != strings.TrimPrefix(command.Version, "v"):
		return command.UsageError("this is kubectl kudo %s, and it knows the manager of %[1]s only: use kubectl kudo %[2]s, or give --kudo-image", command.Version, o.tag)
	case o.PipeImage != "" && settings.CheckPipeImage(o.PipeImage) != nil:
		return command.UsageError("--pipe-image: %s", settings.CheckPipeImage(o.PipeImage))
	case o.InsecureMetrics && o.External:
		return command.UsageError("--insecure-metrics cannot be used with --external-manager: give --metrics-secure=false to the manager")
	case o.PipeImage != "" && o.External:
		return command.UsageError("--pipe-image cannot be used with --external-manager: give it to the manager")
	case o.Replicas < 0:
		return command.UsageError("--manager-replicas %d: name 1 or more", o.Replicas)
	case o.Replicas > 0 && o.External:
		return command.UsageError("--manager-replicas cannot be used with --external-manager: start as many managers")
	case o.CertManager && o.selfSigned:
		return command.UsageError("--cert-manager and --unsafe-self-signed-webhook-ca exclude each other")
	case o.CertManager && o.External:
		return command.UsageError("--cert-manager and --external-manager exclude each other: the certificate is for the Service")
	}
	if err := o.settings.validate(); err != nil {
		return err
	}
	return o.validateModes()
}

// readyTime is how long to wait at most until kudo is ready or gone. An upgrade that does not wait for plans waits for that as long
// as without --wait-time.
func (o *initOptions) readyTime() time.Duration {
	if o.upgrade && o.waitTime == 0 {
		return time.Duration(command.DefaultWait)
	}
	return time.Duration(o.waitTime)
}

// validateModes refuses flags of one thing to do together with another one.
func (o *initOptions) validateModes() error {
	modes := 0
	for _, mode := range []bool{o.upgrade, o.verify, o.remove, o.clientOnly, o.rotate} {
		if mode {
			modes++
		}
	}
	installs := o.CRDsOnly || o.wait || o.External || o.Image != "" || o.tag != "" || o.registry != "" || o.PullPolicy != "" || o.Account != "" || o.CertManager || o.downgrade ||
		o.PipeImage != "" || o.metricsSet || o.Replicas != 0 || o.settings.any() || o.values.any()
	switch {
	case modes > 1:
		return command.UsageError("--upgrade, --verify, --remove, --rotate-history-key and --client-only exclude each other")
	case (o.verify || o.remove || o.clientOnly || o.rotate) && installs:
		return command.UsageError("--verify, --remove, --rotate-history-key and --client-only take no flags of an installation")
	case (o.verify || o.clientOnly || o.rotate) && o.dryRun:
		return command.UsageError("--dry-run goes without --verify, --rotate-history-key and --client-only, which install nothing")
	case o.dropOld && !o.rotate:
		return command.UsageError("--drop-old goes with --rotate-history-key")
	case o.upgrade && o.CRDsOnly:
		return command.UsageError("--upgrade and --crd-only exclude each other")
	case !o.remove && (o.crds || o.instances != ""):
		return command.UsageError("--remove-crds and --instances go with --remove")
	case o.instances != "" && o.instances != string(kudoinit.KeepInstances) && o.instances != string(kudoinit.UninstallInstances):
		return command.UsageError("--instances=%s: must be uninstall or keep", o.instances)
	}
	return nil
}

func (o *initOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	switch {
	case o.clientOnly:
		return initHome(ctx, o.env)
	case o.verify:
		return verifyInstall(ctx, o.env, o.output)
	case o.remove:
		return o.removeInstall(ctx)
	case o.rotate:
		return rotateHistoryKey(ctx, o.env, o.dropOld)
	}
	o.Version = command.Version
	o.chosen = o.External || o.CRDsOnly || o.CertManager || o.Image != "" || o.tag != "" || o.registry != "" || o.PullPolicy != ""
	o.Namespace = kudoinit.DefaultNamespace
	if n := o.env.Flags.Namespace; n != nil && *n != "" {
		o.Namespace = *n
	}
	if err := o.settings.apply(&o.Settings); err != nil {
		return err
	}
	if o.dryRun {
		return o.printObjects()
	}
	c, config, _, err := o.env.Connect()
	if err != nil {
		return err
	}
	if err := checkKubernetes(o.env, config); err != nil {
		return err
	}
	live, err := o.prepare(ctx, c)
	if err != nil {
		return err
	}
	objs, err := kudoinit.Objects(o.Options)
	if err != nil { // before anything is removed
		return err
	}
	if objs, err = o.keepArgs(ctx, c, live, objs); err != nil {
		return err
	}
	change, err := live.Compare(ctx, c, objs, o.Values, o.values.force)
	if err != nil {
		return err
	}
	if err := o.awaitSealed(ctx, c); err != nil {
		return err
	}
	if live.Predecessor != "" {
		o.env.Progressf("waiting: KUDO's manager to stop")
		if err := kudoinit.Replace(ctx, c, live, func(obj client.Object) { o.env.Printf("%s of KUDO removed", obj.GetName()) }); err != nil {
			return err
		}
	}
	return o.installAll(ctx, c, config, change)
}

// checkKubernetes refuses a cluster that is too old for kudo, and warns of one that kudo was not tested with.
func checkKubernetes(env *command.Env, config *rest.Config) error {
	cluster, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	warning, err := kudoinit.CheckKubernetes(cluster)
	if warning != "" {
		env.Warnf("%s", warning)
	}
	return err
}

// printObjects prints what would be installed on a cluster without kudo.
func (o *initOptions) printObjects() error {
	if err := o.chooseValues(&kudoinit.InstalledState{}); err != nil {
		return err
	}
	objs, err := kudoinit.Objects(o.Options)
	if err != nil {
		return err
	}
	if o.Image == "" && !o.External && !o.CRDsOnly {
		o.env.Warnf("the Deployment names the image kudo-manager:dev, which no registry has: %s", noImage)
	}
	if !o.CRDsOnly {
		o.env.Warnf("%s", keyNote(o.Namespace))
	}
	return o.env.PrintObjects(o.output, objs)
}

// prepare looks at what is there already, and says why it must not be installed over.
func (o *initOptions) prepare(ctx context.Context, c client.Client) (*kudoinit.InstalledState, error) {
	live, err := kudoinit.Look(ctx, c)
	if err != nil {
		return nil, err
	}
	if n := o.env.Flags.Namespace; live.Bound && (n == nil || *n == "") {
		o.Namespace = live.Namespace
	}
	if err := o.chooseValues(live); err != nil {
		return nil, err
	}
	if live.IsExternal() && !o.chosen {
		o.env.Warnf("the manager runs outside of the cluster (%s), and stays there: --kudo-image installs one in the cluster", live.WebhookURL)
		o.External, o.WebhookURL = true, live.WebhookURL
	}
	if o.Replicas == 0 && !o.External && !o.CRDsOnly {
		o.Replicas = kudoinit.DefaultReplicas(ctx, c)
	}
	if o.Account == "" && live.Bound {
		o.Account = live.Account
	}
	if !o.certManagerSet {
		o.CertManager = live.CertManager
	}
	if !o.metricsSet {
		o.InsecureMetrics = live.InsecureMetrics
	}
	o.Settings = live.Settings
	if err := o.settings.apply(&o.Settings); err != nil {
		return nil, err
	}
	if err := live.CheckDecided(ctx, c, o.settings.strict || o.settings.privileged || o.CRDsOnly); err != nil {
		return nil, err
	}
	if err := live.CheckVersion(o.Options, o.upgrade, o.downgrade); err != nil {
		return nil, err
	}
	if o.Account != "" && o.Account != kudoinit.ServiceAccount {
		if err := kudoinit.Account(ctx, c, o.Namespace, o.Account); err != nil {
			return nil, err
		}
	}
	if o.CertManager {
		if err := kudoinit.CertManager(c); err != nil {
			return nil, err
		}
	}
	if !o.CRDsOnly {
		if err := historyKey(c, o.Namespace).Check(ctx); err != nil {
			return nil, err
		}
	}
	if o.Image == "" && !o.External && !o.CRDsOnly {
		return nil, command.UsageError("%s", noImage)
	}
	return live, nil
}

func (o *initOptions) installAll(ctx context.Context, c client.Client, config *rest.Config, change *kudoinit.Change) error {
	if err := o.apply(ctx, c, change); err != nil {
		return err
	}
	if o.settings.given(settings.RunAsEverywhereKey) && !o.settings.runAsEverywhere {
		if err := dropRunAs(ctx, o.env, c); err != nil {
			return err
		}
	}
	if o.wait {
		ctx, cancel := context.WithTimeout(ctx, o.readyTime())
		defer cancel()
		err := kudoinit.Wait(ctx, c, change.Objects, func(message string) { o.env.Progressf("waiting: %s", message) })
		if err == nil && !o.CRDsOnly {
			err = kudoinit.WaitForPolicies(ctx, c)
		}
		if err != nil {
			return command.WithCode(command.ExitTimeout, err)
		}
	}
	if o.kubeconfig != "" {
		account := o.Account
		if account == "" {
			account = kudoinit.ServiceAccount
		}
		ends, err := kudoinit.Kubeconfig(ctx, c, config, o.Namespace, account, o.kubeconfig, time.Duration(o.token))
		if err != nil {
			return err
		}
		o.env.Printf("kubeconfig of the manager written to %s", o.kubeconfig)
		o.env.Printf("its token, in %s, is good until %s: kubectl kudo token --manager-kubeconfig %s renews it", kudoinit.TokenFile(o.kubeconfig), ends.UTC().Format(time.RFC3339), o.kubeconfig)
	}
	return nil
}
