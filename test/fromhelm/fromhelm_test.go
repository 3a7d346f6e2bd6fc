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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/helmrelease"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
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

// create creates objects as Helm does, and waits until a kind that they define is served.
func create(t testing.TB, ns, text string) {
	t.Helper()
	for _, obj := range parse(t, text) {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(ns)
		}
		labels, annotations := obj.GetLabels(), obj.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = "shop", ns
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
		env.Eventually(t, "create "+obj.GetKind(), func() string {
			if err := cluster.Create(t.Context(), obj.DeepCopy(), client.FieldOwner("helm")); err != nil && !apierrors.IsAlreadyExists(err) {
				return err.Error()
			}
			return ""
		})
	}
}

// state are the uids of objects, and the uids of the pods of a namespace with their times of start.
func state(t testing.TB, ns, manifest string) map[string]string {
	t.Helper()
	out := podStarts(t, ns)
	for _, obj := range parse(t, manifest) {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(ns)
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		env.Must(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(obj), live))
		out[obj.GetKind()+" "+obj.GetName()] = string(live.UID)
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

// awaitRunning waits until the release has its pods, which are ready.
func awaitRunning(t testing.TB, ns string, pods int) {
	t.Helper()
	env.Eventually(t, "the pods of the release", func() string {
		if pods == 0 {
			status := env.Read(t, cluster, &appsv1.DaemonSet{}, ns, "agent").Status
			if status.DesiredNumberScheduled == 0 || status.NumberReady < status.DesiredNumberScheduled {
				return fmt.Sprintf("%d are ready, of %d", status.NumberReady, status.DesiredNumberScheduled)
			}
		}
		list := &corev1.PodList{}
		env.Must(t, cluster.List(t.Context(), list, client.InNamespace(ns)))
		ready := 0
		for _, pod := range list.Items {
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready < pods {
			return fmt.Sprintf("%d are ready, of %d", ready, pods)
		}
		return ""
	})
}

// settled waits until the newest plan of the Instance is complete.
func settled(t testing.TB, ns string) {
	t.Helper()
	out, code := plane.Kudo("plan", "wait", "--instance", "shop", "-n", ns)
	if code != 0 {
		t.Fatalf("the plan has not ended well: %d, %s", code, out)
	}
}

var _ = Describe("Releases become Instances and go back, and no pod is replaced", func() {
	for _, e := range examples {
		It("P31: "+e.name, Label("from-helm"), func() { thereAndBack(GinkgoTB(), e) })
	}
})

// installRelease creates the objects of a release and the Secrets of its two revisions, and waits until its pods are ready.
func installRelease(t testing.TB, e example) (ns, manifest string) {
	t.Helper()
	ns = cluster.NewNamespace(t)
	manifest = strings.ReplaceAll(e.manifest, "NS", ns)
	create(t, ns, strings.Join(append(slices.Clone(e.crds), strings.ReplaceAll(e.before, "NS", ns)), "\n---\n"))
	create(t, ns, manifest)
	release := gen.HelmRelease(ns, "shop", manifest, e.hooks...)
	for i, crd := range e.crds {
		release.Chart.Files = append(release.Chart.Files, helmrelease.File{Name: fmt.Sprintf("crds/%d.yaml", i), Data: []byte(crd)})
	}
	older := *release
	older.Info.Status = "superseded"
	release.Version = 2
	for _, r := range []*helmrelease.Release{&older, release} {
		env.Must(t, cluster.Create(t.Context(), gen.HelmSecret(r)))
	}
	awaitRunning(t, ns, e.pods)
	return ns, manifest
}

// writePackage makes the package of a release, and returns its folder.
func writePackage(t testing.TB, ns string, e example) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	args := []string{"package", "from-helm", "shop", "-n", ns, "-d", dir}
	for _, p := range e.parameters {
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

// thereAndBack takes a release over, and gives it back.
func thereAndBack(t testing.TB, e example) {
	ns, manifest := installRelease(t, e)
	before := state(t, ns, manifest)
	dir := writePackage(t, ns, e)
	if out := plane.MustKudo(t, 1, "package", "from-helm", "shop", "-n", ns, "--complete", "--instance", "shop", "--yes"); !strings.Contains(out, "not found") {
		t.Errorf("completed without an Instance: %s", out)
	}
	checkTakeoverPreview(t, ns, dir)
	plane.MustKudo(t, 0, "install", dir, "-n", ns, "--instance", "shop", "--adopt", "--wait")
	unchanged(t, "the takeover", before, state(t, ns, manifest))
	plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--complete", "--instance", "shop", "--yes")
	expectSecrets(t, ns, "kudo")
	if out := plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--complete", "--instance", "shop", "--yes"); !strings.Contains(out, "already") {
		t.Errorf("completed twice: %s", out)
	}
	plane.MustKudo(t, 0, "plan", "trigger", "--name", "deploy", "--instance", "shop", "-n", ns)
	settled(t, ns)
	unchanged(t, "another run", before, state(t, ns, manifest))

	out := plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--return", "--instance", "shop", "--yes")
	env.Contains(t, out, "is Helm's again")
	env.Eventually(t, "the deletion of the Instance", func() string {
		if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "shop"}, &v1beta1.Instance{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("%v", err)
		}
		return ""
	})
	expectSecrets(t, ns, "helm")
	unchanged(t, "the return", before, state(t, ns, manifest))
	expectNoKudo(t, ns, manifest)
	plane.MustKudo(t, 0, "package", "from-helm", "shop", "-n", ns, "--return", "--instance", "shop", "--yes")
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

// expectNoKudo checks that the objects of the release in its namespace have nothing of kudo's.
func expectNoKudo(t testing.TB, ns, manifest string) {
	t.Helper()
	for _, obj := range parse(t, manifest) {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		if obj.GetNamespace() == "" {
			obj.SetNamespace(ns)
		}
		env.Must(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(obj), live))
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
