// Package integration tests the forms of a release on a control plane.
package integration

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/hack/release/chart"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

const testImage = "registry.example.org/kudo/manager@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// cluster is a control plane with Helm.
type cluster struct {
	*env.Cluster
	env *env.Env
	// chart is its folder.
	chart string
}

func start(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{chart: writeChart(t, "v0.2.0")}
	var err error
	c.env, err = env.StartBare()
	env.Must(t, err)
	t.Cleanup(c.env.Stop)
	c.Cluster, err = c.env.Connect()
	env.Must(t, err)
	return c
}

// writeChart writes the chart of a version of kudo, and returns its folder.
func writeChart(t *testing.T, version string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), chart.Name)
	files, err := chart.Files(chart.Options{Version: version, Image: testImage, URL: "https://example.org/kudo"})
	env.Must(t, err)
	for name, text := range files {
		file := filepath.Join(folder, name)
		env.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		env.Must(t, os.WriteFile(file, text, 0o600))
	}
	return folder
}

// run runs Helm on the release. If refused is set, Helm must fail, and print it.
func (c *cluster) run(t *testing.T, refused string, args ...string) {
	t.Helper()
	out, err := c.env.Helm(t.TempDir(), append(args, "-n", kudoinit.DefaultNamespace)...)
	if (err != nil) != (refused != "") || !strings.Contains(out, refused) {
		t.Fatalf("helm %s: %v, want %q in\n%s", strings.Join(args, " "), err, refused, out)
	}
}

func (c *cluster) read(t *testing.T, obj client.Object, name string) {
	t.Helper()
	env.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: kudoinit.DefaultNamespace, Name: name}, obj))
}

func (c *cluster) exists(t *testing.T, obj client.Object, namespace, name string) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
	env.Must(t, client.IgnoreNotFound(err))
	return err == nil
}

// key returns the data of the history key, which must be valid.
func (c *cluster) key(t *testing.T) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	c.read(t, secret, keyring.SecretName)
	if _, err := keyring.Parse(secret.Data); err != nil {
		t.Fatalf("the history key: %v", err)
	}
	return secret.Data
}

// expect checks the number of replicas, the mode, and that the mode is that of the policies.
func (c *cluster) expect(t *testing.T, replicas int32, mode settings.Mode) {
	t.Helper()
	deployment, config, policy := &appsv1.Deployment{}, &corev1.ConfigMap{}, &admissionregistrationv1.ValidatingAdmissionPolicy{}
	c.read(t, deployment, "kudo-controller-manager")
	c.read(t, config, settings.ConfigMap)
	c.read(t, policy, "kudo-account")
	if *deployment.Spec.Replicas != replicas || config.Data[settings.ModeKey] != string(mode) {
		t.Errorf("%d replicas and mode %s, want %d and %s", *deployment.Spec.Replicas, config.Data[settings.ModeKey], replicas, mode)
	}
	for _, v := range policy.Spec.Variables {
		if v.Name == "privileged" && (v.Expression == "true") != (mode == settings.Privileged) {
			t.Errorf("the policy kudo-account takes %s in mode %s", v.Expression, mode)
		}
	}
}

// TestHelm checks R14 on a cluster: Helm installs, upgrades, rolls back and uninstalls the chart, the history key and all objects of kudo's
// kinds stay, and neither init nor Helm changes what the other one has installed.
func TestHelm(t *testing.T) {
	c := start(t)
	kudo := func(code int, args ...string) string { t.Helper(); return c.env.MustKudo(t, code, args...) }
	install := []string{"install", "kudo", c.chart, "--create-namespace"}

	t.Log("an installation has a history key, and init --verify finds what init would have made")
	c.run(t, "", install...)
	c.expect(t, 2, settings.Strict)
	key := c.key(t)
	if len(key["1"]) != 32 || bytes.Equal(key["1"], make([]byte, 32)) {
		t.Errorf("the key has %d bytes", len(key["1"]))
	}
	verify := kudo(1, "init", "--verify")
	for _, wrong := range []string{"differs", "missing", "lacks", "init --upgrade", "namespace kudo-system  "} {
		if strings.Contains(verify, wrong) {
			t.Errorf("init --verify finds %q:\n%s", wrong, verify)
		}
	}
	env.Contains(t, verify, "kudo v0.2.0 in namespace kudo-system", "helm upgrade kudo -n kudo-system", "OK        secret kudo-history-key")

	t.Log("init changes nothing of it, and names the release")
	for _, args := range [][]string{{"--kudo-image", testImage}, {"--upgrade", "--kudo-image", testImage}, {"--crd-only"}, {"--remove"}} {
		env.Contains(t, kudo(1, append([]string{"init"}, args...)...), "Helm release kudo in namespace kudo-system has installed kudo",
			"helm upgrade kudo -n kudo-system", "helm uninstall kudo -n kudo-system")
	}
	kudo(0, "install", filepath.Join(sourcetree.Root(), "operators/catalog/hello/operator"), "--instance", "hello", "--create-service-account", "-y")
	c.seal(t)

	t.Log("an upgrade changes what the values say, and nothing else")
	c.run(t, "", "upgrade", "kudo", c.chart, "--set", "replicas=3", "--set", "settings.mode=privileged")
	c.expect(t, 3, settings.Privileged)
	if diff := cmp.Diff(key, c.key(t)); diff != "" {
		t.Error("an upgrade has changed the history key")
	}
	kudo(0, "init", "--rotate-history-key")
	if key = c.key(t); string(key["current"]) != "2" {
		t.Fatalf("the current key is %s", key["current"])
	}
	c.run(t, "", "rollback", "kudo", "1")
	c.expect(t, 2, settings.Strict)
	if diff := cmp.Diff(key, c.key(t)); diff != "" {
		t.Error("a rollback has changed the history key")
	}

	t.Log("replicas that an autoscaler has set stay")
	scale := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`))
	env.Must(t, c.SubResource("scale").Patch(t.Context(), &appsv1.Deployment{ObjectMeta: metaOf("kudo-controller-manager")}, scale))
	c.run(t, "", "upgrade", "kudo", c.chart, "--set", "podLabels.team=platform")
	c.expect(t, 4, settings.Strict)

	t.Log("an earlier version is refused, unless the values allow it, and so is one that does not read what is there")
	c.run(t, "", "upgrade", "kudo", writeChart(t, "v0.3.0"))
	c.run(t, "kudo v0.3.0 is installed, and this is v0.2.0: an older version may not understand", "upgrade", "kudo", c.chart)
	c.run(t, "", "upgrade", "kudo", c.chart, "--set", "allowDowngrade=true")
	for version, first := range map[string]string{"v0.5.0": "v0.4", "v1.2.0": "v1.0", "v2.0.0": "v1.0"} {
		c.run(t, "kudo v0.2.0 is installed, and this is "+version+", which continues what the 2 minor versions before it have written: upgrade to "+first+" first",
			"upgrade", "kudo", writeChart(t, version))
	}
	c.run(t, "", "upgrade", "kudo", writeChart(t, "v1.1.0"))
	c.run(t, "", "upgrade", "kudo", c.chart, "--set", "allowDowngrade=true")

	t.Log("an uninstallation keeps what holds data and what guards it")
	c.run(t, "", "uninstall", "kudo")
	c.expectKept(t, key)

	t.Log("the next installation goes on with it")
	c.run(t, "", install...)
	c.expect(t, 2, settings.Strict)
	if diff := cmp.Diff(key, c.key(t)); diff != "" {
		t.Error("an installation has changed the history key")
	}
	c.run(t, "", "uninstall", "kudo")

	t.Log("and so does init, whose installation Helm does not change")
	kudo(0, "init", "--kudo-image", testImage)
	c.run(t, "kubectl kudo init has installed kudo on this cluster", install...)
	c.run(t, "kubectl kudo init has installed kudo on this cluster", append(install, "--take-ownership", "--force-conflicts")...)
	kudo(0, "init", "--remove", "--instances=keep")
	c.run(t, "", append(install, "--take-ownership", "--force-conflicts")...)
	c.expect(t, 2, settings.Strict)
	if diff := cmp.Diff(key, c.key(t)); diff != "" {
		t.Error("the history key is another one")
	}

	t.Log("a key that is lost is not replaced")
	env.Must(t, c.Delete(t.Context(), &corev1.Secret{ObjectMeta: metaOf(keyring.SecretName)}))
	c.run(t, "Secret kudo-system/kudo-history-key is missing, and 1 objects are sealed with it, such as OperatorVersion default/", "upgrade", "kudo", c.chart)
	kudo(0, "init", "--rotate-history-key", "--drop-old")
	c.run(t, "", "upgrade", "kudo", c.chart)
	c.run(t, "", "uninstall", "kudo")
}

// seal lets the OperatorVersion have a digest that the key has made, as after a run of its install plan.
func (c *cluster) seal(t *testing.T) {
	t.Helper()
	versions := &v1beta1.OperatorVersionList{}
	env.Must(t, c.List(t.Context(), versions))
	if len(versions.Items) != 1 {
		t.Fatalf("there are %d OperatorVersions", len(versions.Items))
	}
	versions.Items[0].Status.InputsHash = "1." + strings.Repeat("0", 64)
	env.Must(t, c.Status().Update(t.Context(), &versions.Items[0]))
}

// expectKept checks what an uninstallation keeps: the Instance, the key, the definitions, the policies, and what was decided.
func (c *cluster) expectKept(t *testing.T, key map[string][]byte) {
	t.Helper()
	if !c.exists(t, &v1beta1.Instance{}, "default", "hello") {
		t.Error("the Instance is deleted")
	}
	if !maps.EqualFunc(key, c.key(t), bytes.Equal) {
		t.Error("the history key is another one")
	}
	objs, err := kudoinit.Objects(kudoinit.Options{})
	env.Must(t, err)
	for _, wanted := range objs {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(wanted.GroupVersionKind())
		kept := false
		switch wanted.GetKind() {
		case "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ConfigMap", "Namespace":
			kept = true
		}
		if c.exists(t, live, wanted.GetNamespace(), wanted.GetName()) != kept {
			t.Errorf("%s %s: kept must be %t", wanted.GetKind(), wanted.GetName(), kept)
		}
	}
	if c.exists(t, &rbacv1.ClusterRoleBinding{}, "", kudoinit.RunAsRole) {
		t.Error("the manager may act as all ServiceAccounts")
	}
}

func metaOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: kudoinit.DefaultNamespace, Name: name}
}
