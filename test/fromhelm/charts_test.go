package fromhelm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/env"
)

// example is a chart of testdata/charts.
type example struct {
	name string
	// parameters are lifted.
	parameters []string
}

// examples grow in difficulty.
var examples = []example{
	{"plain", []string{"REPLICAS=Deployment/web:spec.replicas", "IMAGE=Deployment/web:spec.template.spec.containers[0].image"}},
	{"claims", []string{"REPLICAS=StatefulSet/db:spec.replicas", "IMAGE=StatefulSet/db:spec.template.spec.containers[0].image"}},
	{"daemons", []string{"IMAGE=DaemonSet/agent:spec.template.spec.containers[0].image"}},
	{"config", []string{"REPLICAS=Deployment/web:spec.replicas", "KEY=ConfigMap/conf:data.key"}},
	{"hooks", []string{"REPLICAS=Deployment/web:spec.replicas"}},
	{"crds", []string{"SIZE=Thing/one:spec.size"}},
	{"keep", nil},
	{"subchart", []string{"REPLICAS=Deployment/old:spec.replicas"}},
	{"secrets", []string{"RULES=ConfigMap/alerts:data.rules"}},
	{"cluster", nil},
}

// named returns the example of a name.
func named(name string) example {
	return examples[slices.IndexFunc(examples, func(e example) bool { return e.name == name })]
}

// release is a release shop of an example, installed by Helm.
type release struct {
	example
	ns string
	// chart is the folder of the chart.
	chart string
	// manifest is what Helm has applied.
	manifest string
	// home is where Helm stores what is not in the cluster.
	home string
}

// installRelease installs the chart of an example by Helm, and upgrades it once, so that there are two revisions.
func installRelease(t testing.TB, e example) release {
	t.Helper()
	r := release{example: e, ns: cluster.NewNamespace(t), chart: filepath.Join(t.TempDir(), e.name), home: t.TempDir()}
	env.Must(t, os.CopyFS(r.chart, os.DirFS(filepath.Join("testdata", "charts", e.name))))
	env.Must(t, os.CopyFS(r.chart, os.DirFS(filepath.Join("testdata", "library"))))
	if e.name == "cluster" {
		other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.ns + "-other"}}
		env.Must(t, cluster.Create(t.Context(), other))
		t.Cleanup(func() { _ = cluster.Delete(context.Background(), other) })
	}
	r.helm(t, "install", "shop", r.chart, "--wait")
	r.helm(t, "upgrade", "shop", r.chart, "--wait")
	if len(podStarts(t, r.ns)) == 0 {
		t.Fatal("the release has no pods")
	}
	r.manifest = r.helm(t, "get", "manifest", "shop")
	return r
}

// helm runs Helm, and returns what it prints.
func (r release) helm(t testing.TB, args ...string) string {
	t.Helper()
	out, err := plane.Helm(r.home, append(args, "-n", r.ns)...)
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// objects returns what the API server stores of the objects of the release.
func (r release) objects(t testing.TB) (out []metav1.PartialObjectMetadata) {
	t.Helper()
	for _, obj := range parse(t, r.manifest) {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(r.ns)
		}
		live := metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(obj.GroupVersionKind())
		env.Must(t, cluster.Get(t.Context(), client.ObjectKeyFromObject(obj), &live))
		out = append(out, live)
	}
	return out
}

// state returns the uids of the objects and of the pods, with the times at which the pods have started.
func (r release) state(t testing.TB) map[string]string {
	t.Helper()
	out := podStarts(t, r.ns)
	for _, obj := range r.objects(t) {
		out[obj.Kind+" "+obj.Name] = string(obj.UID)
	}
	return out
}
