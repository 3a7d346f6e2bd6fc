package chart

import (
	"bytes"
	"fmt"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/hack/release/chart/charttest"
)

// overlay is what people put on top of the base, and the values of init that give the same objects.
type overlay struct{ values, kustomization string }

// deployment is the target of patches that are lists of operations.
const deployment = `{kind: Deployment, name: kudo-controller-manager}`

var overlays = map[string]overlay{
	"Defaults": {},
	"HighAvailability": {"replicas: 3\naffinity: {nodeAffinity: {}}\npriorityClassName: high\n", `
replicas: [{name: kudo-controller-manager, count: 3}]
patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: kudo-controller-manager, namespace: kudo-system}
    spec: {template: {spec: {priorityClassName: high, affinity: {nodeAffinity: {}}}}}
`},
	"ResourcesAndNodes": {"resources: {requests: {cpu: 500m}, limits: {memory: 2Gi}}\nnodeSelector: {kubernetes.io/os: linux}\ntolerations: [{key: dedicated, operator: Exists}]\npodLabels: {team: platform}\n", `
patches:
- target: ` + deployment + `
  patch: |-
    - {op: replace, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: 500m}, limits: {memory: 2Gi}}}
    - {op: add, path: /spec/template/spec/nodeSelector, value: {kubernetes.io/os: linux}}
    - {op: add, path: /spec/template/spec/tolerations, value: [{key: dedicated, operator: Exists}]}
    - {op: add, path: /spec/template/metadata/labels/team, value: platform}
`},
	"MirrorWithPullSecrets": {"imageRegistry: mirror.example.com\nimagePullSecrets: [{name: mirror}]\nimagePullPolicy: Always\npipeImage: " + testImage + "\n", `
images: [{name: registry.example.org/kudo/manager, newName: mirror.example.com/kudo/manager}]
patches:
- target: ` + deployment + `
  patch: |-
    - {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: mirror}]}
    - {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Always}
`},
	"ProxyAndCache": {"logFormat: console\nproxy: {https: 'http://p:1'}\ncacheVolume: {persistentVolumeClaim: {claimName: tarballs}}\n", `
patches:
- target: ` + deployment + `
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --zap-encoder=console}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: HTTPS_PROXY, value: "http://p:1"}}
    - op: add
      path: /spec/template/spec/containers/0/env/-
      value: {name: NO_PROXY, value: "$(KUBERNETES_SERVICE_HOST),localhost,127.0.0.1,::1,.svc,.cluster.local"}
    - {op: replace, path: /spec/template/spec/volumes/1, value: {name: cache, persistentVolumeClaim: {claimName: tarballs}}}
`},
}

// valuesPatch is a patch of the ConfigMap with the values, with which init --verify compares the installation.
const valuesPatch = `
- patch: |-
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: kudo-values, namespace: kudo-system}
    data: {values.yaml: %q}
`

// TestKustomizeIsInit checks R14: kustomize builds the objects of init from the base, with the defaults and with overlays as people write
// them.
func TestKustomizeIsInit(t *testing.T) {
	released(t)
	var base bytes.Buffer
	for _, obj := range initObjects(t, "") {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&base, "---\n%s", text)
	}
	for name, o := range overlays {
		t.Run(name, func(t *testing.T) {
			files := filesys.MakeFsInMemory()
			if o.values != "" {
				o.kustomization += fmt.Sprintf(valuesPatch, o.values)
			}
			for name, text := range map[string]string{
				"base/kustomization.yaml": "resources: [install.yaml]\n", "base/install.yaml": base.String(),
				"overlay/kustomization.yaml": "resources: [../base]\n" + o.kustomization,
			} {
				if err := files.WriteFile(name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "overlay")
			if err != nil {
				t.Fatal(err)
			}
			text, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			objs, err := charttest.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := difference(t, initObjects(t, o.values), objs); diff != "" {
				t.Errorf("the overlay differs from init (-init +overlay):\n%s", diff)
			}
		})
	}
}
