package chart

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/hack/release/chart/charttest"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
)

const (
	testVersion = "v0.2.0"
	testImage   = "registry.example.org/kudo/manager@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	otherImage  = "example.com/other@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// released makes this process a released command line, which knows its version and its image.
func released(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", os.DevNull)
	t.Setenv("HOME", t.TempDir())
	version, image := command.Version, kudoinit.Image
	command.Version, kudoinit.Image = testVersion, testImage
	t.Cleanup(func() { command.Version, kudoinit.Image = version, image })
}

func testFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := Files(Options{Version: testVersion, Image: testImage, URL: "https://example.org/kudo"})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func testChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	chart, err := charttest.Load(testFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// initObjects returns what init prints, without the Namespace, which is not part of the chart. The values are those of --values.
func initObjects(t *testing.T, values string, flags ...string) []*unstructured.Unstructured {
	t.Helper()
	if values != "" {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--values", file)
	}
	objs, err := charttest.Init(flags...)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
}

func render(t *testing.T, chart *chartv2.Chart, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	objs, err := charttest.Render(chart, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return objs
}

func difference(t *testing.T, a, b []*unstructured.Unstructured) string {
	t.Helper()
	diff, err := charttest.Difference(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return diff
}

// installation is one that the chart and init must make the same of.
type installation struct {
	// both are values that have the same keys in the chart and in --values, and own those of the chart only, which flags correspond to.
	both, own string
	flags     []string
	namespace string
	// onCluster is set if the values decide by what is on the cluster, which a rendering does not have: TestHelm tries them.
	onCluster bool
}

// sets are sets of values as installations have them.
var sets = map[string]installation{
	"Defaults": {},
	"HighAvailability": {both: `
replicas: 3
priorityClassName: system-cluster-critical
affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: kudo-manager}}}]}}
podAnnotations: {example.org/scrape: "true", example.org/a: "7"}
`},
	"ResourcesAndNodes": {both: `
resources: {requests: {cpu: 0.5, memory: 1024Mi}, limits: {memory: 2Gi}}
nodeSelector: {kubernetes.io/os: linux, example.org/pool: "1"}
tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}, {key: x, operator: Equal, value: "y", effect: NoExecute, tolerationSeconds: 300}]
`},
	"MirrorWithPullSecrets": {both: `
imageRegistry: mirror.example.com:5000/a/b
imagePullSecrets: [{name: mirror}, {name: other}]
imagePullPolicy: Always
pipeImage: ` + otherImage + "\n"},
	"Settings": {own: `
settings: {mode: privileged, defaultAccount: deployer, runAsEverywhere: true, crdAllowedHosts: [a.example, "*.b.example", "c:8443", "[::1]:80", "::1"],
  defaultCRDURLTemplate: "https://a.example/{{ .OperatorName }}.tgz", ociTokenRealms: [auth.example, b.example],
  requirePackagePolicy: true}
insecureMetrics: true
`, flags: []string{"--privileged", "--default-account=deployer", "--run-as-everywhere", "--crd-allowed-hosts=a.example,*.b.example,c:8443,[::1]:80,::1",
		"--default-crd-url-template=https://a.example/{{ .OperatorName }}.tgz", "--oci-token-realms=auth.example,b.example", "--package-policy=required", "--insecure-metrics"}},
	"Everything": {both: `
image: ` + otherImage + `
imagePullPolicy: IfNotPresent
imagePullSecrets: [{name: "1"}]
pipeImage: ` + testImage + `
replicas: 4
exploreClientSecret: hooks
logFormat: console
proxy: {http: "http://a:1", https: "http://b:2", noProxy: [.corp, 10.0.0.0/8]}
cacheVolume: {ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}}}}
extraArgs: [--workers=16, --explore-max-timeout=5s, "--zap-level={{ x }}"]
resources: {}
nodeSelector: {a: b}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]}}
priorityClassName: high
podLabels: {team: platform, y: "no"}
podAnnotations: {"a/b": "text: with \"quotes\"\nand lines"}
`, own: `
serviceAccount: robot
certManager: true
insecureMetrics: true
settings: {defaultAccount: "1", runAsEverywhere: true, crdAllowedHosts: [a.example]}
`, flags: []string{"--service-account=robot", "--cert-manager", "--insecure-metrics", "--default-account=1", "--run-as-everywhere",
		"--crd-allowed-hosts=a.example", "-n", "other"}, namespace: "other"},
}

// TestChartIsInit checks R14: the chart renders to the objects of init, with default values and with those of installations.
func TestChartIsInit(t *testing.T) {
	released(t)
	chart := testChart(t)
	for name, i := range sets {
		t.Run(name, func(t *testing.T) {
			namespace := i.namespace
			if namespace == "" {
				namespace = kudoinit.DefaultNamespace
			}
			if diff := difference(t, initObjects(t, i.both, i.flags...), render(t, chart, namespace, i.both+i.own)); diff != "" {
				t.Errorf("the chart differs from init (-init +chart):\n%s", diff)
			}
		})
	}
}

// keys have a value other than the default for each key of values.yaml.
var keys = map[string]installation{
	"image":                          {both: "image: " + otherImage},
	"imageRegistry":                  {both: "imageRegistry: mirror.example.com", flags: []string{}},
	"imagePullPolicy":                {both: "imagePullPolicy: Never"},
	"imagePullSecrets":               {both: "imagePullSecrets: [{name: a}]"},
	"pipeImage":                      {own: "pipeImage: " + otherImage, flags: []string{"--pipe-image=" + otherImage}},
	"replicas":                       {own: "replicas: 4", flags: []string{"--manager-replicas=4"}},
	"exploreClientSecret":            {both: "exploreClientSecret: hooks"},
	"logFormat":                      {both: "logFormat: console"},
	"proxy":                          {both: "proxy: {https: 'http://a:1'}"},
	"cacheVolume":                    {both: "cacheVolume: {persistentVolumeClaim: {claimName: a}}"},
	"extraArgs":                      {both: "extraArgs: [--workers=3]"},
	"resources":                      {both: "resources: {}"},
	"nodeSelector":                   {both: "nodeSelector: {a: b}"},
	"tolerations":                    {both: "tolerations: [{operator: Exists}]"},
	"affinity":                       {both: "affinity: {nodeAffinity: {}}"},
	"priorityClassName":              {both: "priorityClassName: high"},
	"podLabels":                      {both: "podLabels: {a: b}"},
	"podAnnotations":                 {both: "podAnnotations: {a: b}"},
	"serviceAccount":                 {own: "serviceAccount: robot", flags: []string{"--service-account=robot"}},
	"certManager":                    {own: "certManager: true", flags: []string{"--cert-manager"}},
	"monitoring":                     {both: "monitoring: true\n"},
	"networkPolicy":                  {both: "networkPolicy: true\n"},
	"insecureMetrics":                {own: "insecureMetrics: true", flags: []string{"--insecure-metrics"}},
	"allowDowngrade":                 {own: "allowDowngrade: true", onCluster: true},
	"settings.mode":                  {own: "settings: {mode: privileged}", flags: []string{"--privileged"}},
	"settings.defaultAccount":        {own: "settings: {defaultAccount: a}", flags: []string{"--default-account=a"}},
	"settings.runAsEverywhere":       {own: "settings: {runAsEverywhere: true}", flags: []string{"--run-as-everywhere"}},
	"settings.crdAllowedHosts":       {own: "settings: {crdAllowedHosts: [a.example]}", flags: []string{"--crd-allowed-hosts=a.example"}},
	"settings.defaultCRDURLTemplate": {own: "settings: {defaultCRDURLTemplate: 'https://a'}", flags: []string{"--default-crd-url-template=https://a"}},
	"settings.requirePackagePolicy":  {own: "settings: {requirePackagePolicy: true}", flags: []string{"--package-policy=required"}},
	"settings.ociTokenRealms":        {own: "settings: {ociTokenRealms: [a]}", flags: []string{"--oci-token-realms=a"}},
}

// TestEachKey checks R14: each key of values.yaml changes what its flag or its key of --values changes, and the schema has each key.
func TestEachKey(t *testing.T) {
	released(t)
	chart := testChart(t)
	var known []string
	for key, value := range chart.Values {
		settings, nested := value.(map[string]any)
		if key != "settings" || !nested {
			known = append(known, key)
			continue
		}
		for name := range settings {
			known = append(known, key+"."+name)
		}
	}
	// values.yaml writes the default of these keys as null, which Helm leaves out.
	for _, name := range []string{"replicas", "resources"} {
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	if diff := difference(t, initObjects(t, ""), render(t, chart, kudoinit.DefaultNamespace, "")); diff != "" {
		t.Fatalf("the defaults differ:\n%s", diff)
	}
	slices.Sort(known)
	if tried := slices.Sorted(maps.Keys(keys)); !slices.Equal(known, tried) {
		t.Errorf("values.yaml has the keys %v, and %v are tried", known, tried)
	}
	for key, i := range keys {
		t.Run(key, func(t *testing.T) {
			wanted := initObjects(t, i.both, i.flags...)
			if diff := difference(t, wanted, render(t, chart, kudoinit.DefaultNamespace, i.both+i.own)); diff != "" {
				t.Errorf("the chart differs from init (-init +chart):\n%s", diff)
			}
			if !i.onCluster && difference(t, wanted, initObjects(t, "")) == "" {
				t.Error("the key changes nothing")
			}
		})
	}
}

// TestSchema checks R14: the schema refuses what init refuses.
func TestSchema(t *testing.T) {
	released(t)
	chart := testChart(t)
	for name, values := range map[string]string{
		"MisspeltKey":        "replica: 2",
		"MisspeltSetting":    "settings: {modus: strict}",
		"MisspeltResources":  "resources: {limit: {memory: 1Gi}}",
		"MisspeltSecret":     "imagePullSecrets: [{names: a}]",
		"MisspeltToleration": "tolerations: [{keys: a}]",
		"MisspeltAffinity":   "affinity: {nodeAffinities: {}}",
		"TextForNumber":      `replicas: "2"`,
		"TextForList":        "extraArgs: --workers=16",
		"NoReplicas":         "replicas: 0",
		"HalfReplica":        "replicas: 1.5",
		"PullPolicy":         "imagePullPolicy: Sometimes",
		"UnnamedSecret":      `imagePullSecrets: [{name: ""}]`,
		"ImageAndRegistry":   "image: a\nimageRegistry: b.example",
		"RegistryWithTag":    "imageRegistry: b.example/a@c",
		"UnpinnedPipeImage":  "pipeImage: busybox:1",
		"OwnArgument":        `extraArgs: ["--webhook-port=1"]`,
		"OwnFlag":            `extraArgs: ["--allow-unpinned-pipe-image"]`,
		"NoFlag":             "extraArgs: [workers]",
		"OwnLabel":           "podLabels: {app: other}",
		"OwnAnnotation":      "podAnnotations: {kudo.dev/version: other}",
		"LabelValue":         "podLabels: {a: 'b c'}",
		"LabelKey":           "podLabels: {'a b': c}",
		"SelectorKey":        "nodeSelector: {'a/b/c': d}",
		"Quantity":           "resources: {limits: {memory: much}}",
		"LogFormat":          "logFormat: text",
		"ProxyWithPassword":  "proxy: {http: 'http://u:p@a'}",
		"MisspeltProxy":      "proxy: {url: 'http://a'}",
		"HostOfNoProxy":      "proxy: {noProxy: ['a b']}",
		"CacheOnNode":        "cacheVolume: {hostPath: {path: /}}",
		"OwnLogFlag":         `extraArgs: ["--zap-encoder=json"]`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := charttest.Render(chart, kudoinit.DefaultNamespace, values); err == nil || !strings.Contains(err.Error(), "don't meet the specifications of the schema") {
				t.Errorf("the chart accepts %s: %v", values, err)
			}
			if _, err := kudoinit.ParseValues([]byte(values)); err == nil {
				t.Errorf("init accepts %s", values)
			}
		})
	}
	for flag, values := range map[string]string{
		"--default-account=Not A Name":          "settings: {defaultAccount: Not A Name}",
		"--default-account=a' || true || '":     `settings: {defaultAccount: "a' || true || '"}`,
		"--crd-allowed-hosts=https://a.example": "settings: {crdAllowedHosts: ['https://a.example']}",
		"--oci-token-realms=a.example/path":     "settings: {ociTokenRealms: [a.example/path]}",
		"--default-crd-url-template=http://a/":  "settings: {defaultCRDURLTemplate: 'http://a/'}",
	} {
		if _, err := charttest.Render(chart, kudoinit.DefaultNamespace, values); err == nil {
			t.Errorf("the chart accepts %s", values)
		}
		if _, err := charttest.Init(flag); err == nil {
			t.Errorf("init accepts %s", flag)
		}
	}
	for _, values := range []string{"image: 7", "podLabels: {a: 1}"} { // init writes numbers as texts, which a template does not
		if _, err := charttest.Render(chart, kudoinit.DefaultNamespace, values); err == nil {
			t.Errorf("the chart accepts %s", values)
		}
	}
	if objs := render(t, chart, kudoinit.DefaultNamespace, "global: {a: b}"); len(objs) == 0 {
		t.Error("a chart that contains this one renders nothing")
	}
}

// TestOwnFlags checks that the schema refuses each flag that init writes itself.
func TestOwnFlags(t *testing.T) {
	released(t)
	chart := testChart(t)
	for _, obj := range initObjects(t, "", "--kudo-image=example.org/kudo:1", "--cert-manager", "--insecure-metrics") {
		if obj.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "template", "spec", "containers")
		args := containers[0].(map[string]any)["args"].([]any)
		if len(args) < 9 {
			t.Errorf("init writes %v", args)
		}
		for _, arg := range args {
			values, err := yaml.Marshal(map[string]any{"extraArgs": []any{arg}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := charttest.Render(chart, kudoinit.DefaultNamespace, string(values)); err == nil {
				t.Errorf("the chart accepts %s besides its own", arg)
			}
		}
	}
}

// TestKeeps checks R14: Helm keeps the definitions, what guards their objects, and what was decided, and the key is printed nowhere.
func TestKeeps(t *testing.T) {
	released(t)
	objs := render(t, testChart(t), kudoinit.DefaultNamespace, "")
	var wanted []string
	for _, obj := range objs {
		switch kind := obj.GetKind(); kind {
		case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap":
			wanted = append(wanted, kind+" "+obj.GetName())
		}
		if obj.GetName() == "kudo-history-key" && obj.GetKind() == "Secret" {
			t.Error("the chart prints a key without a cluster")
		}
		if obj.GetName() == kudoinit.ServiceAccount && obj.GetKind() == "ClusterRoleBinding" && obj.GetLabels()[kudoinit.ManagedByLabel] != "Helm" {
			t.Error("the binding of the manager does not say that Helm manages it")
		}
	}
	slices.Sort(wanted)
	if kept := charttest.Kept(objs); !slices.Equal(kept, wanted) || len(kept) < 20 {
		t.Errorf("Helm keeps %v, and must keep %v", kept, wanted)
	}
}

// TestLint checks R14: Helm has no finding, but that the chart has no icon, which kudo has none of.
func TestLint(t *testing.T) {
	folder := filepath.Join(t.TempDir(), Name)
	for name, text := range testFiles(t) {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, values := range []string{"", sets["Everything"].both + sets["Everything"].own} {
		given := map[string]any{}
		if err := yaml.Unmarshal([]byte(values), &given); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(folder, given, kudoinit.DefaultNamespace).Messages {
			if m.Severity != support.InfoSev || m.Err.Error() != "icon is recommended" {
				t.Errorf("%s: %s", m.Path, m.Err)
			}
		}
	}
}

// TestFiles checks that a chart needs a version and an image by its digest, and that its metadata have them.
func TestFiles(t *testing.T) {
	for _, image := range []string{"", "kudo-manager:dev", "registry.example.org/kudo/manager:v1", "manager@sha256:" + strings.Repeat("a", 64)} {
		if _, err := Files(Options{Version: testVersion, Image: image}); err == nil || !strings.Contains(err.Error(), "must be REGISTRY/PATH@sha256:DIGEST") {
			t.Errorf("image %q: %v", image, err)
		}
	}
	m := testChart(t).Metadata
	if m.Name != "kudo" || m.Version != "0.2.0" || m.AppVersion != "v0.2.0" || m.KubeVersion != ">=1.30.0-0" || m.Home != "https://example.org/kudo" {
		t.Errorf("the chart has the metadata %+v", m)
	}
}
