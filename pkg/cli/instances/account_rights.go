package instances

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/rights"
)

// giveRights shows what the plans of an Instance need, asks, and gives it to its account. Everything is checked before
// anything is written.
func giveRights(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, needed *rights.Rights,
	yes bool) (*rights.Change, error) {
	change, err := rights.CompareAccount(ctx, c, instance, needed, kudoinit.ManagerAccount(ctx, c))
	if err != nil {
		return nil, err
	}
	if err := change.Try(ctx, c); err != nil {
		return nil, err
	}
	for _, note := range needed.Notes {
		env.Warnf("%s", command.QuoteControls(note))
	}
	if len(change.Steps) == 0 {
		env.Printf("serviceaccount %s/%s has the rights that the plans need", change.Namespace, change.Name)
		return change, nil
	}
	if err := showChange(env, change); err != nil {
		return nil, err
	}
	if err := env.Ask(rightsQuestion(yes)); err != nil {
		return nil, err
	}
	return change, change.Write(ctx, c, func(step rights.Step) {
		verb := "created"
		if step.IsPatch() {
			verb = "changed"
		}
		env.Printf("%s %s/%s %s", strings.ToLower(step.Object.GetObjectKind().GroupVersionKind().Kind), step.Object.GetNamespace(),
			step.Object.GetName(), verb)
	})
}

// showChange prints the rights that an account gets, or how they change.
func showChange(env *command.Env, change *rights.Change) error {
	switch {
	case change.IsNew:
		if change.IsForeign {
			env.Warnf("serviceaccount %s/%s is there already: whatever else uses it gets these rights too", change.Namespace, change.Name)
		}
		env.Printf("serviceaccount %s/%s gets these rights in namespace %s, and kudo acts as it when it runs the plans of instance %s:",
			change.Namespace, change.Name, change.Namespace, change.Instance)
		return env.PrintTable(command.RuleRows("", change.Added))
	case len(change.Added)+len(change.Removed) == 0:
		return nil
	}
	env.Printf("the rights of serviceaccount %s/%s in namespace %s change:", change.Namespace, change.Name, change.Namespace)
	return env.PrintTable(append(command.RuleRows("- ", change.Removed), command.RuleRows("+ ", change.Added)...))
}

// ownAccount has the objects of an account deleted with its Instance, and warns of those that will stay.
func ownAccount(ctx context.Context, env *command.Env, c client.Client, change *rights.Change, instance *v1beta1.Instance) {
	for _, failure := range change.Own(ctx, c, instance) {
		env.Warnf("%v", failure)
	}
}
