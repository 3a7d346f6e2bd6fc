package rights

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MayCreate returns an error if the user of the client may not create objects of a resource.
func MayCreate(ctx context.Context, c client.Client, namespace string, resource schema.GroupResource) error {
	allowed, err := may(ctx, c, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: resource.Group,
		Resource: resource.Resource})
	if err != nil || allowed {
		return err
	}
	return apierrors.NewForbidden(resource, "", fmt.Errorf("you may not create %s in namespace %s", resource, namespace))
}

// MayUse returns an error if the user of the client may not let Instances run as an account.
func MayUse(ctx context.Context, c client.Client, namespace, account string) error {
	for _, verb := range []string{"use", "impersonate"} {
		allowed, err := may(ctx, c, authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Resource: "serviceaccounts",
			Name: account})
		if err != nil || allowed {
			return err
		}
	}
	return fmt.Errorf("its plans would run as ServiceAccount %s/%s: you need the verb \"use\" on serviceaccounts %q in namespace %s",
		namespace, account, account, namespace)
}

// may reports whether the API server allows the user of the client a request.
func may(ctx context.Context, c client.Client, request authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
