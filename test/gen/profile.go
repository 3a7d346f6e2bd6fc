package gen

import (
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// ClusterProfile returns a ClusterProfile of a cluster at a server, whose credentials are in a Secret of the same name, and the status that
// says so.
func ClusterProfile(namespace, name, server string, ca []byte) (profile *unstructured.Unstructured, status map[string]any) {
	profile = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"spec": map[string]any{"clusterManager": map[string]any{"name": "test"}}}}
	profile.SetNamespace(namespace)
	profile.SetName(name)
	cluster := map[string]any{"server": server, "certificate-authority-data": base64.StdEncoding.EncodeToString(ca), "extensions": []any{
		map[string]any{"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"secretName": name}}}}
	return profile, map[string]any{"accessProviders": []any{map[string]any{"name": "kudo-secret", "cluster": cluster}}}
}

// KubeconfigSecret returns a Secret with a kubeconfig for a server, with the client certificate of a config.
func KubeconfigSecret(namespace, name, server string, config *rest.Config) *corev1.Secret {
	encode := base64.StdEncoding.EncodeToString
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '%s'}}]\nusers: [{name: u, user: "+
		"{client-certificate-data: %s, client-key-data: %s}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n", server,
		encode(config.CertData), encode(config.KeyData))
	return &corev1.Secret{ObjectMeta: Meta(namespace, name), StringData: map[string]string{"kubeconfig": text}}
}
