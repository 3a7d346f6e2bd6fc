package runner

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/quota"
	"kudo.dev/kudo/plans"
)

// UpgradePreview is what an upgrade of an Instance would do.
type UpgradePreview struct {
	// Plan that would run.
	Plan string
	// Abandoned are the objects that the new version does not name any more, in the order of their names.
	Abandoned []apply.ID
	// Exceeded is what ResourceQuotas of the namespace have too little of for the plan, and QuotasUnknown why that is not known.
	Exceeded      []quota.Excess
	QuotasUnknown error
	// Needs says what the objects of the plan depend on and is missing or not known, a text for each such object, and NeedsUnknown why that
	// is not known at all.
	Needs        []string
	NeedsUnknown error
}

// PreviewUpgrade computes what an upgrade of an Instance to an OperatorVersion would do. The parameters are those that the Instance
// is to have. Nothing is changed, and the OperatorVersion need not exist.
func PreviewUpgrade(ctx context.Context, c client.Client, instance *v1beta1.Instance, version *v1beta1.OperatorVersion,
	layers Interpreter) (*UpgradePreview, error) {
	plan := plans.FirstDefined(version.Spec.InstancePlans(), v1beta1.UpgradePlan, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	if plan == "" {
		return nil, fmt.Errorf("operator %s %s has none of the plans upgrade, update and deploy: nothing can upgrade to it",
			version.Spec.Operator.Name, version.Spec.Version)
	}
	content, err := NewVersions().ForSpec(&version.Spec)
	if err != nil {
		return nil, err
	}
	sourced, err := paramsource.Read(ctx, c, instance, version.Spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("which objects stay may hang on parameters that spec.parametersFrom gives: %w", err)
	}
	given := sourced.Given
	maps.Copy(given, instance.Spec.Parameters)
	run := &Run{
		Subject: Subject{Kind: "Instance", Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID},
		Source:  version.Name, Version: content, Plan: plan, Parameters: given, Sensitive: sourced.Sensitive,
		Suspend: instance.Spec.Suspend,
	}
	inventory := Inventory{}
	for _, r := range instance.Status.Resources {
		id := apply.ID{
			GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
			NamespacedName:   types.NamespacedName{Namespace: r.Namespace, Name: r.Name},
		}
		inventory[id] = apply.Record{UID: r.UID}
	}
	left, err := AbandonedObjects(run, inventory)
	if err != nil {
		return nil, err
	}
	preview := &UpgradePreview{Plan: plan, Abandoned: left}
	r := New(Options{All: layers, Kinds: apply.NewKinds(c.RESTMapper(), nil, nil)})
	preview.Exceeded, preview.QuotasUnknown = r.previewQuotas(ctx, c, run, inventory)
	preview.Needs, preview.NeedsUnknown = r.previewNeeds(ctx, c, run)
	return preview, nil
}

// previewQuotas holds what a run would apply against the quotas of its namespace, with the rights of the client.
func (r *Runner) previewQuotas(ctx context.Context, c client.Client, run *Run, inventory Inventory) ([]quota.Excess, error) {
	quotas, err := run.quotas(ctx, quotasOf(c))
	if err != nil || len(quotas) == 0 {
		return nil, err
	}
	return r.exceededQuotas(ctx, run, inventory, quotas, func(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error) {
		live := id.Object()
		err := c.Get(ctx, id.NamespacedName, live)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return live, err
	})
}

// LiveKeepReason says why an abandoned object would be kept, by its annotations in the cluster; empty if it would be deleted.
func LiveKeepReason(ctx context.Context, c client.Reader, id apply.ID) (string, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(id.GroupVersionKind)
	if err := c.Get(ctx, id.NamespacedName, live); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("%s: %w", id, err)
	}
	return KeepReason(id, live.Annotations), nil
}
