package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
)

// edit is a change of an object of an installation by hand, or by another controller.
type edit struct {
	reason    string
	kind      schema.GroupVersionKind
	name      string
	by, patch string
	jsonPatch bool
	// path of what was changed, and its values after the edit and after init has reset it. Without a value that is kept, init resets what
	// it was, unless the edit stays as a whole.
	path        []string
	kept, reset any
	stays       bool
}

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	services    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	spaces      = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	accounts    = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	roles       = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	bindings    = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}
	definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	hooks       = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
	policies    = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}
)

const (
	deploymentName = "kudo-controller-manager"
	serviceName    = "kudo-controller-manager-service"
	roleName       = "kudo-manager"
	hookName       = "kudo-manager-instance-validation-webhook-config"
	editedImage    = "example.org/kudo:1"
)

// container patches the manager's container.
func container(fields string) string {
	return `{"spec":{"template":{"spec":{"containers":[{"name":"manager",` + fields + `}]}}}}`
}

var containerPath = []string{"spec", "template", "spec", "containers", "manager"}

func inContainer(path ...string) []string {
	return append(containerPath[:len(containerPath):len(containerPath)], path...)
}

func inPod(path ...string) []string { return append([]string{"spec", "template"}, path...) }

// keptEdits are those that init keeps, or resets without a word.
func keptEdits() []edit {
	return []edit{
		{reason: "replicas under an autoscaler", kind: deployments, name: deploymentName, by: "autoscaler", patch: `{"spec":{"replicas":3}}`, path: []string{"spec", "replicas"}, kept: int64(3)},
		{reason: "resources under a vertical autoscaler", kind: deployments, name: deploymentName, by: "vpa", patch: container(`"resources":{"requests":{"cpu":"300m"}}`), path: inContainer("resources", "requests", "cpu"), kept: "300m"},
		{reason: "a limit of memory", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: container(`"resources":{"limits":{"memory":"2Gi"}}`), path: inContainer("resources", "limits", "memory"), kept: "2Gi"},
		{reason: "a variable", kind: deployments, name: deploymentName, by: "kubectl-set", patch: container(`"env":[{"name":"HTTPS_PROXY","value":"http://proxy:3128"}]`), path: inContainer("env", "HTTPS_PROXY", "value"), kept: "http://proxy:3128"},
		{reason: "a restart", kind: deployments, name: deploymentName, by: "kubectl-rollout", patch: `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"now"}}}}}`, path: inPod("metadata", "annotations", "kubectl.kubernetes.io/restartedAt"), kept: "now"},
		{reason: "a label of pods", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"metadata":{"labels":{"team":"blue"}}}}}`, path: inPod("metadata", "labels", "team"), kept: "blue"},
		{reason: "a place", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}`, path: inPod("spec", "nodeSelector", "kubernetes.io/os"), kept: "linux"},
		{reason: "a toleration", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"tolerations":[{"key":"infra","operator":"Exists"}]}}}}`, path: inPod("spec", "tolerations"), kept: []any{map[string]any{"key": "infra", "operator": "Exists"}}},
		{reason: "a pull secret", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"imagePullSecrets":[{"name":"mirror"}]}}}}`, path: inPod("spec", "imagePullSecrets"), kept: []any{map[string]any{"name": "mirror"}}},
		{reason: "how long a rollout may take", kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"progressDeadlineSeconds":99}}`, path: []string{"spec", "progressDeadlineSeconds"}, kept: int64(99)},
		{reason: "an annotation of the Deployment", kind: deployments, name: deploymentName, by: "kubectl-annotate", patch: `{"metadata":{"annotations":{"owner":"platform"}}}`, path: []string{"metadata", "annotations", "owner"}, kept: "platform"},
		{reason: "the level of pod security", kind: spaces, name: "kudo-system", by: "kubectl-label", patch: `{"metadata":{"labels":{"pod-security.kubernetes.io/warn":"baseline"}}}`, path: []string{"metadata", "labels", "pod-security.kubernetes.io/warn"}, kept: "baseline"},
		{reason: "an annotation of the Namespace", kind: spaces, name: "kudo-system", by: "kubectl-annotate", patch: `{"metadata":{"annotations":{"owner":"platform"}}}`, path: []string{"metadata", "annotations", "owner"}, kept: "platform"},
		{reason: "an annotation of the Service", kind: services, name: serviceName, by: "kubectl-annotate", patch: `{"metadata":{"annotations":{"mesh":"off"}}}`, path: []string{"metadata", "annotations", "mesh"}, kept: "off"},
		{reason: "the identity of an account at a cloud", kind: accounts, name: roleName, by: "kubectl-annotate", patch: `{"metadata":{"annotations":{"cloud.example.org/role":"kudo"}}}`, path: []string{"metadata", "annotations", "cloud.example.org/role"}, kept: "kudo"},
		{reason: "a label of a definition", kind: definitions, name: "instances.kudo.dev", by: "kubectl-label", patch: `{"metadata":{"labels":{"backup":"yes"}}}`, path: []string{"metadata", "labels", "backup"}, kept: "yes"},
		{reason: "an authority that was injected", kind: hooks, name: hookName, by: "injector", patch: `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"eA=="}]`, jsonPatch: true, path: []string{"webhooks", "0", "clientConfig", "caBundle"}, kept: "eA=="},
		{reason: "a setting", kind: configMaps, name: "kudo-config", by: "kubectl-edit", patch: `{"data":{"default-account":"deployer"}}`, path: []string{"data", "default-account"}, kept: "deployer"},
		{reason: "a right that an administrator takes away", kind: roles, name: roleName, by: "kubectl-edit", patch: `[{"op":"remove","path":"/rules/0"}]`, jsonPatch: true, path: []string{"rules"}, stays: true},
		{reason: "rights of install plans", kind: roles, name: "kudo-install-plans", by: "kubectl-edit", patch: `[{"op":"remove","path":"/rules/0"}]`, jsonPatch: true, path: []string{"rules"}, stays: true},

		{reason: "a right that is added", kind: roles, name: "kudo-run-as", by: "kubectl-edit", patch: `[{"op":"add","path":"/rules/-","value":{"apiGroups":["apps"],"resources":["deployments"],"verbs":["list"]}}]`, jsonPatch: true, path: []string{"rules", "1"}},
		{reason: "another user with the manager's rights", kind: bindings, name: roleName, by: "kubectl-edit", patch: `[{"op":"add","path":"/subjects/-","value":{"kind":"User","name":"eve","apiGroup":"rbac.authorization.k8s.io"}}]`, jsonPatch: true, path: []string{"subjects", "1"}},
		{reason: "a policy that refuses nothing", kind: policies, name: "kudo-account", by: "kubectl-edit", patch: `{"spec":{"failurePolicy":"Ignore"}}`, path: []string{"spec", "failurePolicy"}},
		{reason: "a webhook that is not needed", kind: hooks, name: hookName, by: "kubectl-edit", patch: `[{"op":"add","path":"/webhooks/0/timeoutSeconds","value":1}]`, jsonPatch: true, path: []string{"webhooks", "0", "timeoutSeconds"}},
		{reason: "a definition", kind: definitions, name: "instances.kudo.dev", by: "kubectl-edit", patch: `{"spec":{"names":{"shortNames":["inst","xyz"]}}}`, path: []string{"spec", "names", "shortNames"}},
	}
}

// refusedEdits are those that init neither keeps nor overwrites unasked, with what it says.
func refusedEdits() map[string]edit {
	return map[string]edit{
		`spec.template.spec.containers[name="manager"].image is example.org/other:2, set by kubectl-set; init would set example.org/kudo:1. Keep it: --set image=example.org/other:2. Take it: --force-conflicts`: {
			kind: deployments, name: deploymentName, by: "kubectl-set", patch: container(`"image":"example.org/other:2"`), path: inContainer("image"), reset: editedImage},
		`spec.template.spec.priorityClassName is high, set by kubectl-edit; init would set system-cluster-critical. Keep it: --set priorityClassName=high. Take it: --force-conflicts`: {
			kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"priorityClassName":"high"}}}}`, path: inPod("spec", "priorityClassName"), reset: "system-cluster-critical"},
		`spec.template.spec.securityContext.runAsUser is 0, set by kubectl-edit; init would set 65532. Take it: --force-conflicts`: {
			kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"securityContext":{"runAsUser":0}}}}}`, path: inPod("spec", "securityContext", "runAsUser"), reset: int64(65532)},
		`spec.template.spec.terminationGracePeriodSeconds is 7, set by kubectl-edit; init would set 75.`: {
			kind: deployments, name: deploymentName, by: "kubectl-edit", patch: `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":7}}}}`, path: inPod("spec", "terminationGracePeriodSeconds"), reset: int64(75)},
		`Service kudo-system/kudo-controller-manager-service: spec.selector is `: {
			kind: services, name: serviceName, by: "kubectl-edit", patch: `{"spec":{"selector":{"app":"other"}}}`, path: []string{"spec", "selector", "app"}, reset: "kudo-manager"},
	}
}

// at returns the value at a path, in which a list's element stands by its name or its index.
func at(obj any, path []string) any {
	for _, name := range path {
		switch value := obj.(type) {
		case map[string]any:
			obj = value[name]
		case []any:
			obj = nil
			for n, item := range value {
				if fields, is := item.(map[string]any); is && fields["name"] == name || fmt.Sprint(n) == name {
					obj = item
				}
			}
		default:
			return nil
		}
	}
	return obj
}

func (e edit) read(t testing.TB, c client.Client) any {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(e.kind)
	env.Must(t, c.Get(context.Background(), types.NamespacedName{Namespace: e.namespace(), Name: e.name}, obj))
	return at(obj.Object, e.path)
}

func (e edit) namespace() string {
	switch e.kind {
	case deployments, services, accounts, configMaps:
		return "kudo-system"
	}
	return ""
}

func (e edit) apply(t testing.TB, c client.Client) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(e.kind)
	obj.SetNamespace(e.namespace())
	obj.SetName(e.name)
	kind := types.MergePatchType
	switch {
	case e.jsonPatch:
		kind = types.JSONPatchType
	case e.kind == deployments:
		kind = types.StrategicMergePatchType
	}
	if err := c.Patch(context.Background(), obj, client.RawPatch(kind, []byte(e.patch)), client.FieldOwner(e.by)); err != nil {
		t.Fatalf("%s: %v", e.reason, err)
	}
}

var _ = It("The command init keeps, refuses or resets what was changed by hand", Label("edits", "slow", "R26"), func() {
	t, ctx := GinkgoTB(), context.Background()
	e, c := startBare(t)
	e.MustKudo(t, 0, "init", "--kudo-image", editedImage)

	for _, flags := range [][]string{{"init"}, {"init", "--upgrade"}} {
		t.Log("kept and reset by", flags)
		before := map[string]any{}
		edits := keptEdits()
		for n, edit := range edits {
			before[edit.reason] = edit.read(t, c)
			edit.apply(t, c)
			if edit.stays {
				edits[n].kept = edit.read(t, c)
			}
		}
		e.MustKudo(t, 0, flags...)
		for _, edit := range edits {
			want := edit.kept
			if want == nil { // it is reset
				want = before[edit.reason]
			}
			if got := edit.read(t, c); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %v: %v, want %v (before: %v)", edit.reason, flags, got, want, before[edit.reason])
			}
		}
		out, _ := e.Kudo("init", "--verify")
		env.Contains(t, out, "WARNING   clusterrole kudo-manager ", "rights that init has given it, and init does not give them back")

		t.Log("refused by", flags)
		for _, edit := range refusedEdits() {
			edit.apply(t, c)
		}
		version := edits[0].resourceVersions(t, c)
		out = e.MustKudo(t, 1, flags...)
		for text, edit := range refusedEdits() {
			env.Contains(t, out, text)
			if got := edit.read(t, c); got == edit.reset {
				t.Errorf("it was overwritten: %s", text)
			}
		}
		if now := edits[0].resourceVersions(t, c); now != version {
			t.Errorf("a refused init has written: %s, then %s", version, now)
		}
		e.MustKudo(t, 0, append(flags, "--force-conflicts")...)
		for text, edit := range refusedEdits() {
			if got := edit.read(t, c); got != edit.reset {
				t.Errorf("it is %v after --force-conflicts: %s", got, text)
			}
		}
		if cpu := edits[1]; cpu.read(t, c) == cpu.kept {
			t.Errorf("%s: it is kept by --force-conflicts", cpu.reason)
		}
		env.Must(t, c.Delete(ctx, object(roles, roleName)))
		e.MustKudo(t, 0, append(flags, "--default-account", "kudo")...)
	}

	t.Log("what only an earlier version has is removed, and nothing else")
	for name, by := range map[string]string{"kudo-earlier": "kudo-init", "kudo-foreign": "kubectl"} {
		role := object(roles, name)
		role.SetAnnotations(map[string]string{"kudo.dev/version": "v0.0.1"})
		env.Must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(role), client.FieldOwner(by)))
	}
	env.Contains(t, e.MustKudo(t, 0, "init"), "clusterrole kudo-earlier removed: kudo ")
	if err := c.Get(ctx, types.NamespacedName{Name: "kudo-earlier"}, object(roles, "")); !apierrors.IsNotFound(err) {
		t.Errorf("the role of an earlier version: %v", err)
	}
	env.Must(t, c.Get(ctx, types.NamespacedName{Name: "kudo-foreign"}, object(roles, "")))

	t.Log("a deleted policy is created again")
	env.Must(t, c.Delete(ctx, object(policies, "kudo-account")))
	e.MustKudo(t, 0, "init")
	env.Must(t, c.Get(ctx, types.NamespacedName{Name: "kudo-account"}, object(policies, "")))
})

func object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	obj.SetName(name)
	return obj
}

// resourceVersions returns those of the objects that edits are about.
func (e edit) resourceVersions(t testing.TB, c client.Client) string {
	t.Helper()
	var out []string
	for _, edit := range keptEdits() {
		obj := object(edit.kind, "")
		env.Must(t, c.Get(context.Background(), types.NamespacedName{Namespace: edit.namespace(), Name: edit.name}, obj))
		if edit.kind != deployments { // its status changes
			out = append(out, edit.name+" "+obj.GetResourceVersion())
		}
	}
	return strings.Join(out, "\n")
}

var _ = It("The command init keeps the values that it was given, and its flags change them", Label("values", "slow", "R26"), func() {
	t, ctx := GinkgoTB(), context.Background()
	e, c := startBare(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	write := func(text string) { env.Must(t, os.WriteFile(file, []byte(text), 0o600)) }
	deployment := func() map[string]any {
		obj := object(deployments, "")
		env.Must(t, c.Get(ctx, types.NamespacedName{Namespace: "kudo-system", Name: deploymentName}, obj))
		return obj.Object
	}
	wants := func(values map[string]any) {
		t.Helper()
		for path, want := range values {
			if got := at(deployment(), strings.Split(path, "/")); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s is %v, want %v", path, got, want)
			}
		}
	}
	const pod = "spec/template/"

	write("replicas: 2\nreplica: 3\n")
	env.Contains(t, e.MustKudo(t, 2, "init", "--values", file, "--kudo-image", editedImage), `unknown field "replica"`)
	if err := c.Get(ctx, types.NamespacedName{Name: "kudo-system"}, object(spaces, "")); !apierrors.IsNotFound(err) {
		t.Errorf("values that are refused must install nothing: %v", err)
	}
	write(`
image: example.org/kudo:1
replicas: 2
resources: {limits: {memory: 1Gi}}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{key: infra, operator: Exists}]
affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: zone, operator: Exists}]}}]}}
priorityClassName: high
podLabels: {team: blue}
podAnnotations: {mesh: "off"}
imagePullSecrets: [{name: mirror}]
imagePullPolicy: Always
extraArgs: [--workers=16]
`)
	env.Contains(t, e.MustKudo(t, 0, "init", "--dry-run", "--values", file), "team: blue", "--workers=16", "name: kudo-values")
	e.MustKudo(t, 0, "init", "--values", file)
	want := map[string]any{
		"spec/replicas": 2, pod + "spec/containers/manager/image": editedImage, pod + "spec/containers/manager/imagePullPolicy": "Always",
		pod + "spec/containers/manager/resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, pod + "spec/nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
		pod + "spec/tolerations/0/key": "infra", pod + "spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight": 1,
		pod + "spec/priorityClassName": "high", pod + "metadata/labels/team": "blue", pod + "metadata/annotations/mesh": "off",
		pod + "spec/imagePullSecrets/0/name": "mirror",
	}
	wants(want)
	args := func() string {
		return fmt.Sprint(at(deployment(), strings.Split(pod+"spec/containers/manager/args", "/")))
	}
	env.Contains(t, args(), "--workers=16")

	t.Log("the next ones keep them")
	e.MustKudo(t, 0, "init", "--upgrade")
	wants(want)
	env.Contains(t, args(), "--workers=16")

	t.Log("flags and --set change them, and are kept")
	e.MustKudo(t, 0, "init", "--manager-replicas", "3", "--set", "resources.requests.cpu=200m", "--set", `nodeSelector.kubernetes\.io/os=null`, "--set", "podLabels=null")
	e.MustKudo(t, 0, "init")
	wants(map[string]any{
		"spec/replicas": 3, pod + "spec/nodeSelector": nil, pod + "metadata/labels/team": nil, pod + "metadata/annotations/mesh": "off",
		pod + "spec/containers/manager/resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}, "requests": map[string]any{"cpu": "200m"}},
	})

	t.Log("what a value sets is not left to others")
	scaled := object(deployments, deploymentName)
	scaled.SetNamespace("kudo-system")
	env.Must(t, c.SubResource("scale").Patch(ctx, scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)), client.FieldOwner("kubectl-scale")))
	env.Contains(t, e.MustKudo(t, 1, "init"), "Deployment kudo-system/kudo-controller-manager: spec.replicas is 1, set by kubectl-scale; init would set 3. Keep it: --set replicas=1. Take it: --force-conflicts")
	e.MustKudo(t, 0, "init", "--set", "replicas=1")
	wants(map[string]any{"spec/replicas": 1})

	t.Log("wrong values")
	for text, flag := range map[string]string{
		"replicas: 0 must be 1 or more": "replicas=0", `"x": must be KEY=VALUE`: "x", `unknown field "nothing"`: "nothing=1", "podLabels: app is init's own": "podLabels.app=x",
		"the value is not YAML": "image=[",
	} {
		env.Contains(t, e.MustKudo(t, 2, "init", "--set", flag), text)
	}
})
