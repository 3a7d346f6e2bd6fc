package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/plans/trigger"
)

// previewTimeout is how long the questions of a preview may take in all. What is not answered by then is an error.
const previewTimeout = 30 * time.Second

// previewFlags are the flags by which a command shows what it would do.
type previewFlags struct {
	dryRun, output, expect string
	failOn                 failOnFlag
}

// failOnFlag names what of a preview makes the command fail.
type failOnFlag []string

func (f *failOnFlag) add(flags *pflag.FlagSet) {
	flags.StringSliceVar((*[]string)(f), "fail-on", nil, "end with an error if the preview has one of these: "+
		strings.Join(preview.Concerns(), ", "))
}

func (f *failOnFlag) check() error {
	for _, concern := range *f {
		if !slices.Contains(preview.Concerns(), concern) {
			return command.UsageError("--fail-on %q: use %s", concern, strings.Join(preview.Concerns(), ", "))
		}
	}
	return nil
}

// verdict is the error of a preview that would be refused, whose plans would fail, or that has what the flag names, or nil if it is none.
// Its exit code is exitUncertain if it is only that not all is known.
func (f *failOnFlag) verdict(p *preview.Preview) error {
	if p.Fails() {
		return command.WithCode(command.ExitFailed, fmt.Errorf("the %s of %s would fail: correct what is marked with ✗ above", p.Verb, p.Subject))
	}
	found := slices.DeleteFunc(slices.Clone(*f), func(concern string) bool { return !p.Raises(concern) })
	switch {
	case len(found) == 0:
		return nil
	case len(found) == 1 && found[0] == preview.ConcernUnknown:
		return command.WithCode(exitUncertain, fmt.Errorf("not all is known of the %s of %s: see what is marked with ? above", p.Verb, p.Subject))
	}
	return command.WithCode(command.ExitFailed, fmt.Errorf("the %s of %s has what --fail-on names: %s. Look at the above, and leave out of "+
		"--fail-on what is right", p.Verb, p.Subject, strings.Join(found, ", ")))
}

func (f *previewFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.dryRun, "dry-run", "none", "server: show what would happen, by dry runs with your rights, and change nothing")
	flags.Lookup("dry-run").NoOptDefVal = "server"
	flags.StringVarP(&f.output, "output", "o", "", "format of --dry-run: text, json, yaml or markdown")
	flags.StringVar(&f.expect, "expect", "", "digest that --dry-run has printed: go on only if the same would happen")
	f.failOn.add(flags)
}

// check refuses values that do not fit together.
func (f *previewFlags) check() error {
	switch {
	case f.dryRun != "none" && f.dryRun != "server":
		return command.UsageError("--dry-run %q: use server, or none", f.dryRun)
	case f.output != "" && f.dryRun == "none":
		return command.UsageError("--output requires --dry-run: add --dry-run")
	case f.expect != "" && f.dryRun != "none":
		return command.UsageError("--expect cannot be used with --dry-run: it compares before the command acts")
	case f.dryRun == "none" && len(f.failOn) > 0:
		return command.UsageError("--fail-on requires --dry-run: add --dry-run")
	}
	return errors.Join(f.failOn.check(), command.CheckPreviewFormat(f.output))
}

// asked reports whether a preview is to be computed.
func (f *previewFlags) asked() bool { return f.dryRun == "server" || f.expect != "" }

// lock returns an edit that fails if the Instance has changed since it was read, where the user expects what a preview has shown.
func (f *previewFlags) lock(verb string, apply func(*v1beta1.Instance)) instanceEdit {
	return instanceEdit{verb: verb, apply: apply, locked: f.expect != ""}
}

// show computes a preview if that is asked for, and reports whether the command ends with it. An error says that the edit would fail, or is
// not the expected one any more.
func (f *previewFlags) show(env *command.Env, compute func() (*preview.Preview, error)) (bool, error) {
	if !f.asked() {
		return false, nil
	}
	p, err := compute()
	if err != nil {
		return true, err
	}
	switch {
	case f.expect == "":
		return true, errors.Join(command.PrintPreview(env, p, f.output), f.failOn.verdict(p))
	case f.expect != p.Digest:
		return true, errors.Join(command.PrintPreview(env, p, ""), command.WithCode(command.ExitFailed, fmt.Errorf("the %s of %s would not do "+
			"what --expect %s stands for: nothing was changed; look at the above, and give the digest %s if that is right", p.Verb, p.Subject,
			f.expect, p.Digest)))
	}
	return false, nil
}

// previewEdit asks the cluster, with the rights of the user, what an edit would do.
func previewEdit(ctx context.Context, env *command.Env, c client.Client, edit preview.Edit) (*preview.Preview, error) {
	return computePreview(ctx, env, c, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		now, known := kudoinit.ReadSettings(ctx, c)
		if account, sure := kudoinit.DefaultAccount(ctx, c, now, edit.After.Namespace); known && sure {
			o.DefaultAccount = account
		}
		o.Tarballs = newTarballs(ctx, c, now, known)
		return preview.Compute(ctx, o, edit)
	})
}

// previewInstance asks what an edit of an Instance would do whose OperatorVersions are in the cluster.
func previewInstance(ctx context.Context, env *command.Env, c client.Client, verb string, before *v1beta1.Instance,
	change func(*v1beta1.Instance)) (*preview.Preview, error) {
	e := preview.Edit{Verb: verb, Before: before, After: before.DeepCopy()}
	change(e.After)
	var err error
	if e.Version, err = versionOf(ctx, c, e.After); err != nil {
		return nil, err
	}
	if before.OperatorVersionKey() != e.After.OperatorVersionKey() {
		if e.Old, err = versionIfExists(ctx, c, before); err != nil {
			return nil, err
		}
	}
	return previewEdit(ctx, env, c, e)
}

// previewRetry asks what another run of the plan that failed last would do.
func previewRetry(ctx context.Context, env *command.Env, c client.Client, i *v1beta1.Instance, plan string) (*preview.Preview, error) {
	if i.DeletionTimestamp != nil {
		return previewUninstall(ctx, env, c, i, false)
	}
	version, err := versionOf(ctx, c, i)
	if err != nil {
		return nil, err
	}
	run := &trigger.Request{Plan: plan, Cause: fmt.Sprintf("%s run %d", trigger.CauseRetry, i.Status.PlanStatus[plan].Revision),
		Upgrade: i.Status.Baseline != nil && i.Status.Baseline.UpgradeIncomplete}
	return previewEdit(ctx, env, c, preview.Edit{Verb: "retry", Before: i, After: i.DeepCopy(), Version: version, Retry: run})
}

// previewUninstall asks what the deletion of an Instance would do.
func previewUninstall(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance,
	keepsClaims bool) (*preview.Preview, error) {
	version, err := versionIfExists(ctx, c, instance)
	if err != nil {
		return nil, err
	}
	return computePreview(ctx, env, c, func(ctx context.Context, o preview.Options) (*preview.Preview, error) {
		return preview.Uninstall(ctx, o, instance, version, keepsClaims)
	})
}

// versionIfExists returns the OperatorVersion that an Instance names, or nil if it does not exist.
func versionIfExists(ctx context.Context, c client.Client, instance *v1beta1.Instance) (*v1beta1.OperatorVersion, error) {
	version := &v1beta1.OperatorVersion{}
	err := c.Get(ctx, instance.OperatorVersionKey(), version)
	if apierror.IsObjectNotFound(err) {
		return nil, nil
	}
	return version, err
}

// computePreview computes a preview with the clients of the user, in bounds of time.
func computePreview(ctx context.Context, env *command.Env, c client.Client,
	compute func(context.Context, preview.Options) (*preview.Preview, error)) (*preview.Preview, error) {
	ctx, cancel := context.WithTimeout(ctx, previewTimeout)
	defer cancel()
	o, err := previewOptions(ctx, env, c)
	if err != nil {
		return nil, err
	}
	p, err := compute(ctx, o)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the cluster did not answer within %s what would happen: try again later", previewTimeout)
	}
	return p, err
}

// previewOptions are the clients of the user.
func previewOptions(ctx context.Context, env *command.Env, c client.Client) (preview.Options, error) {
	config, err := env.Flags.ToRESTConfig()
	if err != nil {
		return preview.Options{}, err
	}
	config.QPS = -1                           // the apiserver's priority and fairness decides, not the client
	config.WarningHandler = rest.NoWarnings{} // that a new OperatorVersion does not exist yet is not worth a warning
	o := preview.Options{Clock: clock.RealClock{}}
	if o.Client, err = client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()}); err != nil {
		return o, err
	}
	if o.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return o, err
	}
	if o.Metadata, err = metadata.NewForConfig(config); err != nil {
		return o, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return o, err
	}
	o.Kinds = apply.NewKinds(c.RESTMapper(), d, o.Dynamic)
	layers, unreached, unknown, err := command.LiveLayers(ctx, c)
	if err != nil {
		return o, err
	}
	for _, hook := range unreached {
		o.Incomplete = append(o.Incomplete, hook.String())
	}
	if unknown {
		o.Incomplete = append(o.Incomplete, "you may not list the explore rules and webhooks of the cluster: kudo may get other answers")
	}
	o.All = layers
	o.External = slices.DeleteFunc(slices.Clone(layers), func(l explore.Explorer) bool { return l.Layer() == explore.Native })
	o.As = command.WhoAmI(ctx, c)
	return o, nil
}

func newPlanPreview(env *command.Env) *cobra.Command {
	var plan, output string
	var failOn failOnFlag
	cmd := newInstanceCommand(env, "preview NAME [PLAN]", "Show what a plan of an Instance would do",
		func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			verb, change := "reconcile", func(*v1beta1.Instance) {}
			if plan != "" {
				verb, change = "trigger", triggerOf(plan)
			}
			p, err := previewInstance(ctx, env, c, verb, i, change)
			if err != nil {
				return err
			}
			return errors.Join(command.PrintPreview(env, p, output), failOn.verdict(p))
		})
	cmd.Long = `Show what a plan of an Instance would do with the parameters that the Instance has now, and change nothing. Without a plan, it
is shown what the spec of the Instance asks for and no plan has done yet.

  kubectl kudo plan preview db backup
  kubectl kudo plan preview db`
	cmd.Flags().StringVar(&plan, "name", "", "name of the plan")
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: text, json, yaml or markdown")
	failOn.add(cmd.Flags())
	cmd.Args = command.ArgumentsForFlags("instance", "name")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		return errors.Join(failOn.check(), command.CheckPreviewFormat(output))
	}
	return cmd
}
