package instances

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
)

type updateOptions struct {
	env *command.Env

	command.WaitFlags
	command.ParameterFlags
	sources   command.SourceFlags
	schedules command.ScheduleFlags
	account   accountFlags
	preview   previewFlags
	instance  string
	unset     []string
	placement placementFlags
}

// NewUpdate returns the command update.
func NewUpdate(env *command.Env) *cobra.Command {
	o := &updateOptions{env: env}
	cmd := &cobra.Command{
		Use:   "update NAME -p NAME=VALUE",
		Short: "Change parameters and schedules of an Instance",
		Long: `Change parameters and schedules of an Instance. Each changed parameter starts the plan that it names as trigger; one without
starts update, else deploy. Several plans run one after the other. A change of schedules starts none.

  kubectl kudo update db -p MEMORY=2Gi --wait
  kubectl kudo update db --schedule 'nightly=backup@0 3 * * * Europe/Vienna'
  kubectl kudo update db --clusters m1,m2,m3 --set-on m3:REGION=eu-3`,
		Args:    command.ArgumentsForFlags("instance"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check(env) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	o.preview.add(cmd.Flags())
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "a parameter to set back to its default; may be repeated")
	o.account.add(cmd.Flags(), " with the new values, after showing what changes")
	o.ParameterFlags.Add(cmd.Flags())
	o.sources.Add(cmd.Flags())
	o.schedules.Add(cmd.Flags())
	o.schedules.AddRemoval(cmd.Flags())
	o.placement.addEdit(cmd.Flags())
	o.WaitFlags.Add(cmd.Flags(), "the plans that the change starts have ended")
	return cmd
}

func (o *updateOptions) run(ctx context.Context) error {
	if o.instance == "" {
		return command.ErrNoInstance
	}
	given, err := o.Read()
	if err != nil {
		return err
	}
	from, err := o.sources.Read()
	if err != nil {
		return err
	}
	if err := o.validate(given); err != nil {
		return err
	}
	c, _, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	instance, err := act.FindInstance(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	ov, err := act.FindVersion(ctx, c, instance)
	if err != nil {
		return err
	}
	update, err := o.actionOf(instance, ov, given, from)
	if err != nil {
		return err
	}
	change, err := update.Change(ctx, c)
	if err != nil {
		return err
	}
	if done, err := o.preview.show(ctx, o.env, c, update, change); done || err != nil {
		return err
	}
	if err := askRemoval(o.env, instance, update.Placement, o.account.yes); err != nil {
		return err
	}
	account, err := o.account.update(ctx, o.env, c, update.Changed(), &ov.Spec, installedSpecs(ctx, c, namespace))
	if err != nil {
		return err
	}
	if account != nil {
		ownAccount(ctx, o.env, c, account, instance)
	}
	return changeInstance(ctx, o.env, c, instance, &o.WaitFlags, o.preview.lock(change.Verb, func(i *v1beta1.Instance) {
		change.Apply(i)
		setAccount(i, account)
	}))
}

// validate refuses flags that change nothing, and that both set and unset a parameter.
func (o *updateOptions) validate(given map[string]string) error {
	if len(given)+len(o.unset) == 0 && !o.sources.IsSet() && !o.schedules.IsSet() && !o.placement.isSet() {
		return command.UsageError("nothing to update: set a parameter with -p NAME=VALUE or -P file, set one back with --unset NAME, name "+
			"sources with --%s, give a schedule with --schedule, or name clusters with --clusters", command.SourcesFlag)
	}
	for _, name := range o.unset {
		if _, both := given[name]; both {
			return command.UsageError("parameter %s is both set and unset", name)
		}
	}
	return nil
}

// actionOf returns the update that the flags describe. Without the flag for sources, those of the Instance stay.
func (o *updateOptions) actionOf(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, given map[string]string,
	from []v1beta1.ParametersSource) (act.Update, error) {
	out := act.Update{Instance: instance, Version: ov, Set: given, Unset: o.unset, ParametersFrom: instance.Spec.ParametersFrom,
		GivesRights: o.account.create}
	if o.sources.IsSet() {
		out.ParametersFrom = from
	}
	var err error
	if out.Schedules, err = o.schedules.Apply(instance.Spec.Schedules); err != nil {
		return out, err
	}
	if out.Placement, err = o.placement.edit(instance); err != nil {
		return out, err
	}
	if o.account.create && out.Changed().IsTemplate() {
		return out, errAccountOnHub
	}
	return out, checkPlacement(out.Changed(), &ov.Spec)
}

// instanceEdit changes an Instance; the verb says in the past tense what it did.
type instanceEdit struct {
	verb  string
	apply func(*v1beta1.Instance)
	// locked is set if the Instance must not have changed since it was read.
	locked bool
}

// changeInstance edits the spec of an Instance, and waits for the plans that the change starts.
func changeInstance(ctx context.Context, env *command.Env, c client.WithWatch, instance *v1beta1.Instance, w *command.WaitFlags,
	edit instanceEdit) error {
	if err := act.Write(ctx, c, instance, edit.locked, edit.apply); err != nil {
		return fmt.Errorf("instance %s/%s: %w", instance.Namespace, instance.Name, err)
	}
	env.Printf("instance %s/%s %s", instance.Namespace, instance.Name, edit.verb)
	if !w.Wait {
		return nil
	}
	if err := env.WaitForInstance(ctx, c, instance, time.Duration(w.Time), command.UntilEnded(instance)); err != nil {
		return err
	}
	env.Printf("instance %s/%s ready", instance.Namespace, instance.Name)
	return nil
}
