package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Karmada returns the folder of Karmada's definitions and of those of the cluster inventory.
func Karmada(t testing.TB) fs.FS {
	t.Helper()
	return os.DirFS(filepath.Join(Require(t), "karmada-crds"))
}

// KarmadaCluster defines Cluster, which Karmada serves by an aggregated API server without a CustomResourceDefinition.
const KarmadaCluster = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.karmada.io}
spec:
  group: cluster.karmada.io
  names: {kind: Cluster, plural: clusters, singular: cluster, listKind: ClusterList}
  scope: Cluster
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
