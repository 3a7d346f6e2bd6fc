package rights

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// roleRef is a Role of the namespace or a ClusterRole.
type roleRef struct{ kind, name string }

// binding is a role that a plan binds, in the namespace or for the whole cluster.
type binding struct {
	roleRef
	clusterWide bool
}

// roles collects what writing roles and bindings needs beside the objects themselves. The API server lets an account write
//
//	a role       if it may do all that the role allows; an aggregated one, whose rules others make, by escalate only
//	a binding    if it may do all that the role allows, or has the verb bind on the role
func (c *collector) roles(o *unstructured.Unstructured) error {
	if o.GroupVersionKind().Group != rbacv1.GroupName {
		return nil
	}
	switch o.GetKind() {
	case "Role":
		role := &rbacv1.Role{}
		if err := read(o, role); err != nil {
			return err
		}
		c.made[roleRef{"Role", role.Name}] = true
		c.inside.rules(role.Rules)
	case "ClusterRole":
		role := &rbacv1.ClusterRole{}
		if err := read(o, role); err != nil {
			return err
		}
		if role.AggregationRule != nil {
			c.outside.allow(rbacv1.GroupName, "clusterroles", []string{role.Name}, "escalate")
			return nil
		}
		c.made[roleRef{"ClusterRole", role.Name}] = true
		c.outside.rules(role.Rules)
	case "RoleBinding":
		b := &rbacv1.RoleBinding{}
		if err := read(o, b); err != nil {
			return err
		}
		c.bound[binding{roleRef{b.RoleRef.Kind, b.RoleRef.Name}, false}] = true
	case "ClusterRoleBinding":
		b := &rbacv1.ClusterRoleBinding{}
		if err := read(o, b); err != nil {
			return err
		}
		c.bound[binding{roleRef{b.RoleRef.Kind, b.RoleRef.Name}, true}] = true
	}
	return nil
}

// bind collects what the bindings need, when all roles of the plans are known: their rules are there already.
func (c *collector) bind() {
	resources := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}
	for b := range c.bound {
		if c.made[b.roleRef] || resources[b.kind] == "" {
			continue
		}
		into := c.inside
		if b.clusterWide {
			into = c.outside
		}
		into.allow(rbacv1.GroupName, resources[b.kind], []string{b.name}, "bind")
	}
}

func read(o *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
