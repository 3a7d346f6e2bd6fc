package diagnostics

import (
	"context"
	"errors"
	"path"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managerNamespace is where the manager is if nothing else shows.
const managerNamespace = "kudo-system"

// manager collects what runs the plans. No Secret of its namespace is read.
func (c *Collector) manager(ctx context.Context) {
	c.Progress("manager")
	folder := path.Join(root, "kudo")
	ours := client.MatchingLabels{"app": "kudo-manager"}
	namespaces := []string{managerNamespace}
	found := false
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	} {
		for _, obj := range c.list(ctx, kind, c.Limits.Objects, ours) {
			found = found || kind.Group == "apps"
			if ns := obj.GetNamespace(); ns != "" && !slices.Contains(namespaces, ns) {
				namespaces = append(namespaces, ns)
			}
			c.object(path.Join(folder, resourceFile(&obj)), &obj)
		}
	}
	if !found {
		c.fail("manager", errors.New("there is no Deployment labeled app=kudo-manager: if the manager runs outside of the cluster, its log "+
			"is there"))
	}
	for _, ns := range namespaces {
		lease, err := c.get(ctx, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, ns, "kudo-manager")
		if err == nil {
			c.object(path.Join(folder, resourceFile(lease)), lease)
		} else if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			c.fail("lease of the manager", err)
		}
	}
	var pods []*pod
	for _, obj := range c.list(ctx, podKind, c.Limits.Objects, ours) {
		if p := c.pod(folder, &obj); p != nil {
			pods = append(pods, p)
		}
	}
	c.logs(ctx, pods)
}
