package kudoinit

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/manifests"
)

// prunedKinds are the kinds of which an upgrade deletes objects that an earlier version has installed. Objects of other kinds hold data.
var prunedKinds = []schema.GroupVersionKind{
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Version: "v1", Kind: "ResourceQuota"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
}

// Prune deletes objects that init has installed for another version, and that this version does not have with any options.
func Prune(ctx context.Context, c client.Client, version string, removed func(obj client.Object)) error {
	obsolete, err := listObsolete(ctx, c, version)
	if err != nil {
		return err
	}
	for _, obj := range obsolete {
		if err := c.Delete(ctx, obj, client.Preconditions{UID: &obj.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s of an earlier version: %w", obj.Kind, obj.Name, err)
		}
		removed(obj)
	}
	return nil
}

// listObsolete lists what init has installed for another version and this one does not have.
func listObsolete(ctx context.Context, c client.Client, version string) (out []*metav1.PartialObjectMetadata, err error) {
	known, err := manifestNames()
	if err != nil {
		return nil, err
	}
	for _, kind := range prunedKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("look for objects of earlier versions: %w", err)
		}
		for n := range list.Items {
			obj := &list.Items[n]
			if !known[kind.Kind+" "+obj.Name] && isObsolete(obj, version) {
				obj.SetGroupVersionKind(kind)
				out = append(out, obj)
			}
		}
	}
	return out, nil
}

// isObsolete reports whether init has applied an object for another version.
func isObsolete(obj *metav1.PartialObjectMetadata, version string) bool {
	of := obj.Annotations[VersionAnnotation]
	return of != "" && of != version && slices.ContainsFunc(obj.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// manifestNames are the kinds and names of all objects that any options install.
func manifestNames() (map[string]bool, error) {
	files, err := fs.Glob(manifests.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, name := range append(files, monitoringFiles...) {
		objs, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("manifest %s: %w", name, err)
		}
		for _, obj := range objs {
			out[obj.GetKind()+" "+obj.GetName()] = true
		}
	}
	return out, nil
}
