package instances

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

// find returns an Instance by name.
func find(ctx context.Context, c client.Client, namespace, name string) (*v1beta1.Instance, error) {
	instance := &v1beta1.Instance{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, instance)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("instance %s/%s does not exist: kubectl kudo get instances -n %s lists those that do", namespace, name, namespace)
	}
	return instance, err
}

// versionOf returns the OperatorVersion that an Instance names.
func versionOf(ctx context.Context, c client.Client, instance *v1beta1.Instance) (*v1beta1.OperatorVersion, error) {
	ov, key := &v1beta1.OperatorVersion{}, instance.OperatorVersionKey()
	err := c.Get(ctx, key, ov)
	if apierrors.IsNotFound(err) {
		return nil, versionMissing(instance)
	}
	if err != nil {
		return nil, fmt.Errorf("operatorversion %s of instance %s/%s: %w", key, instance.Namespace, instance.Name, err)
	}
	return ov, nil
}

// versionMissing says that the OperatorVersion of an Instance does not exist, and what to do about it.
func versionMissing(instance *v1beta1.Instance) error {
	key := instance.OperatorVersionKey()
	return fmt.Errorf("instance %[1]s/%[2]s names operatorversion %[3]s, which does not exist: install it again (kubectl kudo install "+
		"PACKAGE --skip-instance -n %[4]s), "+
		"move the instance to another version (kubectl kudo upgrade PACKAGE --instance %[2]s -n %[1]s), or remove it (kubectl kudo uninstall "+
		"--instance %[2]s -n %[1]s)",
		instance.Namespace, instance.Name, key, key.Namespace)
}

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
  kubectl kudo update db --schedule 'nightly=backup@0 3 * * * Europe/Vienna'`,
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
	instance, err := find(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	ov, err := versionOf(ctx, c, instance)
	if err != nil {
		return err
	}
	edit, err := o.editOf(instance, ov, given, from)
	if err != nil {
		return err
	}
	changed := instance.DeepCopy()
	edit(changed)
	if err := command.CheckStructure(ctx, &ov.Spec, changed, given); err != nil {
		return err
	}
	if done, err := o.preview.show(o.env, c, func(p *previewer) (*preview.Preview, error) {
		return p.edit(ctx, preview.Edit{Verb: "update", Before: instance, After: changed, Version: ov,
			GivesRights: o.account.create})
	}); done || err != nil {
		return err
	}
	account, err := o.account.update(ctx, o.env, c, changed, &ov.Spec, installedSpecs(ctx, c, namespace))
	if err != nil {
		return err
	}
	if account != nil {
		ownAccount(ctx, o.env, c, account, instance)
	}
	return changeInstance(ctx, o.env, c, instance, &o.WaitFlags, o.preview.lock("updated", func(i *v1beta1.Instance) {
		edit(i)
		setAccount(i, account)
	}))
}

// validate refuses flags that change nothing, and that both set and unset a parameter.
func (o *updateOptions) validate(given map[string]string) error {
	if len(given)+len(o.unset) == 0 && !o.sources.IsSet() && !o.schedules.IsSet() {
		return command.UsageError("nothing to update: set a parameter with -p NAME=VALUE or -P file, set one back with --unset NAME, name "+
			"sources with --%s, or give a schedule with --schedule", command.SourcesFlag)
	}
	for _, name := range o.unset {
		if _, both := given[name]; both {
			return command.UsageError("parameter %s is both set and unset", name)
		}
	}
	return nil
}

// editOf returns the edit of an Instance that the flags describe. It returns an error if the values do not fit the version, or if what is
// to be unset is not set. Without the flag for sources, those of the Instance stay.
func (o *updateOptions) editOf(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, given map[string]string,
	from []v1beta1.ParametersSource) (func(*v1beta1.Instance), error) {
	if !o.sources.IsSet() {
		from = instance.Spec.ParametersFrom
	}
	if err := checkChange(instance, ov, given); err != nil {
		return nil, err
	}
	schedules, err := o.schedules.Apply(instance.Spec.Schedules)
	if err != nil {
		return nil, err
	}
	for _, name := range o.unset {
		if _, set := instance.Spec.Parameters[name]; !set {
			return nil, fmt.Errorf("parameter %s of instance %s is not set", name, o.instance)
		}
	}
	return func(i *v1beta1.Instance) {
		setParameters(i, given)
		i.Spec.ParametersFrom, i.Spec.Schedules = from, schedules
		for _, name := range o.unset {
			delete(i.Spec.Parameters, name)
		}
	}, nil
}

func setParameters(i *v1beta1.Instance, given map[string]string) {
	if i.Spec.Parameters == nil {
		i.Spec.Parameters = map[string]string{}
	}
	for name, value := range given {
		i.Spec.Parameters[name] = value
	}
}

// checkChange refuses values that can never be right, for clusters without webhooks.
func checkChange(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, given map[string]string) error {
	changed := slices.DeleteFunc(slices.Clone(ov.Spec.Parameters), func(def v1beta1.Parameter) bool {
		_, set := given[def.Name]
		return !set
	})
	if err := command.CheckValues(changed, given, nil, nil, "operatorversion "+ov.Name); err != nil {
		return err
	}
	for _, def := range changed {
		value := given[def.Name]
		if def.IsImmutable() && instance.Spec.OperatorVersion.Name == ov.Name && instance.Spec.Parameters[def.Name] != value {
			return fmt.Errorf("parameter %s is immutable: its value was fixed when the instance was created", def.Name)
		}
	}
	return nil
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
	if err := write(ctx, c, instance, edit.locked, edit.apply); err != nil {
		return fmt.Errorf("instance %s/%s: %w", instance.Namespace, instance.Name, err)
	}
	env.Printf("instance %s/%s %s", instance.Namespace, instance.Name, edit.verb)
	if !w.Wait {
		return nil
	}
	if err := env.WaitForInstance(ctx, c, instance, time.Duration(w.Time), command.UntilArrived(instance.Generation,
		instance.UID)); err != nil {
		return err
	}
	env.Printf("instance %s/%s ready", instance.Namespace, instance.Name)
	return nil
}

// write edits an Instance, which then is as the API server has it. The answer is read into an empty one: fields that
// the server has no longer would stay in one that had them.
func write(ctx context.Context, c client.Client, i *v1beta1.Instance, locked bool, edit func(*v1beta1.Instance)) error {
	patch := client.MergeFrom(i.DeepCopy())
	if locked {
		patch = client.MergeFromWithOptions(i.DeepCopy(), client.MergeFromWithOptimisticLock{})
	}
	edit(i)
	data, err := patch.Data(i)
	if err != nil {
		return err
	}
	answer := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name}}
	if err := c.Patch(ctx, answer, client.RawPatch(patch.Type(), data)); err != nil {
		return err
	}
	*i = *answer
	return nil
}
