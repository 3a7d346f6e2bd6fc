package e2e

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/gen"
)

// releaseManifest are the objects of a release shop: a server, and a store that counts its starts in a volume.
const releaseManifest = `apiVersion: v1
kind: ConfigMap
metadata: {name: shop, annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: NAMESPACE}}
data: {color: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: NAMESPACE}}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: shop, image: "busybox:1", args: [-c, "busybox sleep 100000"]}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: NAMESPACE}}
spec:
  replicas: 1
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: store
        image: "busybox:1"
        args: [-c, "echo start >> /data/starts; busybox sleep 100000"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`

// installRelease creates what helm install would create for release shop: its objects, and the Secret that stores the release.
func installRelease(ns string) {
	GinkgoHelper()
	manifest := strings.ReplaceAll(releaseManifest, "NAMESPACE", ns)
	apply(ns, manifest)
	secret := gen.HelmSecret(gen.HelmRelease(ns, "shop", manifest))
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	text, err := yaml.Marshal(secret)
	Expect(err).NotTo(HaveOccurred())
	apply(ns, string(text))
}

var _ = Describe("A release of Helm", Label("from-helm", "P31"), func() {
	It("goes to kudo and back while its containers run on", func() {
		ns := namespace()
		installRelease(ns)
		kubectl("rollout", "status", "deployment/shop", "statefulset/store", "-n", ns, "--timeout=120s")
		started := func() string {
			GinkgoHelper()
			return kubectl("get", "pods", "-n", ns, "-o", `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].containerID} `+
				`{.status.containerStatuses[0].state.running.startedAt}{"\n"}{end}`)
		}
		before := started()
		Expect(strings.Fields(before)).To(HaveLen(6), before)
		folder := filepath.Join(GinkgoT().TempDir(), "shop")
		kubectl("kudo", "package", "from-helm", "shop", "-n", ns, "-d", folder, "--parameter", "COLOR=ConfigMap/shop:data.color")
		install(ns, "shop", folder, "--adopt")
		kubectl("kudo", "package", "from-helm", "shop", "-n", ns, "--complete", "--instance", "shop", "-y")
		Expect(started()).To(Equal(before), "the containers after the release was taken over")
		kubectl("kudo", "update", "shop", "-n", ns, "-p", "COLOR=blue", "--wait")
		Expect(kubectl("get", "configmap", "shop", "-n", ns, "-o", "jsonpath={.data.color}")).To(Equal("blue"))
		Expect(started()).To(Equal(before), "the containers after an update of another object")
		kubectl("kudo", "package", "from-helm", "shop", "-n", ns, "--return", "--instance", "shop", "-y")
		Expect(kubectl("get", "secrets", "-n", ns, "-l", "owner=helm,status=deployed", "-o", "name")).To(Equal("secret/sh.helm.release.v1.shop.v1\n"))
		Expect(kubectl("get", "instances", "-n", ns, "-o", "name")).To(BeEmpty())
		Expect(started()).To(Equal(before), "the containers after the way back")
		Expect(kubectl("exec", "store-0", "-n", ns, "--", "sh", "-c", "busybox cat /data/starts")).To(Equal("start\n"))
	})
})
