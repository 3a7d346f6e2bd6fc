package instances

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/preview"
)

type uninstallOptions struct {
	env *command.Env

	command.WaitFlags
	preview    previewFlags
	instance   string
	keepClaims bool
}

// NewUninstall returns the command uninstall.
func NewUninstall(env *command.Env) *cobra.Command {
	o := &uninstallOptions{env: env}
	cmd := &cobra.Command{
		Use:   "uninstall NAME",
		Short: "Delete an Instance, after its cleanup plan",
		Long: `Delete an Instance. Its cleanup plan runs first, if it has one; then its objects go. Cluster-scoped objects of
its plans stay, since others may use them, and so do objects that are annotated kudo.dev/keep, and claims of StatefulSets. An
Instance of the same name takes them over. The OperatorVersion stays too. What is deleted and what stays is printed before.

With --wait the command ends when the objects are deleted. It ends with 4 if that takes too long, and names the finalizers that
keep them. On a hub it ends when the clusters have deleted their copies, and says of each what became of it.

  kubectl kudo uninstall db --wait
  kubectl kudo uninstall db --keep-claims`,
		Args:    command.ArgumentsForFlags("instance"),
		PreRunE: func(*cobra.Command, []string) error { return o.preview.check(env) },
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	command.AddInstanceFlag(cmd, &o.instance)
	o.preview.add(cmd.Flags())
	o.WaitFlags.Add(cmd.Flags(), "the Instance and its objects are deleted")
	cmd.Flags().BoolVar(&o.keepClaims, "keep-claims", false,
		"annotate the PersistentVolumeClaims of the Instance with kudo.dev/keep before, so that they stay")
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context) error {
	if o.instance == "" {
		return command.ErrNoInstance
	}
	c, config, namespace, err := o.env.Connect()
	if err != nil {
		return err
	}
	instance, err := act.FindInstance(ctx, c, namespace, o.instance)
	if err != nil {
		return err
	}
	uninstall := act.Uninstall{Instance: instance, KeepClaims: o.keepClaims}
	if done, err := o.preview.compute(o.env, c, func(p *act.Previewer) (*preview.Preview, error) {
		return uninstall.Preview(ctx, p)
	}); done || err != nil {
		return err
	}
	all, err := act.WithChildren(ctx, c, instance)
	switch {
	case err != nil && o.keepClaims:
		return fmt.Errorf("instance %s/%s is not deleted: %w", namespace, o.instance, err)
	case err != nil && o.Wait:
		o.env.Warnf("the objects of children of instance %s/%s are not awaited: %s", namespace, o.instance, err)
	}
	effects, err := uninstall.Effects(ctx, c, config, all)
	if err != nil {
		return err
	}
	printEffects(o.env, effects, instance)
	copies := newRemoval(o.env, c, instance)
	copies.announce()
	deleter, err := newDeleter(c, config)
	if err != nil {
		return err
	}
	if err := uninstall.Delete(ctx, deleter, effects, o.preview.expect.isSet()); err != nil {
		return err
	}
	o.env.Printf("instance %s/%s deleted", namespace, o.instance)
	var waited error
	if o.Wait {
		waited = o.wait(ctx, c, instance, newDependents(o.env, c, all, effects), copies)
		printStays(o.env, effects.Stays)
	}
	printRemedy(o.env, namespace, effects.Stays)
	return waited
}

// newDeleter returns a client that does not print the webhook's warning of claims: the command has warned of those that are not kept.
func newDeleter(c client.Client, config *rest.Config) (client.Client, error) {
	quiet := rest.CopyConfig(config)
	quiet.WarningHandler = otherWarnings{config.WarningHandler}
	return client.New(quiet, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
}

type otherWarnings struct{ rest.WarningHandler }

// HandleWarningHeader implements rest.WarningHandler.
func (w otherWarnings) HandleWarningHeader(code int, agent, text string) {
	if !strings.HasPrefix(text, v1beta1.ClaimsWarning) {
		w.WarningHandler.HandleWarningHeader(code, agent, text)
	}
}

// wait returns when an Instance and its objects are deleted.
func (o *uninstallOptions) wait(ctx context.Context, c client.WithWatch, instance *v1beta1.Instance, objects *dependents, copies *removal,
) error {
	limit := time.Duration(o.Time)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	over := copies.until(objects.until(command.UntilDeleted(instance.UID)))
	if err := o.env.WaitForInstance(ctx, c, instance, limit, over); err != nil {
		return err
	}
	if instance.IsTemplate() {
		return copies.wait(ctx, limit)
	}
	complete, err := objects.wait(ctx, instance, limit)
	if err == nil && complete {
		o.env.Printf("all objects of instance %s/%s are deleted", instance.Namespace, instance.Name)
	}
	return err
}
