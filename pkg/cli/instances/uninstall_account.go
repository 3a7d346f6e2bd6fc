package instances

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/rights"
)

// accountObjects are the objects of the accounts of Instances that are deleted with them. No inventory names these objects.
type accountObjects struct {
	deleted []query
	// unread is set if some could not be read, and may be deleted.
	unread bool
}

// resourcesOfAccount names what a command may have made for the account of an Instance, but for what the inventory names.
func resourcesOfAccount(i *v1beta1.Instance) []v1beta1.ResourceStatus {
	var out []v1beta1.ResourceStatus
	for _, obj := range rights.AccountOf(i).Own() {
		apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		r := v1beta1.ResourceStatus{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
		isSame := func(other v1beta1.ResourceStatus) bool { return idOf(other) == idOf(r) }
		if !slices.ContainsFunc(i.Status.Resources, isSame) {
			out = append(out, r)
		}
	}
	return out
}

// addAccountObject adds what becomes of an object of the account, which was read, or could not be. It warns of what is not known.
func (e *effects) addAccountObject(ctx context.Context, i *v1beta1.Instance, r v1beta1.ResourceStatus, live *metav1.PartialObjectMetadata,
	err error, h holders) {
	switch {
	case apierrors.IsNotFound(err) || !rights.AccountOf(i).IsDeletedWith(i, live, err):
	case err != nil:
		e.accounts.unread = true
		e.warnings = append(e.warnings, fmt.Sprintf("what becomes of %s is not known: %s", idOf(r), err))
	case e.addObject(ctx, i, r, live, h):
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		e.accounts.deleted = append(e.accounts.deleted, query{kind, r.Name, live.UID})
	}
}
