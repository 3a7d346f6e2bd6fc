package env

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account makes ServiceAccount kudo of a namespace, with all rights on what is in it, and lets the manager act as it. It waits
// until the API server knows the rights, so that no plan meets a transient refusal.
func (c *Cluster) Account(ctx context.Context, namespace string) error {
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "kudo"}
	manager := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "kudo-system", Name: "kudo-manager"}
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta("kudo")},
		&rbacv1.Role{ObjectMeta: meta("kudo"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta("kudo"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kudo"}, Subjects: []rbacv1.Subject{account}},
		&rbacv1.RoleBinding{ObjectMeta: meta("kudo-run-as"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-run-as"}, Subjects: []rbacv1.Subject{manager}},
	} {
		if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	for _, right := range []struct {
		user string
		authorizationv1.ResourceAttributes
	}{
		{"system:serviceaccount:" + namespace + ":kudo", authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "configmaps"}},
		{"system:serviceaccount:kudo-system:kudo-manager", authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "impersonate", Resource: "serviceaccounts", Name: "kudo"}},
	} {
		if err := c.AwaitRight(ctx, right.user, right.ResourceAttributes); err != nil {
			return err
		}
	}
	return nil
}

// AwaitRight waits until the API server allows a user something.
func (c *Cluster) AwaitRight(ctx context.Context, user string, right authorizationv1.ResourceAttributes) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(DefaultTimeout); ; {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &right}}
		if err := c.Create(ctx, review); err != nil || review.Status.Allowed {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %s may not %s %s in namespace %s", DefaultTimeout, user, right.Verb, right.Resource, right.Namespace)
		}
		<-ticker.C
	}
}
