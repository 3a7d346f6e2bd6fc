package integration

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

const (
	hidden     = "hunter2-in-all-places"
	generated  = "generated-by-this-test"
	elsewhere  = "of-another-namespace"
	failingPod = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}-app
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata:
      labels: {app: a}
      annotations: {log.local.kudo.dev/fails: "login as {{ .Params.PASSWORD }} was refused"}
    spec:
      containers:
      - name: fails
        image: app
        command: ["false"]
        env: [{name: DB_PASSWORD, value: {{ .Params.PASSWORD | quote }}}, {name: DSN, value: "db://u:{{ .Params.PASSWORD }}@db/"}]
`
	secretText = `apiVersion: v1
kind: Secret
metadata:
  name: {{ .Name }}-secret
stringData:
  generated: ` + generated + `
`
	configText = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}-config
data:
  app.ini: |
    mode = fast
    login = {{ .Params.PASSWORD }}
    other = ` + generated + `
`
)

// unpacked reads an archive.
func unpacked(t testing.TB, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	env.Must(t, err)
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	env.Must(t, err)
	out := map[string]string{}
	for r := tar.NewReader(zipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		env.Must(t, err)
		text, err := io.ReadAll(r)
		env.Must(t, err)
		out[header.Name] = string(text)
	}
}

var _ = It("A diagnostics collection has the Instance, its child, their objects, pods, events and history, names what cannot be collected, and holds nothing secret", Label("diagnostics"), func() {
	t := GinkgoTB()
	ns, other := cluster.NewNamespace(t), cluster.NewNamespace(t)
	ctx := context.Background()
	env.Must(t, cluster.Create(ctx, &corev1.Secret{ObjectMeta: gen.Meta(other, "far"), StringData: map[string]string{"value": elsewhere}}))
	child := gen.Version(ns, "kid", gen.Param("PASSWORD", "", ""), gen.Template("secret.yaml", secretText), gen.Apply("secret", "secret.yaml"), gen.Serial("deploy", "secret"))
	child.Name = "kid-0.1.0"
	env.Must(t, cluster.Create(ctx, child))
	ov := gen.Version(ns, "parent", gen.Param("PASSWORD", "", ""),
		gen.Template("config.yaml", configText), gen.Template("app.yaml", failingPod), gen.Template("kid-params.yaml", "PASSWORD: {{ .Params.PASSWORD }}\n"),
		gen.Apply("config", "config.yaml"), gen.Apply("app", "app.yaml"),
		gen.Task("kid", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "kid", OperatorVersion: "0.1.0", InstanceName: "kid", ParameterFile: "kid-params.yaml"}),
		gen.Serial("deploy", "config", "kid", "app"))
	env.Must(t, cluster.Create(ctx, ov))
	env.Must(t, cluster.Create(ctx, gen.Instance("top", ov, map[string]string{"PASSWORD": hidden})))
	env.Eventually(t, "a pod that has failed", env.Condition(func() bool {
		pods := &corev1.PodList{}
		env.Must(t, cluster.List(ctx, pods, client.InNamespace(ns)))
		return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].RestartCount > 0
		})
	}))
	dir := t.TempDir()
	archive := filepath.Join(dir, "out.tar.gz")
	out := kudo(t, 0, "diagnostics", "collect", "--instance", "top", "-n", ns, "-o", archive)
	contains(t, out, "diagnostics of instance "+ns+"/top written to "+archive)
	if strings.Contains(out, "collecting:") {
		t.Errorf("progress is shown without a terminal:\n%s", out)
	}
	files := unpacked(t, archive)
	for _, name := range []string{
		"diag/version.yaml", "diag/settings.yaml", "diag/operator_parent/operatorversion_parent/parent.yaml",
		"diag/operator_parent/instance_top/top.yaml", "diag/operator_parent/instance_top/events.yaml", "diag/operator_parent/instance_top/history/1.yaml",
		"diag/operator_parent/instance_top/resources/configmap/top-config.yaml", "diag/operator_parent/instance_top/resources/deployment.apps/top-app.yaml",
		"diag/operator_parent/operator_kid/operatorversion_kid-0.1.0/kid-0.1.0.yaml",
		"diag/operator_parent/operator_kid/instance_kid/kid.yaml", "diag/operator_parent/operator_kid/instance_kid/resources/secret/kid-secret.yaml",
		"diag/kudo/lease.coordination.k8s.io/kudo-manager.yaml",
	} {
		if files[name] == "" {
			t.Errorf("the archive lacks %s; it has %v", name, slices.Sorted(maps.Keys(files)))
		}
	}
	contains(t, files["diag/operator_parent/instance_top/history/1.yaml"], "cause: instance created", "app.yaml:") // also what it ran
	pods, logs := 0, map[string]string{}
	for name, text := range files {
		if strings.Contains(name, "/instance_top/pod_top-app-") && strings.HasSuffix(name, ".yaml") {
			pods++
		}
		if strings.Contains(name, "/instance_top/pod_top-app-") && strings.HasSuffix(name, ".log") {
			logs[path.Base(name)] = text
		}
		for _, secret := range []string{hidden, generated, elsewhere} {
			if strings.Contains(text, secret) || strings.Contains(name, secret) {
				t.Errorf("%s holds the secret %s:\n%s", name, secret, text)
			}
		}
	}
	if pods != 1 {
		t.Errorf("the archive has %d pods of the Deployment", pods)
	}
	contains(t, files["diag/operator_parent/instance_top/resources/configmap/top-config.yaml"], "mode = fast", "login = REDACTED", "other = REDACTED")
	contains(t, files["diag/operator_parent/instance_top/top.yaml"], "PASSWORD: REDACTED")
	for _, name := range []string{"fails.log", "fails.previous.log"} {
		contains(t, logs[name], "Z login as REDACTED was refused\n")
	}

	t.Log("what exists is not overwritten; the same goes to a folder; who may read little gets what he may read")
	contains(t, kudo(t, 1, "diagnostics", "collect", "--instance", "top", "-n", ns, "-o", archive), "exists already")
	contains(t, kudo(t, 1, "diagnostics", "collect", "--instance", "nope", "-n", ns, "-O", filepath.Join(dir, "nope")), "does not exist")
	folder := filepath.Join(dir, "folder")
	kudo(t, 0, "diagnostics", "collect", "--instance", "kid", "-n", ns, "-O", folder)
	if _, err := os.Stat(filepath.Join(folder, "operator_kid/instance_kid/kid.yaml")); err != nil {
		t.Error(err)
	}
	env.Must(t, cluster.Create(ctx, &rbacv1.Role{ObjectMeta: gen.Meta(ns, "little"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"kudo.dev"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}}}))
	env.Must(t, cluster.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: gen.Meta(ns, "little"), RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "little"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "jane"}}}))
	env.Must(t, cluster.AwaitRight(ctx, "jane", authorizationv1.ResourceAttributes{Namespace: ns, Verb: "get", Group: "kudo.dev", Resource: "instances", Name: "top"}))
	little := filepath.Join(dir, "little.tar.gz")
	contains(t, kudo(t, 0, "diagnostics", "collect", "--instance", "top", "-n", ns, "-o", little, "--as", "jane"), "could not be collected")
	files = unpacked(t, little)
	contains(t, files["diag/errors.yaml"], "list of Secrets", "ConfigMap "+ns+"/top-config", "forbidden")
	if files["diag/operator_parent/instance_top/top.yaml"] == "" || files["diag/operator_parent/operator_kid/instance_kid/kid.yaml"] == "" {
		t.Errorf("what may be read was not collected: %v", slices.Sorted(maps.Keys(files)))
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".kudo-diag-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
})

var _ = It("Diagnostics of the same state have the same files, byte by byte, but for the lease, which is renewed", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	deploy(t, gen.Version(ns, "same", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 3), gen.Serial("deploy", "cm")), "i", nil)
	hasEvent(t, ns, "finished with status COMPLETE")
	dir := t.TempDir()
	var got []map[string]string
	for _, name := range []string{"a.tar.gz", "b.tar.gz"} {
		kudo(t, 0, "diagnostics", "collect", "--instance", "i", "-n", ns, "-o", filepath.Join(dir, name))
		files := unpacked(t, filepath.Join(dir, name))
		delete(files, "diag/kudo/lease.coordination.k8s.io/kudo-manager.yaml")
		got = append(got, files)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("two collections of the same state differ: %s", diff)
	}
})
