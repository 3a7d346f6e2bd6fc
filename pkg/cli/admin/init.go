// Package admin has the commands that install, inspect and remove kudo on a cluster.
package admin

import (
	"context"
	"time"

	"github.com/spf13/cobra"
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
	// dryRun prints the objects; diff prints how those on the cluster would change.
	dryRun     command.DryRun
	diff       bool
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
	// would not continue with.
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
  kubectl kudo init --upgrade --wait              bring an installation up to date, also one of KUDO; plans continue
  kubectl kudo init --verify                      check an installation
  kubectl kudo init --rotate-history-key          seal the records of runs with a new key from now on
  kubectl kudo init --remove --dry-run            show what a removal would do; the same with --upgrade
  kubectl kudo init --dry-run -o yaml             print what would be installed on a cluster without kudo
  kubectl kudo init --diff                        show how the objects on the cluster would change
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

// readyTime is how long to wait at most until kudo is ready or gone. An upgrade that does not wait for plans waits for that as long
// as without --wait-time.
func (o *initOptions) readyTime() time.Duration {
	if o.upgrade && o.waitTime == 0 {
		return time.Duration(command.DefaultWait)
	}
	return time.Duration(o.waitTime)
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
	if o.dryRun.IsSet() && !o.upgrade {
		return o.printObjects()
	}
	c, config, _, err := o.env.Connect()
	if err != nil {
		return err
	}
	live, change, err := o.computeChange(ctx, c, config)
	switch {
	case o.dryRun.IsSet():
		return o.printUpgrade(ctx, c, live, change, err)
	case err != nil:
		return err
	case o.diff:
		return o.printDiff(ctx, c, live, change)
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

// computeChange returns what is on the cluster, and the change to it. It writes nothing.
func (o *initOptions) computeChange(ctx context.Context, c client.Client,
	config *rest.Config) (*kudoinit.InstalledState, *kudoinit.Change, error) {
	if err := checkKubernetes(o.env, config); err != nil {
		return nil, nil, err
	}
	live, err := o.prepare(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	objs, err := kudoinit.Objects(o.Options)
	if err != nil {
		return nil, nil, err
	}
	if objs, err = o.keepArgs(ctx, c, live, objs); err != nil {
		return nil, nil, err
	}
	change, err := live.Compare(ctx, o.previewClient(c), objs, o.Values, o.values.force)
	return live, change, err
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
	if !o.CRDsOnly && !o.Values.Hub {
		o.env.Warnf("%s", keyNote(o.Namespace))
	}
	return o.env.PrintObjects(o.output, objs)
}

// prepare reads what is installed, completes the options by it, and refuses what must not be installed over it.
func (o *initOptions) prepare(ctx context.Context, c client.Client) (*kudoinit.InstalledState, error) {
	live, err := kudoinit.ReadState(ctx, c)
	if err != nil {
		return nil, err
	}
	if n := o.env.Flags.Namespace; live.Bound && (n == nil || *n == "") {
		o.Namespace = live.Namespace
	}
	if err := live.CheckRelease(); err != nil {
		return nil, err
	}
	if err := o.completeFrom(live); err != nil {
		return nil, err
	}
	if err := live.CheckDecided(ctx, c, o.settings.strict || o.settings.privileged || o.CRDsOnly); err != nil {
		return nil, err
	}
	if err := live.CheckVersion(o.Options, o.upgrade, o.downgrade); err != nil {
		return nil, err
	}
	if err := o.checkPrerequisites(ctx, c); err != nil {
		return nil, err
	}
	if o.Image == "" && !o.External && !o.CRDsOnly {
		return nil, command.UsageError("%s", noImage)
	}
	return live, nil
}

// completeFrom takes from what is installed each option that no flag gives.
func (o *initOptions) completeFrom(live *kudoinit.InstalledState) error {
	if err := o.chooseValues(live); err != nil {
		return err
	}
	if live.IsExternal() && !o.chosen {
		o.env.Warnf("the manager runs outside of the cluster (%s), and stays there: --kudo-image installs one in the cluster", live.WebhookURL)
		o.External, o.WebhookURL = true, live.WebhookURL
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
	return o.settings.apply(&o.Settings)
}

// checkPrerequisites checks that the cluster has what the options rely on: the ServiceAccount, cert-manager, the CRDs of monitoring, and
// a key for the records of runs that is whole.
func (o *initOptions) checkPrerequisites(ctx context.Context, c client.Client) error {
	if o.Account != "" && o.Account != kudoinit.ServiceAccount {
		if err := kudoinit.Account(ctx, c, o.Namespace, o.Account); err != nil {
			return err
		}
	}
	if o.CertManager {
		if err := kudoinit.CertManager(c); err != nil {
			return err
		}
	}
	if o.Values.Monitoring && !o.CRDsOnly && !o.External {
		if err := kudoinit.Monitoring(c); err != nil {
			return err
		}
	}
	if o.CRDsOnly || o.Values.Hub {
		return nil
	}
	return historyKey(c, o.Namespace).Check(ctx)
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
		key := client.ObjectKey{Namespace: o.Namespace, Name: account}
		ends, err := kudoinit.Kubeconfig(ctx, c, config, key, o.kubeconfig, time.Duration(o.token))
		if err != nil {
			return err
		}
		o.env.Printf("kubeconfig of the manager written to %s", o.kubeconfig)
		o.env.Printf("its token, in %s, is good until %s: kubectl kudo token --manager-kubeconfig %s renews it", kudoinit.TokenFile(o.kubeconfig),
			ends.UTC().Format(time.RFC3339), o.kubeconfig)
	}
	return nil
}
