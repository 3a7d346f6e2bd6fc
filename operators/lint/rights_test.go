package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNeed checks which verbs are needed of a kind, sorted and each once; roles and bindings need one more to be written.
func TestNeed(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	for name, tc := range map[string]struct {
		reason      string
		group, kind string
		verbs       [][]string
		want        string
	}{
		"Apply":  {"a plain object", "", "ConfigMap", [][]string{applying}, "create delete get list patch watch"},
		"Delete": {"one that is only deleted", "apps", "Deployment", [][]string{deleting}, "delete get"},
		"Both": {"one that is deleted and written", "", "Secret", [][]string{deleting, applying, deleting},
			"create delete get list patch watch"},
		"Role": {"a role may allow more than its author may do", rbac, "Role", [][]string{applying},
			"create delete escalate get list patch watch"},
		"Binding": {"a binding gives what its role allows", rbac, "RoleBinding", [][]string{applying},
			"bind create delete get list patch watch"},
		"RoleDeleted": {"to delete a role gives nothing", rbac, "ClusterRole", [][]string{deleting}, "delete get"},
		"OtherGroup":  {"a role of another group is none", "example.org", "Role", [][]string{applying}, "create delete get list patch watch"},
		"OtherKind":   {"nor is another kind of the group", rbac, "RoleTemplate", [][]string{applying}, "create delete get list patch watch"},
	} {
		t.Run(name, func(t *testing.T) {
			rights := map[schema.GroupVersionKind]*Right{}
			gvk := schema.GroupVersionKind{Group: tc.group, Version: "v1", Kind: tc.kind}
			for _, verbs := range tc.verbs {
				need(rights, gvk, verbs...)
			}
			if got := strings.Join(rights[gvk].Verbs, " "); got != tc.want || len(rights) != 1 {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
	if strings.Join(applying, " ") != "create delete get list patch watch" || strings.Join(deleting, " ") != "delete get" {
		t.Error("the lists of verbs are changed")
	}
}

// TestRightsOrder checks that kinds are sorted, that each name stands once, and that the order does not change.
func TestRightsOrder(t *testing.T) {
	object := func(apiVersion, kind, metadata string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {" + metadata + "}}\n---\n"
	}
	pkg := files{"operator.yaml": installs(""),
		"templates/i.yaml": object("v1", "Secret", "name: b") + object("v1", "Secret", "name: a, namespace: store") +
			object("v1", "Secret", "name: b") +
			object("example.org/v2", "App", "name: x") + object("example.org/v1", "App", "name: x") +
			object("v1", "ConfigMap", "name: '{{ .Name }}'")}.read(t)
	want := []string{"example.org/v1 App [x]", "example.org/v2 App [x]", "v1 ConfigMap [x-1.0.0]", "v1 Secret [b store/a]"}
	for range 5 {
		var got []string
		for _, r := range Rights(pkg) {
			got = append(got, r.APIVersion+" "+r.Kind+" ["+strings.Join(r.Names, " ")+"]")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// TestUnshareableReason checks which two renderings of an object cannot be one object.
func TestUnshareableReason(t *testing.T) {
	object := func(apiVersion, kind, namespace, name, value string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": value,
			"metadata": map[string]any{"name": name, "labels": map[string]any{"v": value}}}}
		if namespace != "" {
			o.SetNamespace(namespace)
		}
		return o
	}
	const byName = "the name of A a is made of .Name, .Namespace or a version: OperatorVersions that need it cannot share it"
	const byContent = " is made of .Name, .Namespace or a version: another OperatorVersion that renders it differently fails with a mismatch"
	for name, tc := range map[string]struct {
		reason     string
		one, other *unstructured.Unstructured
		want       string
	}{
		"Equal": {"the same", object("v1", "A", "n", "a", "x"), object("v1", "A", "n", "a", "x"), ""},
		"Name":  {"another name", object("v1", "A", "n", "a", "x"), object("v1", "A", "n", "b", "x"), byName},
		"Kind":  {"another kind is another object", object("v1", "A", "n", "a", "x"), object("v1", "B", "n", "b", "x"), ""},
		"Content": {"another content in a fixed namespace", object("v1", "A", "n", "a", "x"), object("v1", "A", "n", "a", "y"),
			"A a" + byContent},
		"Namespaces": {"each in a namespace of its own", object("v1", "A", "n", "a", "x"), object("v1", "A", "m", "a", "y"), ""},
		"Own":        {"in the namespace of the OperatorVersion", object("v1", "A", "", "a", "x"), object("v1", "A", "", "a", "y"), ""},
		"Cluster": {"a kind without namespaces", object("storage.k8s.io/v1", "StorageClass", "", "a", "x"),
			object("storage.k8s.io/v1", "StorageClass", "", "a", "y"), "StorageClass a" + byContent},
		"OtherGroup": {"that kind of another group", object("example.org/v1", "StorageClass", "", "a", "x"),
			object("example.org/v1", "StorageClass", "", "a", "y"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unshareableReason(tc.one, tc.other); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	labels := object("v1", "A", "n", "a", "x")
	labels.SetLabels(map[string]string{"v": "other"})
	if got := unshareableReason(object("v1", "A", "n", "a", "x"), labels); got != "" || labels.GetLabels()["v"] != "other" {
		t.Errorf("metadata does not count, and stays: %q, %v", got, labels)
	}
}
