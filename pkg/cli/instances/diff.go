package instances

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/pkginstall"
	"kudo.dev/kudo/pkg/preview"
)

// Exit codes of diff, those of kubectl diff first.
const (
	exitDifferent = 1 // something would change
	exitTrouble   = 2 // it could not be computed, or the command was called in a wrong way
	exitUncertain = 4 // not all of it is known
)

type diffOptions struct {
	env *command.Env

	command.ParameterFlags
	command.VersionFlags
	instance, output string
	files            []string
	timeout          previewTimeout
	failOn           failOnFlag
}

// NewDiff returns the command diff.
func NewDiff(env *command.Env) *cobra.Command {
	o := &diffOptions{env: env}
	cmd := &cobra.Command{
		Use:   "diff [PACKAGE] --instance NAME",
		Short: "Show what a change of an Instance would do",
		Long: `Show what another version, other parameters or files would do to an Instance and its objects, and change nothing. Without any of
them, it is shown what plan deploy would set back of what others have changed.

Exit codes: 0 nothing would change, 1 something would (this is no error), 2 an error, 3 a plan would fail or
--fail-on names what it would do, 4 not all of it is known.

  kubectl kudo diff --instance db -p MEMORY=2Gi
  kubectl kudo diff ./mysql-0.4.0 --instance db -o markdown
  kubectl kudo diff -f db.yaml`,
		Args: atMostOnePackage,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "a file of Instances and OperatorVersions; may be repeated")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "format: text, json, yaml or markdown")
	o.timeout.add(cmd.Flags())
	o.failOn.add(cmd.Flags())
	o.VersionFlags.Add(cmd.Flags())
	o.ParameterFlags.Add(cmd.Flags())
	return cmd
}

func (o *diffOptions) run(ctx context.Context, args []string) error {
	previews, err := o.compute(ctx, args)
	if err != nil {
		return command.WithCode(exitTrouble, err)
	}
	var failed, uncertain error
	changed := false
	for _, p := range previews {
		if err := command.PrintPreview(o.env, p, o.output); err != nil {
			return command.WithCode(exitTrouble, err)
		}
		failed, changed = cmp.Or(failed, o.failOn.verdict(p)), changed || p.IsChange()
		uncertain = cmp.Or(uncertain, (&failOnFlag{preview.ConcernUnknown}).verdict(p))
	}
	if err := cmp.Or(failed, uncertain); err != nil || !changed {
		return err
	}
	return command.ExitWith(exitDifferent)
}

// atMostOnePackage checks the arguments of diff.
func atMostOnePackage(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return command.UsageError("name at most one package, and the Instance by --instance")
	}
	return nil
}

// compute returns a preview for each Instance.
func (o *diffOptions) compute(ctx context.Context, args []string) ([]*preview.Preview, error) {
	o.timeout.limitReads(o.env)
	given, err := o.Read()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.failOn.check(), o.timeout.check(), command.CheckPreviewFormat(o.output)); err != nil {
		return nil, err
	}
	if len(o.files) > 0 {
		if o.instance != "" || len(args) > 0 || len(given) > 0 {
			return nil, command.UsageError("--filename cannot be used with a package, --instance and parameters: files have the whole Instance")
		}
		return o.computeFiles(ctx)
	}
	if o.instance == "" {
		return nil, command.ErrNoInstance
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return nil, err
	}
	instance, err := act.FindInstance(ctx, c, namespace, o.instance)
	if err != nil {
		return nil, err
	}
	previewer, err := o.timeout.previewer(o.env, c, false)
	if err != nil {
		return nil, err
	}
	var p *preview.Preview
	switch {
	case len(args) > 0:
		p, err = o.computePackage(ctx, previewer, instance, args[0], given)
	case len(given) > 0:
		p, err = previewer.Instance(ctx, "update", instance, func(i *v1beta1.Instance) { act.SetParameters(i, given) })
	default:
		p, err = previewer.Drift(ctx, instance)
	}
	return []*preview.Preview{p}, err
}

// computePackage previews the upgrade to a package.
func (o *diffOptions) computePackage(ctx context.Context, previewer *act.Previewer, instance *v1beta1.Instance, name string,
	given map[string]string) (*preview.Preview, error) {
	packages, err := o.env.ResolvePackages(ctx, name, o.VersionFlags)
	if err != nil {
		return nil, err
	}
	versions, err := pkginstall.Versions(packages, instance.Namespace, nil)
	if err != nil {
		return nil, err
	}
	old, err := act.ReadVersion(ctx, previewer.Client, instance)
	if err != nil {
		return nil, err
	}
	u := act.Upgrade{Instance: instance, Old: old, Version: versions[len(versions)-1], Versions: versions, Set: given}
	return u.Preview(ctx, previewer, act.Change{})
}
