package instances

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/rights"
)

// accountFlags are those of commands that can make the account of an Instance.
type accountFlags struct{ create, yes bool }

func (o *accountFlags) add(flags *pflag.FlagSet, what string) {
	flags.BoolVar(&o.create, "create-service-account", false, "make the ServiceAccount <instance>-kudo with the rights that the "+
		"plans need"+what)
	o.addYes(flags)
}

func (o *accountFlags) addYes(flags *pflag.FlagSet) {
	flags.BoolVarP(&o.yes, "yes", "y", false, "give the rights without asking")
}

// NewAccount returns the command account.
func NewAccount(env *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "account",
		Short: "Make the ServiceAccount of an Instance",
		Long: `Make the ServiceAccount with whose rights the plans of an Instance write.

  kubectl kudo account create site -n lab`,
	}
	command.SetupGroup(cmd)
	cmd.AddCommand(newAccountCreate(env))
	return cmd
}

func newAccountCreate(env *command.Env) *cobra.Command {
	o, instance := &accountFlags{}, ""
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Make the ServiceAccount of an Instance",
		Long: `Make a ServiceAccount with the rights that the plans of an Instance need, let the manager act as it, and name it in the
Instance. The account is the one that the Instance names, or else <instance>-kudo. The rights are shown first. They are given
with yours: the API server lets you give only rights that you have yourself. The account's objects are deleted with the Instance.

What is there already stays, and rights that have changed are changed.

  kubectl kudo account create site -n lab`,
		Args: command.ArgumentsForFlags("instance"),
		RunE: func(cmd *cobra.Command, _ []string) error { return createAccount(cmd.Context(), env, instance, o) },
	}
	command.AddInstanceFlag(cmd, &instance)
	o.addYes(cmd.Flags())
	return cmd
}

func createAccount(ctx context.Context, env *command.Env, name string, o *accountFlags) error {
	if name == "" {
		return command.ErrNoInstance
	}
	c, _, namespace, err := env.Connect()
	if err != nil {
		return err
	}
	instance, err := act.FindInstance(ctx, c, namespace, name)
	if err != nil {
		return err
	}
	ov, err := act.FindVersion(ctx, c, instance)
	if err != nil {
		return err
	}
	needed, err := neededRights(ctx, c, instance, &ov.Spec, installedSpecs(ctx, c, namespace))
	if err != nil {
		return err
	}
	change, err := giveRights(ctx, env, c, instance, needed, o.yes)
	if err != nil {
		return err
	}
	if instance.Spec.ServiceAccountName != change.Name {
		if err := act.Write(ctx, c, instance, false, func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = change.Name }); err != nil {
			return fmt.Errorf("instance %s/%s: name ServiceAccount %s in spec.serviceAccountName: %w; %s", namespace, name, change.Name,
				err, rights.Continue)
		}
		env.Printf("instance %s/%s runs its plans as serviceaccount %s/%s", namespace, name, namespace, change.Name)
	}
	ownAccount(ctx, env, c, change, instance)
	return nil
}

// neededRights computes what the plans of an Instance need, as it is to be.
func neededRights(ctx context.Context, c client.Client, instance *v1beta1.Instance, spec *v1beta1.OperatorVersionSpec,
	versions func(string) *v1beta1.OperatorVersionSpec) (*rights.Rights, error) {
	sourced, err := paramsource.Read(ctx, c, instance, spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("which rights are needed may hang on parameters that spec.parametersFrom gives: %w", err)
	}
	given := sourced.Given
	maps.Copy(given, instance.Spec.Parameters)
	return rights.Of(rights.Subject{
		Namespace: instance.Namespace, Name: instance.Name, Version: spec, Parameters: given,
		Sources: instance.Spec.ParametersFrom, From: instance.CompletedVersion(), Written: instance.Status.Resources,
	}, rights.Known{Versions: versions, Served: c.RESTMapper().RESTMapping})
}

// installedSpecs finds the OperatorVersions of a namespace.
func installedSpecs(ctx context.Context, c client.Client, namespace string) func(string) *v1beta1.OperatorVersionSpec {
	return func(name string) *v1beta1.OperatorVersionSpec {
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, ov) != nil {
			return nil // which is noted
		}
		return &ov.Spec
	}
}

// rightsQuestion returns the question before rights are given.
func rightsQuestion(yes bool) command.Question {
	return command.Question{Text: "Give these rights?", Yes: yes,
		NoTerminal: "rights are given only after a question, and stdin is no terminal: say --yes to give those that are shown",
		Declined:   "the rights were not given: nothing was changed"}
}
