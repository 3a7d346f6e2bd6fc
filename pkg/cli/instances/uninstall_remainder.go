package instances

import (
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/text"
)

// printStays lists the objects that stay.
func printStays(env *command.Env, kept []act.KeptObject) {
	for _, k := range kept {
		env.Printf("%s %s stays, since %s", strings.ToLower(k.Kind.Kind), k.Name, k.Why)
	}
}

// printRemedy prints how the objects that stay are deleted.
func printRemedy(env *command.Env, namespace string, kept []act.KeptObject) {
	var names []string
	for _, k := range kept {
		if k.IsHeld {
			continue
		}
		resource := k.Kind
		resource.Kind = strings.ToLower(resource.Kind)
		names = append(names, text.ShellQuote(resource.String()+"/"+k.Name))
	}
	if len(names) > 0 {
		env.Printf("delete what is not needed any more: kubectl delete -n %s %s", namespace, strings.Join(names, " "))
	}
}

// maxDeletedNames is how many of the objects that are deleted the command names.
const maxDeletedNames = 20

// printEffects says what is deleted and what stays, before it is done.
func printEffects(env *command.Env, e *act.Effects, instance *v1beta1.Instance) {
	if len(e.Deleted) > 0 {
		slices.Sort(e.Deleted)
		env.Printf("to be deleted with instance %s/%s: %s", instance.Namespace, instance.Name, text.List(e.Deleted, maxDeletedNames))
	}
	printStays(env, e.Stays)
	printStays(env, e.Shared)
	for _, warning := range e.Warnings {
		env.Warnf("%s", warning)
	}
}
