package instances

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/runner"
)

// previewUpgrade says which plan an upgrade will run, and which objects it will delete after it, since the new version
// does not name them any more. Nothing is changed.
func previewUpgrade(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, pkg *operators.Package) error {
	_, version, err := operators.Convert(pkg, instance.Namespace)
	if err != nil {
		return fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	preview, err := runner.PreviewUpgrade(ctx, c, instance, version)
	if err != nil {
		return err
	}
	env.Printf("instance %s/%s: plan %s of %s would run", instance.Namespace, instance.Name, preview.Plan, version.Name)
	if len(preview.Abandoned) == 0 {
		env.Printf("no object would be deleted: the new version names all that are there")
		return nil
	}
	rows := [][]string{{"OBJECT", "WHAT", "WHY"}}
	for _, id := range preview.Abandoned {
		kept, err := runner.LiveKeepReason(ctx, c, id)
		if err != nil {
			return err
		}
		what, why := "would be deleted", version.Name+" does not name it"
		if kept != "" {
			what, why = "stays", kept
		}
		rows = append(rows, []string{id.String(), what, why})
	}
	return env.PrintTable(rows)
}
