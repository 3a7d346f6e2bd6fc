package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

const (
	staysClusterScoped = "%s %s stays, since it is cluster-scoped and others may use it"
	staysKept          = "%s %s stays, since it is annotated to be kept: an Instance of the same name takes it over"
	staysUnowned       = "%s %s stays with its data, since a StatefulSet does not own its claims: an Instance of the same name uses it again"
)

// keepOrWarn returns lines on what stays when an Instance is deleted. It annotates the claims that would go, if the user wants to keep
// them, and warns of them otherwise. What the user may not read is left out.
func (o *uninstallOptions) keepOrWarn(ctx context.Context, c client.Client, instance *v1beta1.Instance) ([]string, error) {
	var lines []string
	for _, r := range instance.Status.Resources {
		switch {
		case r.Namespace == "":
			lines = append(lines, fmt.Sprintf(staysClusterScoped, strings.ToLower(r.Kind), r.Name))
		case r.Kind != "PersistentVolumeClaim" && isKept(ctx, c, r):
			lines = append(lines, fmt.Sprintf(staysKept, strings.ToLower(r.Kind), r.Name))
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	err := c.List(ctx, claims, client.InNamespace(instance.Namespace),
		client.MatchingLabels{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: instance.Name})
	if err != nil && o.keepClaims {
		return nil, fmt.Errorf("list PersistentVolumeClaims, instance %s/%s is not deleted: %w", instance.Namespace, instance.Name, err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		isOwner := func(owner metav1.OwnerReference) bool { return owner.UID == instance.UID }
		switch {
		case v1beta1.IsKept(claim.Annotations):
		case !slices.ContainsFunc(claim.OwnerReferences, isOwner):
			lines = append(lines, fmt.Sprintf(staysUnowned, "persistentvolumeclaim", claim.Name))
			continue
		case !o.keepClaims:
			o.env.Warnf("persistentvolumeclaim %s/%s is deleted with its data: --keep-claims would keep it", claim.Namespace, claim.Name)
			continue
		}
		if err := keepClaim(ctx, c, claim, slices.DeleteFunc(slices.Clone(claim.OwnerReferences), isOwner)); err != nil {
			return nil, fmt.Errorf("keep PersistentVolumeClaim %s/%s, instance %s is not deleted: %w", claim.Namespace, claim.Name,
				instance.Name, err)
		}
		lines = append(lines, fmt.Sprintf(staysKept, "persistentvolumeclaim", claim.Name))
	}
	return lines, nil
}

// isKept reports whether an object of the inventory is annotated to be kept.
func isKept(ctx context.Context, c client.Client, r v1beta1.ResourceStatus) bool {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if !v1beta1.CanBeKept(live.GroupVersionKind().GroupKind()) {
		return false
	}
	err := c.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, live)
	return err == nil && v1beta1.IsKept(live.Annotations)
}

// keepClaim annotates a claim and leaves it to other owners, in one write: the manager would take the Instance off the owners later than
// the garbage collector deletes the claim.
func keepClaim(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim, others []metav1.OwnerReference) error {
	if v1beta1.IsKept(claim.Annotations) && len(others) == len(claim.OwnerReferences) {
		return nil
	}
	metadata := map[string]any{"uid": claim.UID, "resourceVersion": claim.ResourceVersion, "ownerReferences": others}
	if !v1beta1.IsKept(claim.Annotations) {
		metadata["annotations"] = map[string]string{v1beta1.KeepAnnotation: "true"}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
}
