package admin

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

func (o *initOptions) add(f *pflag.FlagSet) {
	f.BoolVar(&o.CRDsOnly, "crd-only", false, "install the CRDs only")
	f.BoolVarP(&o.clientOnly, "client-only", "c", false, "set up the folder of repositories of --home only, and touch no cluster")
	o.dryRun.Add(f, "print what would be installed; with --upgrade and --remove, what would be created, changed and "+
		"deleted, and what stays, by dry runs (server) or by reads alone (client); change nothing")
	f.BoolVar(&o.diff, "diff", false, "print how the objects on the cluster would change, and change nothing")
	f.StringVarP(&o.output, "output", "o", "", "format of --dry-run and --verify: yaml or json; with --upgrade and --remove also text "+
		"or markdown")
	f.BoolVarP(&o.wait, "wait", "w", false, "wait until kudo is ready")
	f.Var(&o.waitTime, "wait-time", "how long to wait at most with --wait and --remove, and with --upgrade for plans that the new version "+
		"would not continue, for which 0s does not wait: seconds, or a duration such as 5m")
	f.StringVarP(&o.Image, "kudo-image", "i", "", "image of the manager")
	f.StringVar(&o.PullPolicy, "kudo-image-pull-policy", "", "when to pull the image: Always, Never or IfNotPresent")
	f.BoolVar(&o.InsecureMetrics, "insecure-metrics", false, "serve the manager's metrics by plain HTTP to every client (default HTTPS, for "+
		"clients that may get /metrics)")
	f.Int32Var(&o.Replicas, "manager-replicas", 0, "replicas of the manager, of which one leads and all serve webhooks (default those that "+
		"it has, or else 2)")
	f.StringVar(&o.PipeImage, "pipe-image", "", "image that the files of Pipe tasks are read from, with its digest: a copy of the "+
		"manager's, name@sha256:… (default the manager's own)")
	f.StringVar(&o.tag, "version", "", "version of kudo to install, which must be this command's")
	f.StringVar(&o.registry, "image-registry", "", "registry, and folders in it, that holds a copy of the manager's image: HOST[/PREFIX] "+
		"(default that of the release)")
	f.StringVar(&o.Account, "service-account", "", "existing ServiceAccount for the manager to run under (default: "+kudoinit.ServiceAccount+
		", which is made, or the one that it has)")
	f.BoolVar(&o.CertManager, "cert-manager", false, "let cert-manager issue the webhooks' certificate, instead of the manager (default: "+
		"as it is)")
	f.BoolVar(&o.selfSigned, "unsafe-self-signed-webhook-ca", false, "no effect: without --cert-manager, the manager issues the "+
		"certificate, and renews it")
	f.BoolVar(&o.External, "external-manager", false, "leave the manager out: it runs outside of the cluster")
	f.StringVar(&o.WebhookURL, "webhook-url", "", "where an external manager serves the webhooks, such as https://localhost:9443")
	f.StringVar(&o.kubeconfig, "manager-kubeconfig", "", "file to write an external manager's kubeconfig to")
	o.settings.add(f)
	o.values.add(f)
	f.Var(&o.token, "token-duration", "how long the token of an external manager's kubeconfig is good, at most 8760h; kubectl kudo token "+
		"renews it")
	f.BoolVar(&o.upgrade, "upgrade", false, "bring an installation up to date; replaces KUDO's manager, if that is there")
	f.BoolVar(&o.downgrade, "allow-downgrade", false, "install an older version over a newer one")
	f.BoolVar(&o.verify, "verify", false, "check an installation, and say what is wrong")
	f.BoolVar(&o.remove, "remove", false, "remove kudo; its CRDs stay, and with them what they hold")
	f.BoolVar(&o.crds, "remove-crds", false, "with --remove: remove the CRDs too, and so all Operators, OperatorVersions and Instances")
	f.BoolVar(&o.rotate, "rotate-history-key", false, "make a new key for the records of runs; the old ones still open what they "+
		"have sealed")
	f.BoolVar(&o.dropOld, "drop-old", false, "with --rotate-history-key, for a key that has leaked: drop the old ones; plans that run fail, "+
		"and are to be retried")
	f.StringVar(&o.instances, "instances", "", "with --remove, while there are Instances: uninstall (all of them) or keep (what they hold)")
}

func (o *initOptions) validate() error {
	switch {
	case o.previews() && command.CheckPreviewFormat(o.output) != nil:
		return command.CheckPreviewFormat(o.output)
	case o.output != "" && o.output != "yaml" && o.output != "json" && !o.previews():
		return command.UsageError("invalid output format %q: only yaml and json are known", o.output)
	case o.output != "" && !o.dryRun.IsSet() && !o.verify:
		return command.UsageError("--output requires --dry-run or --verify: add one of them")
	case o.wait && (o.dryRun.IsSet() || o.diff):
		return command.UsageError("--wait cannot be used with --dry-run and --diff, which install nothing")
	case o.dryRun.IsSet() && o.diff:
		return command.UsageError("--dry-run and --diff exclude each other: --dry-run prints objects, or what would become of them, and --diff " +
			"compares them")
	case o.waitTimeSet && !o.wait && !o.remove && !o.upgrade:
		return command.UsageError("--wait-time requires --wait, --remove or --upgrade: add one of them")
	case kudoinit.CheckTokenDuration(time.Duration(o.token)) != nil:
		return command.UsageError("%s", kudoinit.CheckTokenDuration(time.Duration(o.token)))
	case o.token != command.Seconds(kudoinit.DefaultTokenDuration) && o.kubeconfig == "":
		return command.UsageError("--token-duration requires --manager-kubeconfig: add --manager-kubeconfig")
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
		return command.UsageError("this is kubectl kudo %s, and it knows the manager of %[1]s only: use kubectl kudo %[2]s, or give --kudo-image",
			command.Version, o.tag)
	case o.PipeImage != "" && settings.CheckPipeImage(o.PipeImage) != nil:
		return command.UsageError("--pipe-image: %s", settings.CheckPipeImage(o.PipeImage))
	case o.Replicas < 0:
		return command.UsageError("--manager-replicas %d: name 1 or more", o.Replicas)
	case o.CertManager && o.selfSigned:
		return command.UsageError("--cert-manager and --unsafe-self-signed-webhook-ca exclude each other")
	}
	if err := o.validateExternal(); err != nil {
		return err
	}
	if err := o.settings.validate(); err != nil {
		return err
	}
	return o.validateModes()
}

// previews reports whether a preview is asked for, and not the objects of an installation.
func (o *initOptions) previews() bool { return o.dryRun.IsSet() && (o.upgrade || o.remove) }

// validateExternal refuses flags that cannot be used where the manager runs.
func (o *initOptions) validateExternal() error {
	switch {
	case o.WebhookURL != "" && !o.External, o.kubeconfig != "" && !o.External:
		return command.UsageError("--webhook-url and --manager-kubeconfig require --external-manager: add --external-manager")
	case o.CRDsOnly && o.External:
		return command.UsageError("--crd-only and --external-manager exclude each other")
	case o.InsecureMetrics && o.External:
		return command.UsageError("--insecure-metrics cannot be used with --external-manager: give --metrics-secure=false to the manager")
	case o.PipeImage != "" && o.External:
		return command.UsageError("--pipe-image cannot be used with --external-manager: give it to the manager")
	case o.Replicas > 0 && o.External:
		return command.UsageError("--manager-replicas cannot be used with --external-manager: start as many managers")
	case o.values.monitoring && o.External:
		return command.UsageError("--monitoring cannot be used with --external-manager: there is no Service to scrape")
	case o.CertManager && o.External:
		return command.UsageError("--cert-manager and --external-manager exclude each other: the certificate is for the Service")
	}
	return nil
}

// validateModes refuses flags of one thing to do together with another one.
func (o *initOptions) validateModes() error {
	modes := 0
	for _, mode := range []bool{o.upgrade, o.verify, o.remove, o.clientOnly, o.rotate} {
		if mode {
			modes++
		}
	}
	installs := o.CRDsOnly || o.wait || o.External || o.Image != "" || o.tag != "" || o.registry != "" || o.PullPolicy != "" ||
		o.Account != "" || o.CertManager || o.downgrade ||
		o.PipeImage != "" || o.metricsSet || o.Replicas != 0 || o.settings.any() || o.values.any()
	switch {
	case modes > 1:
		return command.UsageError("--upgrade, --verify, --remove, --rotate-history-key and --client-only exclude each other")
	case (o.verify || o.remove || o.clientOnly || o.rotate) && installs:
		return command.UsageError("--verify, --remove, --rotate-history-key and --client-only take no flags of an installation")
	case (o.verify || o.remove || o.clientOnly || o.rotate) && o.diff:
		return command.UsageError("--diff cannot be used with --verify, --remove, --rotate-history-key and --client-only")
	case (o.verify || o.clientOnly || o.rotate) && o.dryRun.IsSet():
		return command.UsageError("--dry-run cannot be used with --verify, --rotate-history-key and --client-only, which install nothing")
	case o.dropOld && !o.rotate:
		return command.UsageError("--drop-old requires --rotate-history-key: add --rotate-history-key")
	case o.upgrade && o.CRDsOnly:
		return command.UsageError("--upgrade and --crd-only exclude each other")
	case !o.remove && (o.crds || o.instances != ""):
		return command.UsageError("--remove-crds and --instances require --remove: add --remove")
	case o.instances != "" && o.instances != string(kudoinit.KeepInstances) && o.instances != string(kudoinit.UninstallInstances):
		return command.UsageError("--instances=%s: must be uninstall or keep", o.instances)
	}
	return nil
}
