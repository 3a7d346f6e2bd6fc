package instances

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/runner"
	"kudo.dev/kudo/plans"
)

// previewUpgrade says which plan an upgrade will run, and which objects it will delete after it, since the new version
// does not name them any more. Nothing is changed.
func previewUpgrade(ctx context.Context, env *command.Env, c client.Client, instance *v1beta1.Instance, pkg *operators.Package) error {
	_, version, err := operators.Convert(pkg, instance.Namespace)
	if err != nil {
		return fmt.Errorf("package %s:\n%w", pkg.Operator.Name, err)
	}
	plan := plans.FirstDefined(version.Spec.InstancePlans(), v1beta1.UpgradePlan, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	if plan == "" {
		return fmt.Errorf("operator %s %s has none of the plans upgrade, update and deploy: nothing can upgrade to it", pkg.Operator.Name, pkg.Operator.OperatorVersion)
	}
	content, err := runner.NewVersions().ForSpec(&version.Spec)
	if err != nil {
		return err
	}
	sourced, err := paramsource.Read(ctx, c, instance, version.Spec.Parameters)
	if err != nil {
		return fmt.Errorf("which objects stay may hang on parameters that spec.parametersFrom gives: %w", err)
	}
	given := sourced.Given
	maps.Copy(given, instance.Spec.Parameters)
	run := &runner.Run{
		Subject: runner.Subject{Kind: "Instance", Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID},
		Source:  version.Name, Version: content, Plan: plan, Parameters: given, Sensitive: sourced.Sensitive,
	}
	inventory := runner.Inventory{}
	for _, r := range instance.Status.Resources {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
		inventory[id] = apply.Record{UID: r.UID}
	}
	left, err := runner.AbandonedObjects(run, inventory)
	if err != nil {
		return err
	}
	env.Printf("instance %s/%s: plan %s of %s would run", instance.Namespace, instance.Name, plan, version.Name)
	if len(left) == 0 {
		env.Printf("no object would be deleted: the new version names all that are there")
		return nil
	}
	rows := [][]string{{"OBJECT", "WHAT", "WHY"}}
	for _, id := range left {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(id.GroupVersionKind)
		if err := c.Get(ctx, id.NamespacedName, live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		what, why := "would be deleted", version.Name+" does not name it"
		if kept := runner.KeepReason(id, live.Annotations); kept != "" {
			what, why = "stays", kept
		}
		rows = append(rows, []string{id.String(), what, why})
	}
	return env.PrintTable(rows)
}
