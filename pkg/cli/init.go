package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"kudo.dev/kudo/pkg/install"
)

type initOptions struct {
	install.Options
	dryRun      bool
	output      string
	wait        bool
	waitTimeout seconds
	kubeconfig  string
}

func (t *tool) initCommand() *cobra.Command {
	o := &initOptions{waitTimeout: defaultWait}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Install kudo on a cluster: CRDs, rights, webhooks and the manager",
		Long: `Install kudo on the cluster of the current context, or bring it up to date.

  kubectl kudo init --wait                        install, and wait until the manager runs
  kubectl kudo init --dry-run -o yaml             print what would be installed
  kubectl kudo init --external-manager \
    --manager-kubeconfig manager.kubeconfig       for development: the manager runs outside of the cluster, with a
                                                  kubeconfig that has the rights of its ServiceAccount`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.init(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.CRDsOnly, "crd-only", false, "install the CRDs only")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be installed, and install nothing")
	f.StringVarP(&o.output, "output", "o", "", "format of --dry-run: yaml or json")
	f.BoolVarP(&o.wait, "wait", "w", false, "wait until kudo is ready")
	f.Var(&o.waitTimeout, "wait-timeout", "how long to wait at most: seconds, or a duration such as 5m")
	f.StringVarP(&o.Image, "kudo-image", "i", "", "image of the manager")
	f.StringVar(&o.PullPolicy, "kudo-image-pull-policy", "", "when to pull the image: Always, Never or IfNotPresent")
	f.BoolVar(&o.External, "external-manager", false, "leave the manager out: it runs outside of the cluster")
	f.StringVar(&o.WebhookURL, "webhook-url", "", "where an external manager serves the webhooks, such as https://localhost:9443")
	f.StringVar(&o.kubeconfig, "manager-kubeconfig", "", "file to write an external manager's kubeconfig to")
	return cmd
}

func (o *initOptions) validate() error {
	switch {
	case o.output != "" && o.output != "yaml" && o.output != "json":
		return usage("invalid output format %q: only yaml and json are known", o.output)
	case o.output != "" && !o.dryRun:
		return usage("--output goes with --dry-run")
	case o.wait && o.dryRun:
		return usage("--wait and --dry-run exclude each other")
	case o.WebhookURL != "" && !o.External, o.kubeconfig != "" && !o.External:
		return usage("--webhook-url and --manager-kubeconfig go with --external-manager")
	case o.CRDsOnly && o.External:
		return usage("--crd-only and --external-manager exclude each other")
	case o.PullPolicy != "" && o.PullPolicy != "Always" && o.PullPolicy != "Never" && o.PullPolicy != "IfNotPresent":
		return usage("--kudo-image-pull-policy %q: must be Always, Never or IfNotPresent", o.PullPolicy)
	}
	return nil
}

func (t *tool) init(ctx context.Context, o *initOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	o.Namespace = install.DefaultNamespace
	if n := t.flags.Namespace; n != nil && *n != "" {
		o.Namespace = *n
	}
	objs, err := install.Objects(o.Options)
	if err != nil {
		return err
	}
	if o.dryRun {
		return t.print(o.output, objs)
	}
	c, config, _, err := t.connect()
	if err != nil {
		return err
	}
	err = install.Apply(ctx, c, objs, func(obj *unstructured.Unstructured, created bool) {
		verb := "configured"
		if created {
			verb = "created"
		}
		_, _ = fmt.Fprintf(t.out, "%s %s %s\n", lower(obj.GetKind()), obj.GetName(), verb)
	})
	if err != nil {
		return err
	}
	if o.wait {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(o.waitTimeout))
		defer cancel()
		err := install.Wait(ctx, c, objs, func(message string) { t.progress("waiting: %s", message) })
		if err == nil && !o.CRDsOnly {
			err = install.Enforced(ctx, c)
		}
		if err != nil {
			return &codeError{ExitTimeout, err}
		}
	}
	if o.kubeconfig != "" {
		if err := install.Kubeconfig(ctx, c, config, o.Namespace, o.kubeconfig); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(t.out, "kubeconfig of the manager written to %s\n", o.kubeconfig)
	}
	return nil
}

// print writes objects as YAML documents or a JSON list.
func (t *tool) print(format string, objs []*unstructured.Unstructured) error {
	if format == "json" {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, obj := range objs {
			list.Items = append(list.Items, *obj)
		}
		return (&printers.JSONPrinter{}).PrintObj(list, t.out)
	}
	printer := &printers.YAMLPrinter{}
	for _, obj := range objs {
		if err := printer.PrintObj(obj, t.out); err != nil {
			return err
		}
	}
	return nil
}
