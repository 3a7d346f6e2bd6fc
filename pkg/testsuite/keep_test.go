package testsuite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

var randomName = regexp.MustCompile(`kudo-test-[0-9a-f]{10}`)

// TestP30KeepFailed: what a failed case has made stays, with the commands to look at it and to delete it; of others, nothing stays.
func TestP30KeepFailed(t *testing.T) {
	const role = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role}\n"
	elsewhere := "---\n" + strings.Replace(object, "name: app", "name: elsewhere, namespace: other", 1)
	unmet := strings.Replace(object, "app", "absent", 1)
	for _, tc := range []struct {
		reason, namespace string
		assert            string
		keep, interrupted bool
		kept, deletes     []string
	}{
		{"a failed case", "", unmet, true, false, []string{
			"kubectl get all,instances.kudo.dev,events -n NS", "kubectl delete configmap elsewhere -n other",
			"kubectl delete clusterrole.rbac.authorization.k8s.io role", "kubectl delete namespace NS"}, nil},
		{"a failed case in a namespace that is given", "ns", unmet, true, false, []string{
			"kubectl get all,instances.kudo.dev,events -n ns", "kubectl delete configmap elsewhere -n other",
			"kubectl delete clusterrole.rbac.authorization.k8s.io role", "kubectl delete configmap app -n ns"}, nil},
		{"a case that passes", "", object, true, false, nil, []string{"delete ConfigMap other/elsewhere", "delete ClusterRole role", "delete Namespace NS"}},
		{"without the flag", "", unmet, false, false, nil, []string{"delete ConfigMap other/elsewhere", "delete ClusterRole role", "delete Namespace NS"}},
		{"an interrupted case has not failed", "", unmet, true, true, nil, []string{"delete Namespace NS"}},
	} {
		r, server, _ := newRunner(t)
		r.Namespace, r.KeepFailed = tc.namespace, tc.keep
		ctx, cancel := context.WithCancel(t.Context())
		files := map[string]string{"00-a.yaml": object + role + elsewhere, "00-assert.yaml": tc.assert}
		if tc.interrupted {
			files = map[string]string{"00-a.yaml": head + "TestStep\ncommands: [{command: sleep 60, timeout: 60}]"}
			r.Log = func(_, format string, _ ...any) {
				if strings.HasPrefix(format, "$") {
					cancel()
				}
			}
		}
		result := r.Run(ctx, load(t, files))
		cancel()
		var deletes []string
		for _, request := range writes(server) {
			if strings.HasPrefix(request, "delete") {
				deletes = append(deletes, randomName.ReplaceAllString(request, "NS"))
			}
		}
		for i := range result.Kept {
			result.Kept[i] = randomName.ReplaceAllString(result.Kept[i], "NS")
		}
		if diff := cmp.Diff(tc.kept, result.Kept); diff != "" {
			t.Errorf("%s: kept (-want +got):\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.deletes, deletes); diff != "" {
			t.Errorf("%s: deleted (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestP30KeepOpened: the namespace of all cases stays with what a failed case has made in it.
func TestP30KeepOpened(t *testing.T) {
	r, server, _ := newRunner(t)
	r.KeepFailed = true
	leave, err := r.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.Run(t.Context(), load(t, map[string]string{"00-assert.yaml": object}))
	leave()
	for _, request := range writes(server) {
		if strings.HasPrefix(request, "delete") {
			t.Errorf("%s, though a case has failed", request)
		}
	}
}

// kindsOf are the kinds that leftovers are searched for among.
func kindsOf(kinds ...servedKind) func() ([]servedKind, error) {
	return func() ([]servedKind, error) { return kinds, nil }
}

var (
	configMaps   = servedKind{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true}
	clusterRoles = servedKind{schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, "ClusterRole", false}
)

// TestP30Blockers: what has finalizers blocks the deletion of a namespace, and is reported with the command that removes them, while the
// run waits for the deletion.
func TestP30Blockers(t *testing.T) {
	held := configMap("held", nil)
	held.Finalizers = []string{"example.org/backup", "example.org/dns"}
	other := held.DeepCopy()
	other.Name = "other"
	const blocked = "case: these objects block the deletion of namespace ns:\n    configmaps/held waits for example.org/backup, example.org/dns\n" +
		"    configmaps/other waits for example.org/backup, example.org/dns"
	const remedy = "case: a finalizer is removed by the client that has set it; if that client does not run any more:\n" +
		`    kubectl patch configmaps/held configmaps/other -n ns%s --type=merge -p '{"metadata":{"finalizers":null}}'`
	kinds := kindsOf(configMaps, clusterRoles)
	unknown := func() ([]servedKind, error) { return nil, errors.New("no") }
	for _, tc := range []struct {
		reason     string
		objects    []client.Object
		kubeconfig string
		kinds      func() ([]servedKind, error)
		want       []string
	}{
		{"on the cluster of the run", []client.Object{held, other, configMap("free", nil)}, "/kubeconfig", kinds, []string{blocked, fmt.Sprintf(remedy, "")}},
		{"on another one", []client.Object{held, other}, "/second", kinds, []string{blocked, fmt.Sprintf(remedy, " --kubeconfig /second")}},
		{"nothing has finalizers", []client.Object{configMap("free", nil)}, "/kubeconfig", kinds, nil},
		{"kinds that cannot be read", []client.Object{held}, "/kubeconfig", unknown, nil},
	} {
		cluster, server := newCluster(t, tc.objects...)
		r, _, out := newRunner(t)
		cluster.kinds, cluster.Kubeconfig = tc.kinds, tc.kubeconfig
		p := &caseRun{Runner: r, shell: &shell{namespace: "ns", log: func(format string, args ...any) { r.Log("case", format, args...) }}}
		namespace := &corev1.Namespace{ObjectMeta: gen.Meta("", "ns")}
		o := owned{cluster, server.Put(namespace)}
		resource, err := cluster.resource(o.obj, "")
		if err != nil {
			t.Fatal(err)
		}
		lists := 0
		server.Before(func(request apitest.Request) (any, error) {
			if request.Verb == "list" && request.Kind == "Namespace" {
				lists++
			}
			if lists == 2 { // the delay is over, and the blockers are reported
				server.Remove(namespace)
			}
			return nil, nil
		})
		if err := p.awaitDeletion(t.Context(), resource, o, 50*time.Millisecond); err != nil {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, out.lines); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestP30Leftovers: of what is cluster-scoped, only what Instances of the cases' namespaces have written is theirs.
func TestP30Leftovers(t *testing.T) {
	role := func(name, manager string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"heritage": "kudo"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: "Apply", APIVersion: "rbac.authorization.k8s.io/v1", FieldsType: "FieldsV1"}}}}
	}
	foreign := role("foreign", "kudo/kudo-test-a/web")
	foreign.Labels = nil
	cm := configMap("app", nil)
	cm.ManagedFields, cm.Labels = role("", "kudo/kudo-test-a/web").ManagedFields, map[string]string{"heritage": "kudo"}
	cluster, _ := newCluster(t, role("ours", "kudo/kudo-test-a/web"), role("theirs", "kudo/other/web"), role("similar", "kudo/kudo-test-aa/web"),
		role("failed", "kudo/kudo-test-b/web"), foreign, cm)
	cluster.kinds = kindsOf(configMaps, clusterRoles)
	results := []Result{{Namespace: "kudo-test-a"}, {Namespace: "kudo-test-b", Kept: []string{"kubectl …"}}, {}}
	for _, tc := range []struct {
		reason    string
		skip      bool
		namespace string
		want      []string
	}{
		{"what is deleted should not exist", false, "", []string{"clusterroles.rbac.authorization.k8s.io/ours"}},
		{"nothing was deleted", true, "", nil},
		{"other Instances may live in the namespace that the suite was given", false, "kudo-test-a", nil},
	} {
		r := &Runner{Cluster: cluster, SkipDelete: tc.skip, Namespace: tc.namespace}
		if diff := cmp.Diff(tc.want, r.Leftovers(t.Context(), results)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

func TestBounded(t *testing.T) {
	lines := strings.Split(strings.Repeat("x\n", maxLeftovers+2)+"x", "\n")
	if got := bounded(lines); len(got) != maxLeftovers+1 || got[maxLeftovers] != "and 3 more" {
		t.Errorf("%q", got)
	}
}
