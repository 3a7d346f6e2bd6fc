package env

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Leader returns the identity of the manager that leads, as its lease in kudo-system has it; empty if there is none.
func (c *Cluster) Leader(t testing.TB) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := c.Get(context.Background(), client.ObjectKey{Namespace: "kudo-system", Name: "kudo-manager"}, lease)
	Must(t, client.IgnoreNotFound(err))
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// AwaitLeader waits until a manager leads whose identity is another one than before, and returns that.
func (c *Cluster) AwaitLeader(t testing.TB, before string) string {
	t.Helper()
	leader := ""
	Eventually(t, "another leader than "+before, func() string {
		if leader = c.Leader(t); leader == "" || leader == before {
			return "it is " + leader
		}
		return ""
	})
	return leader
}
