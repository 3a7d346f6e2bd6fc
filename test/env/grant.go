package env

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grant gives ServiceAccount kudo of a namespace all rights on a kind of the whole cluster, until the test ends: for plans
// that write cluster-scoped objects, as an administrator does who trusts a package. It waits until the API server knows it.
func (c *Cluster) Grant(t testing.TB, namespace, group, resource string) {
	t.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: namespace + "-" + resource}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "kudo"}}}
	Must(t, c.Create(ctx, role))
	t.Cleanup(func() { _ = c.Delete(context.Background(), role) })
	Must(t, c.Create(ctx, binding))
	t.Cleanup(func() { _ = c.Delete(context.Background(), binding) })
	Must(t, c.AwaitRight(ctx, "system:serviceaccount:"+namespace+":kudo", authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "create"}))
}
