package remote

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestAccess checks C41: the address of a cluster's proxy, with the identity of the hub's configuration.
func TestAccess(t *testing.T) {
	for _, tc := range []struct{ reason, host, cluster, want string }{
		{"a URL", "https://hub:6443", "m1", "https://hub:6443/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"},
		{"a URL with a path", "https://hub/k8s/", "m1", "https://hub/k8s/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"},
		{"a host and a port", "hub:6443", "m1", "https://hub:6443/apis/cluster.karmada.io/v1alpha1/clusters/m1/proxy"},
		{"a name that leaves the path", "https://hub", "../m1", ""},
		{"a name that is a step up", "https://hub", "..", ""},
		{"no name", "https://hub", "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			hub := &rest.Config{Host: tc.host, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca")}}
			got, err := Access(hub, tc.cluster)
			if tc.want == "" {
				if err == nil {
					t.Errorf("the cluster %q is reached at %s", tc.cluster, got.Host)
				}
				return
			}
			if err != nil || got.Host != tc.want || got.BearerToken != "secret" || hub.Host != tc.host {
				t.Errorf("got %v, %v, want %s", got, err, tc.want)
			}
			if url, _, err := rest.DefaultServerUrlFor(got); err != nil || url.String() != tc.want {
				t.Errorf("a client takes the address as %v: %v", url, err)
			}
		})
	}
}
