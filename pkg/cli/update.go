package cli

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
)

func listOptions(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}

// instanceFlag adds the flag that names an Instance.
func instanceFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "instance", "", "name of the Instance")
}

// errNoInstance says that a command was not told which Instance it is about.
var errNoInstance = usage("--instance is missing: name the Instance (kubectl kudo get instances)")

// find returns an Instance by name.
func (t *tool) find(ctx context.Context, c client.Client, namespace, name string) (*v1beta1.Instance, error) {
	if name == "" {
		return nil, errNoInstance
	}
	instance := &v1beta1.Instance{}
	err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, instance)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("instance %s/%s does not exist: kubectl kudo get instances -n %s lists those that do", namespace, name, namespace)
	}
	return instance, err
}

type updateOptions struct {
	waiting
	parameters
	sources  sourceFlags
	account  accountFlags
	instance string
	unset    []string
}

func (t *tool) updateCommand() *cobra.Command {
	o := &updateOptions{}
	cmd := &cobra.Command{
		Use:   "update --instance NAME -p name=value",
		Short: "Change parameters of an Instance",
		Long: `Change parameters of an Instance. Each changed parameter starts the plan that it names as trigger; one without
starts update, else deploy. Several plans run one after the other.

  kubectl kudo update --instance db -p MEMORY=2Gi --wait`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.update(cmd.Context(), o) },
	}
	instanceFlag(cmd, &o.instance)
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "a parameter to set back to its default; may be given several times")
	o.account.add(cmd.Flags(), " with the new values, after showing what changes")
	o.parameters.add(cmd.Flags())
	o.sources.add(cmd.Flags())
	o.waiting.add(cmd.Flags(), "the plans that the change starts have ended")
	return cmd
}

func (t *tool) update(ctx context.Context, o *updateOptions) error {
	given, err := o.read()
	if err != nil {
		return err
	}
	from, err := o.sources.read()
	if err != nil {
		return err
	}
	if len(given)+len(o.unset) == 0 && !o.sources.given() {
		return usage("nothing to update: set a parameter with -p name=value or -P file, set one back with --unset name, or name sources with --%s", sourcesFlag)
	}
	for _, name := range o.unset {
		if _, both := given[name]; both {
			return usage("parameter %s is both set and unset", name)
		}
	}
	c, _, namespace, err := t.connect()
	if err != nil {
		return err
	}
	instance, err := t.find(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	ov := &v1beta1.OperatorVersion{}
	if err := c.Get(ctx, instance.OperatorVersionKey(), ov); err != nil {
		return fmt.Errorf("operatorversion %s of instance %s: %w", instance.OperatorVersionKey(), o.instance, err)
	}
	if !o.sources.given() {
		from = instance.Spec.ParametersFrom
	}
	if err := checkChange(instance, ov, given); err != nil {
		return err
	}
	for _, name := range o.unset {
		if _, set := instance.Spec.Parameters[name]; !set {
			return fmt.Errorf("parameter %s of instance %s is not set", name, o.instance)
		}
	}
	edit := func(i *v1beta1.Instance) {
		setParameters(i, given)
		i.Spec.ParametersFrom = from
		for _, name := range o.unset {
			delete(i.Spec.Parameters, name)
		}
	}
	changed := instance.DeepCopy()
	edit(changed)
	if err := checkStructure(ctx, &ov.Spec, changed, given); err != nil {
		return err
	}
	account, err := t.changedAccount(ctx, c, changed, &ov.Spec, installedSpecs(ctx, c, namespace), &o.account)
	if err != nil {
		return err
	}
	if account != nil {
		t.ownAccount(ctx, c, account, instance)
	}
	return t.change(ctx, c, instance, "updated", &o.waiting, func(i *v1beta1.Instance) {
		edit(i)
		account.named(i)
	})
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
	if err := checkValues(changed, given, nil, nil, "operatorversion "+ov.Name); err != nil {
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

// change edits the spec of an Instance, and waits for what it starts.
func (t *tool) change(ctx context.Context, c client.WithWatch, instance *v1beta1.Instance, verb string, w *waiting, edit func(*v1beta1.Instance)) error {
	if err := write(ctx, c, instance, edit); err != nil {
		return fmt.Errorf("instance %s/%s: %w", instance.Namespace, instance.Name, err)
	}
	t.say("instance %s/%s %s", instance.Namespace, instance.Name, verb)
	if !w.wait {
		return nil
	}
	if err := t.await(ctx, c, instance, time.Duration(w.time), settled(instance.Generation, instance.UID)); err != nil {
		return err
	}
	t.say("instance %s/%s ready", instance.Namespace, instance.Name)
	return nil
}

// write edits an Instance, which then is as the API server has it. The answer is read into an empty one: fields that are
// gone on the server would stay in one that had them.
func write(ctx context.Context, c client.Client, i *v1beta1.Instance, edit func(*v1beta1.Instance)) error {
	patch := client.MergeFrom(i.DeepCopy())
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
