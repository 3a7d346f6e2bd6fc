// Package remote follows Instances into the clusters of a hub of Karmada, for clients that are not the engine: it reaches a cluster, and
// finds what Karmada has not done there yet.
package remote

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// ClusterKind is the kind of the clusters that are joined to a hub.
var ClusterKind = schema.GroupVersionKind{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"}

// Access returns a configuration that reaches a cluster by Karmada's proxy, with the identity of the configuration of the hub. The identity
// needs the right on clusters/proxy.
func Access(hub *rest.Config, cluster string) (*rest.Config, error) {
	if problems := content.IsPathSegmentName(cluster); cluster == "" || len(problems) > 0 {
		return nil, fmt.Errorf("reach cluster %q: the name is no path segment: name a Cluster of the hub", cluster)
	}
	base, _, err := rest.DefaultServerUrlFor(hub)
	if err != nil {
		return nil, fmt.Errorf("reach cluster %s: read the address of the hub: %w", cluster, err)
	}
	out := rest.CopyConfig(hub)
	out.Host = strings.TrimSuffix(base.String(), "/") + "/apis/" + ClusterKind.GroupVersion().String() + "/clusters/" + cluster + "/proxy"
	return out, nil
}
