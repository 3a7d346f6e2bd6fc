package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// connect has commands of the test use a server, in namespace lab.
func connect(t *testing.T, server *apitest.Server) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '%s'}}]\n"+
		"contexts: [{name: c, context: {cluster: c, namespace: lab}}]\n", server.Config().Host)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ofRelease returns metadata as Helm leaves it on an object of release shop.
func ofRelease(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{releaseNameKey: "shop", releaseNamespaceKey: "lab"}}
}

// TestFromHelmInstallPlan is P31: what nothing but the Secret of a release proves to be the release's is no part of the install plan, unless
// the user says so.
func TestFromHelmInstallPlan(t *testing.T) {
	const (
		binding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: shop}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\nsubjects: [{kind: User, name: nadia, apiGroup: rbac.authorization.k8s.io}]\n"
		far        = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far, namespace: other}\n"
		near       = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: near}\n"
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.org}\n" +
			"spec: {group: example.org, scope: Cluster, names: {kind: Thing, plural: things, singular: thing}, versions: []}\n"
	)
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("things.example.org")
	another := ofRelease("", "shop")
	another.Annotations[releaseNamespaceKey] = "other"
	for _, tc := range []struct {
		reason, manifest, crds string
		live                   []client.Object
		allow, forbidden       bool
		code                   int
		want                   []string
	}{
		{"P31: objects of its namespace", near, "", nil, false, false, 0, nil},
		{"P31: absent", binding, "", nil, false, false, command.ExitError,
			[]string{"release lab/shop", "ClusterRoleBinding shop (it does not exist)", "Nothing was written", "--allow-cluster-objects"}},
		{"P31: absent, and the user wants it", binding, "", nil, true, false, 0, []string{"ClusterRoleBinding shop (it does not exist)"}},
		{"P31: without annotations", binding, "", []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}, false,
			false, command.ExitError, []string{"ClusterRoleBinding shop (its annotation"}},
		{"P31: of a release of the same name in another namespace", binding, "", []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: another}},
			false, false, command.ExitError, []string{"ClusterRoleBinding shop (its annotation"}},
		{"P31: it cannot be read", binding, "", []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: ofRelease("", "shop")}}, false, true,
			command.ExitError, []string{"ClusterRoleBinding shop (it cannot be read: ", "forbidden"}},
		{"P31: of the release", binding, "", []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: ofRelease("", "shop")}}, false, false, 0, nil},
		{"P31: in another namespace", far, "", nil, false, false, command.ExitError, []string{"ConfigMap other/far (it does not exist)"}},
		{"P31: of the release, in another namespace", far, "", []client.Object{&corev1.ConfigMap{ObjectMeta: ofRelease("other", "far")}}, false, false, 0, nil},
		{"P31: a definition of the folder crds, which Helm does not annotate", near, definition, []client.Object{crd}, false, false, 0, nil},
		{"P31: one that is absent", near, definition, nil, false, false, command.ExitError,
			[]string{"CustomResourceDefinition things.example.org (it does not exist)"}},
		{"P31: one of the manifest, which Helm annotates", definition, "", []client.Object{crd}, false, false, command.ExitError,
			[]string{"CustomResourceDefinition things.example.org (its annotation"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			release := gen.HelmRelease("lab", "shop", tc.manifest)
			if tc.crds != "" {
				release.Chart.Files = []helmrelease.File{{Name: "crds/a.yaml", Data: []byte(tc.crds)}}
			}
			server := apitest.Start(t, append(tc.live, gen.HelmSecret(release))...)
			connect(t, server)
			server.Before(func(r apitest.Request) (any, error) {
				if tc.forbidden && r.Kind == "ClusterRoleBinding" {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterrolebindings"}, r.Name, nil)
				}
				return nil, nil
			})
			dir := filepath.Join(t.TempDir(), "shop")
			args := []string{"package", "from-helm", "shop", "-d", dir}
			if tc.allow {
				args = append(args, "--allow-cluster-objects")
			}
			_, errs := commandtest.Expect(t, New, tc.code, "", args...)
			for _, want := range tc.want {
				if !strings.Contains(errs, want) {
					t.Errorf("the messages lack %q: %s", want, errs)
				}
			}
			if len(tc.want) == 0 && strings.Contains(errs, "proves") {
				t.Errorf("the messages are %s", errs)
			}
			if _, err := os.Stat(dir); (err == nil) != (tc.code == 0) {
				t.Errorf("the package: %v", err)
			}
		})
	}
}
