package instances

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/quota"
	"kudo.dev/kudo/pkg/runner"
)

// previewUpgrade says which plan an upgrade will run, and which objects it will delete after it, since the new version
// does not name them any more. Nothing is changed.
func previewUpgrade(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, pkg *operators.Package) error {
	_, version, err := operators.Convert(pkg, instance.Namespace)
	if err != nil {
		return fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	layers, unreached, unknown, err := liveLayers(ctx, c)
	if err != nil {
		return err
	}
	preview, err := runner.PreviewUpgrade(ctx, c, instance, version, layers)
	if err != nil {
		return err
	}
	env.Printf("instance %s/%s: plan %s of %s would run", instance.Namespace, instance.Name, preview.Plan, version.Name)
	showQuotas(env, instance.Namespace, preview)
	showNeeds(env, preview)
	if unknown || len(unreached) > 0 {
		env.Printf("what objects request and depend on may differ: not all explore rules and webhooks of the cluster could be asked from here")
	}
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

// showQuotas says what a plan would need more than the quotas of its namespace have left, or why that is not known.
func showQuotas(env *command.Env, namespace string, preview *runner.UpgradePreview) {
	switch {
	case preview.QuotasUnknown != nil:
		env.Printf("it is not known whether plan %s fits into the quotas of namespace %s: %v", preview.Plan, namespace, preview.QuotasUnknown)
	case len(preview.Exceeded) > 0:
		env.Printf("plan %s would need more than is left in namespace %s: %s. Kubernetes refuses what exceeds a quota: raise the quota, or "+
			"lower the replicas or requests", preview.Plan, namespace, quota.Describe(preview.Exceeded))
	}
}

// showNeeds says what the objects of a plan depend on and is missing, or why that is not known.
func showNeeds(env *command.Env, preview *runner.UpgradePreview) {
	for _, text := range preview.Needs {
		env.Printf("%s", text)
	}
	if preview.NeedsUnknown != nil {
		env.Printf("it is not known what the objects of plan %s depend on: %v", preview.Plan, preview.NeedsUnknown)
	}
}
