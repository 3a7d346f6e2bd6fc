package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

// previewFlags are the flags by which a command shows what it would do.
type previewFlags struct {
	dryRun  command.DryRun
	output  string
	expect  expectation
	timeout previewTimeout
	failOn  failOnFlag
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

// verdict returns an error if the edit would be refused, if a plan would fail, or if the preview has what the flag names, and nil
// otherwise. The exit code of the error is exitUncertain if its only reason is that not all is known.
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
	f.dryRun.Add(flags, "show what would happen, and change nothing: server asks by dry runs with "+
		"your rights, client only reads")
	flags.StringVarP(&f.output, "output", "o", "", "format of --dry-run: text, json, yaml or markdown")
	f.expect.add(flags)
	f.timeout.add(flags)
	f.failOn.add(flags)
}

// check refuses values that do not fit together, reads the preview that is expected, and limits what is read before a preview.
func (f *previewFlags) check(env *command.Env) error {
	if f.asked() {
		f.timeout.limitReads(env)
	}
	switch {
	case f.output != "" && !f.dryRun.IsSet():
		return command.UsageError("--output requires --dry-run: add --dry-run")
	case f.expect.isSet() && f.dryRun.IsSet():
		return command.UsageError("--expect cannot be used with --dry-run: it compares before the command acts")
	case !f.asked() && f.timeout.flag != nil && f.timeout.flag.Changed:
		return command.UsageError("--timeout requires --dry-run or --expect: how long --wait waits is set by --wait-time")
	case !f.dryRun.IsSet() && len(f.failOn) > 0:
		return command.UsageError("--fail-on requires --dry-run: add --dry-run")
	}
	return errors.Join(f.failOn.check(), f.timeout.check(), command.CheckPreviewFormat(f.output), f.expect.read())
}

// asked reports whether a preview is to be computed.
func (f *previewFlags) asked() bool { return f.dryRun.IsSet() || f.expect.isSet() }

// lock returns an edit that fails if the Instance has changed since it was read, where the user expects what a preview has shown.
func (f *previewFlags) lock(verb string, apply func(*v1beta1.Instance)) instanceEdit {
	return instanceEdit{verb: verb, apply: apply, locked: f.expect.isSet()}
}

// show shows the preview of an edit if that is asked for, and reports whether the command ends with it. An error says that the edit would
// fail, or is not the expected one any more.
func (f *previewFlags) show(ctx context.Context, env *command.Env, c client.Client, edit act.Edit, change act.Change) (bool, error) {
	return f.compute(env, c, func(p *act.Previewer) (*preview.Preview, error) { return edit.Preview(ctx, p, change) })
}

// compute computes a preview if that is asked for, and shows it as show does.
func (f *previewFlags) compute(env *command.Env, c client.Client,
	compute func(*act.Previewer) (*preview.Preview, error)) (bool, error) {
	if !f.asked() {
		return false, nil
	}
	previewer, err := f.timeout.previewer(env, c, f.dryRun.IsLocal())
	if err != nil {
		return true, err
	}
	p, err := compute(previewer)
	if err != nil {
		return true, err
	}
	if f.expect.isSet() {
		err := f.expect.check(env, p)
		return err != nil, err
	}
	return true, errors.Join(command.PrintPreview(env, p, f.output), f.failOn.verdict(p))
}

func newPlanPreview(env *command.Env) *cobra.Command {
	var plan, output string
	var failOn failOnFlag
	var timeout previewTimeout
	cmd := command.NewInstanceCommand(env, "preview NAME [PLAN]", "Show what a plan of an Instance would do",
		func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			verb, change := "reconcile", func(*v1beta1.Instance) {}
			if plan != "" {
				verb, change = "trigger", act.Trigger{Instance: i, Plan: plan}.Apply
			}
			previewer, err := timeout.previewer(env, c, false)
			if err != nil {
				return err
			}
			p, err := previewer.Instance(ctx, verb, i, change)
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
	timeout.add(cmd.Flags())
	failOn.add(cmd.Flags())
	cmd.Args = command.ArgumentsForFlags("instance", "name")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		timeout.limitReads(env)
		return errors.Join(failOn.check(), timeout.check(), command.CheckPreviewFormat(output))
	}
	return cmd
}
