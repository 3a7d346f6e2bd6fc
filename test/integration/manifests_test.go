package integration

import (
	"os/exec"
	"path/filepath"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/testsuite"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = DescribeTable("What package render --manifests writes is what install creates:", Label("P30", "manifests"),
	func(pkg string, objects int, flags ...string) {
		t := GinkgoTB()
		installed, applied := cluster.NewNamespace(t), cluster.NewNamespace(t)
		dir, source := t.TempDir(), filepath.Join(sourcetree.Root(), pkg)
		kudo(t, 0, append([]string{"install", source, "--instance", "site", "-n", installed}, flags...)...)
		render := append([]string{"package", "render", source, "--manifests", "--instance", "site", "-n", applied, "-d", dir}, flags...)
		kudo(t, 0, render...)
		apply := func() {
			t.Helper()
			out, err := exec.Command(filepath.Join(plane.Bin, "kubectl"), "--kubeconfig", plane.Kubeconfig, "apply", "-f", dir).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		apply()
		manifests, err := testsuite.Objects(dir)
		env.Must(t, err)
		if len(manifests) != objects {
			t.Fatalf("%d manifests, want %d", len(manifests), objects)
		}
		live := func(obj *unstructured.Unstructured, ns string) *unstructured.Unstructured {
			t.Helper()
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(obj.GroupVersionKind())
			env.Must(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: obj.GetName()}, out))
			unstructured.RemoveNestedField(out.Object, "spec", "planExecution")
			return out
		}
		generations := map[string]int64{}
		for _, obj := range manifests {
			ours, theirs := live(obj, applied), live(obj, installed)
			if diff := cmp.Diff(theirs.Object["spec"], ours.Object["spec"]); diff != "" {
				t.Errorf("%s %s: -installed +applied:\n%s", obj.GetKind(), obj.GetName(), diff)
			}
			if diff := cmp.Diff(theirs.GetLabels(), ours.GetLabels()); diff != "" {
				t.Errorf("%s %s: labels: -installed +applied:\n%s", obj.GetKind(), obj.GetName(), diff)
			}
			generations[obj.GetKind()+obj.GetName()] = ours.GetGeneration()
		}
		for _, ns := range []string{installed, applied} {
			status(t, await(t, ns, "site", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
		}
		kudo(t, 0, render...) // the same bytes: nothing is replaced
		apply()
		for _, obj := range manifests {
			if now := live(obj, applied).GetGeneration(); now != generations[obj.GetKind()+obj.GetName()] {
				t.Errorf("%s %s: what was applied again changed the spec", obj.GetKind(), obj.GetName())
			}
		}
	},
	Entry("a dependency", "docs/examples/site", 5, "-p", "STORE=true"),
	Entry("parameters and a schedule", "docs/examples/web", 3, "-p", "REPLICAS=2", "--schedule", "nightly=report@0 3 * * *"),
	Entry("defaults of immutable parameters", "operators/catalog/guestbook/operator", 3),
)
