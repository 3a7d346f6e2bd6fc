package fromhelm

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// parse returns the objects of a text.
func parse(t testing.TB, text string) (out []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		obj := &unstructured.Unstructured{}
		env.Must(t, yaml.Unmarshal([]byte(document), &obj.Object))
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
	return out
}

// podStarts are the uids of the pods of a namespace that no Job has made, by their names, with the times at which they started.
func podStarts(t testing.TB, ns string) map[string]string {
	t.Helper()
	list := &corev1.PodList{}
	env.Must(t, cluster.List(t.Context(), list, client.InNamespace(ns)))
	out := map[string]string{}
	for _, pod := range list.Items {
		if pod.Status.StartTime != nil && pod.Labels["job-name"] == "" {
			out["Pod "+pod.Name] = fmt.Sprintf("%s %s", pod.UID, pod.Status.StartTime)
		}
	}
	return out
}

// settled waits until the newest plan of the Instance is complete.
func settled(t testing.TB, ns string) {
	t.Helper()
	out, code := plane.Kudo("plan", "wait", "--instance", "shop", "-n", ns)
	if code != 0 {
		t.Fatalf("the plan has not ended well: %d, %s", code, out)
	}
}

var _ = Describe("Releases become Instances and go back to Helm, and no pod is replaced", func() {
	for _, e := range examples {
		It("P31: "+e.name, Label("from-helm"), func() { thereAndBack(GinkgoTB(), e) })
	}
})

// writePackage makes the package of a release, and returns its folder.
func writePackage(t testing.TB, r release) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	args := []string{"package", "from-helm", "shop", "-n", r.ns, "-d", dir}
	for _, p := range r.parameters {
		args = append(args, "--parameter", p)
	}
	plane.MustKudo(t, 0, args...)
	return dir
}

// checkTakeoverPreview checks that the preview of a takeover names objects that are taken over, and no pod that restarts (P27, P31).
func checkTakeoverPreview(t testing.TB, ns, dir string) {
	t.Helper()
	text := plane.MustKudo(t, 0, "install", dir, "-n", ns, "--instance", "shop", "--adopt", "--dry-run", "-o", "json")
	p := &preview.Preview{}
	env.Must(t, json.Unmarshal([]byte(text), p))
	if p.Count(preview.Adopt) == 0 || p.Raises("restart") || p.Raises("delete") {
		t.Errorf("the preview of the takeover restarts or deletes, or takes nothing over:\n%s", text)
	}
}

// complete sets the release aside for an Instance.
func complete(t testing.TB, ns string, code int) string {
	t.Helper()
	return plane.MustKudo(t, code, "package", "from-helm", "shop", "-n", ns, "--complete", "--instance", "shop", "--yes")
}

// thereAndBack takes a release over, and gives it back to Helm, which upgrades and deletes it.
func thereAndBack(t testing.TB, e example) {
	r := installRelease(t, e)
	ns, before := r.ns, r.state(t)
	dir := writePackage(t, r)
	env.Contains(t, complete(t, ns, 1), "not found")
	checkTakeoverPreview(t, ns, dir)
	plane.MustKudo(t, 0, "install", dir, "-n", ns, "--instance", "shop", "--adopt", "--wait")
	unchanged(t, "the takeover", before, r.state(t))
	objects := r.objects(t)
	complete(t, ns, 0)
	expectSecrets(t, ns, "kudo")
	if out := r.helm(t, "list", "--all-namespaces"); strings.Contains(out, ns) {
		t.Errorf("Helm still lists the release: %s", out)
	}
	env.Contains(t, complete(t, ns, 0), "already")
	plane.MustKudo(t, 0, "plan", "trigger", "--name", "deploy", "--instance", "shop", "-n", ns)
	settled(t, ns)
	unchanged(t, "another run", before, r.state(t))

	out := plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--return", "--instance", "shop", "--yes")
	env.Contains(t, out, "is Helm's again")
	env.Eventually(t, "the deletion of the Instance", func() string {
		if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "shop"}, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v", err)
		}
		return ""
	})
	expectSecrets(t, ns, "helm")
	unchanged(t, "the return", before, r.state(t))
	expectNoKudo(t, r.objects(t))
	plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--return", "--instance", "shop", "--yes")

	env.Contains(t, r.helm(t, "status", "shop"), "STATUS: deployed", "REVISION: 2")
	r.helm(t, "upgrade", "shop", r.chart, "--wait")
	unchanged(t, "the next upgrade by Helm", before, r.state(t))
	r.helm(t, "uninstall", "shop", "--wait")
	for _, obj := range objects {
		kept := obj.Annotations["helm.sh/resource-policy"] == "keep"
		if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(&obj), &obj); apierrors.IsNotFound(err) == kept {
			t.Errorf("after helm uninstall, %s %s: %v", obj.Kind, obj.Name, err)
		}
	}
}

// unchanged checks that no object was created anew, and no pod was replaced.
func unchanged(t testing.TB, after string, before, now map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("%s has replaced objects or pods: -before +after:\n%s", after, diff)
	}
}

// expectSecrets checks whose the Secrets of the release are.
func expectSecrets(t testing.TB, ns, owner string) {
	t.Helper()
	list := &corev1.SecretList{}
	env.Must(t, cluster.List(context.Background(), list, client.InNamespace(ns), client.MatchingLabels{"name": "shop"}))
	for _, s := range list.Items {
		if s.Labels["owner"] != owner {
			t.Errorf("Secret %s is of %q, want %q", s.Name, s.Labels["owner"], owner)
		}
	}
	if len(list.Items) != 2 {
		t.Errorf("there are %d Secrets of the release", len(list.Items))
	}
}

// expectNoKudo checks that objects have nothing of kudo's.
func expectNoKudo(t testing.TB, objects []metav1.PartialObjectMetadata) {
	t.Helper()
	for _, live := range objects {
		for _, key := range slices.Concat(keys(live.Labels), keys(live.Annotations)) {
			if strings.HasPrefix(key, "kudo.dev/") {
				t.Errorf("%s %s has %s", live.Kind, live.Name, key)
			}
		}
		if live.Labels["heritage"] == "kudo" || len(live.OwnerReferences) > 0 {
			t.Errorf("%s %s is kudo's: %v, %v", live.Kind, live.Name, live.Labels, live.OwnerReferences)
		}
		for _, entry := range live.ManagedFields {
			if strings.HasPrefix(entry.Manager, "kudo/") {
				t.Errorf("%s %s has fields of %s", live.Kind, live.Name, entry.Manager)
			}
		}
	}
}

func keys(m map[string]string) (out []string) {
	for key := range m {
		out = append(out, key)
	}
	return out
}
