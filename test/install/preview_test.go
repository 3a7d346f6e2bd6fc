package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// busyKinds are those that Kubernetes itself writes again and again, or since a Deployment has changed.
var busyKinds = []string{"Event", "Lease", "Node", "Pod", "ReplicaSet", "Endpoints", "EndpointSlice"}

// snapshot returns the state of each object of the cluster, by kind, namespace and name: the spec, labels and annotations of those that
// have a spec, since controllers write their status and the revision of Deployments, and the resource version of all others.
func snapshot(t testing.TB, c *env.Cluster) map[string]string {
	t.Helper()
	served, err := discovery.NewDiscoveryClientForConfigOrDie(c.Config).ServerPreferredResources()
	env.Must(t, err)
	out := map[string]string{}
	for _, group := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, served) {
		for _, resource := range group.APIResources {
			if slices.Contains(busyKinds, resource.Kind) {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(group.GroupVersion, resource.Kind+"List"))
			env.Must(t, c.List(context.Background(), list))
			for _, obj := range list.Items {
				state := obj.GetResourceVersion()
				if spec, found := obj.Object["spec"]; found {
					annotations := obj.GetAnnotations()
					delete(annotations, "deployment.kubernetes.io/revision")
					state = fmt.Sprint(spec, obj.GetLabels(), annotations)
				}
				out[objectKey(resource.Kind, obj.GetNamespace(), obj.GetName())] = state
			}
		}
	}
	return out
}

func objectKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// effects returns what has become of objects between two snapshots, in the words of a preview.
func effects(before, after map[string]string) map[string]preview.Effect {
	out := map[string]preview.Effect{}
	for key, state := range after {
		switch earlier, found := before[key]; {
		case !found:
			out[key] = preview.Create
		case earlier != state:
			out[key] = preview.Modify
		}
	}
	for key := range before {
		if _, found := after[key]; !found {
			out[key] = preview.Delete
		}
	}
	return out
}

var _ = It("The command init --upgrade does what its dry run has said, and nothing else", Label("upgrade-dry-run", "slow", "P1"), func() {
	t, ctx := GinkgoTB(), context.Background()
	e, c := startBare(t)
	e.MustKudo(t, 0, "init", "--wait", "--kudo-image", editedImage+"@sha256:"+strings.Repeat("0", 64)) // without a digest, there is a warning

	By("an installation that others have changed")
	for _, one := range keptEdits() {
		if slices.Contains([]string{"replicas under an autoscaler", "a right that is added", "a policy that refuses nothing", "a definition"}, one.reason) {
			one.apply(t, c)
		}
	}
	obsolete := object(roles, "kudo-obsolete")
	obsolete.SetAnnotations(map[string]string{"kudo.dev/version": "0.0.1"})
	env.Must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(obsolete), client.FieldOwner("kudo-init")))
	upgrade := []string{"init", "--upgrade", "--set", "podLabels.team=x", "--set", "networkPolicy=true"}
	runUpgrade := func(args ...string) string { return e.MustKudo(t, 0, slices.Concat(upgrade, args)...) }
	deployment := func() *unstructured.Unstructured {
		obj := object(deployments, "")
		env.Must(t, c.Get(ctx, types.NamespacedName{Namespace: "kudo-system", Name: deploymentName}, obj))
		return obj
	}
	before, earlier := snapshot(t, c), deployment()

	By("the dry runs, which change nothing")
	text := runUpgrade("--dry-run")
	env.Contains(t, text, "  ~ Deployment kudo-system/"+deploymentName+"\n", "  + NetworkPolicy kudo-system/"+deploymentName+"\n", "  - ClusterRole kudo-obsolete\n",
		"  ~ ValidatingAdmissionPolicy kudo-account\n", ".spec.failurePolicy: ", ".metadata.labels.team", ": 1 create, 5 change (1 restart: 3 pods), 1 delete, 0 unchanged, 0 refused, 0 unknown")
	runUpgrade("--dry-run=client")
	said := preview.Preview{}
	env.Must(t, json.Unmarshal([]byte(runUpgrade("--dry-run", "-o", "json")), &said))
	if written := effects(before, snapshot(t, c)); len(written) > 0 {
		t.Errorf("the dry runs have written: %v", written)
	}
	want := map[string]preview.Effect{}
	for _, obj := range said.Objects {
		want[objectKey(obj.Kind, obj.Namespace, obj.Name)] = obj.Effect
	}

	By("the upgrade")
	runUpgrade("--wait")
	if diff := cmp.Diff(want, effects(before, snapshot(t, c))); diff != "" {
		t.Errorf("-said +done:\n%s", diff)
	}
	env.Must(t, unstructured.SetNestedField(earlier.Object, "x", inPod("metadata", "labels", "team")...))
	if diff := cmp.Diff(earlier.Object["spec"], deployment().Object["spec"]); diff != "" {
		t.Errorf("fields of the Deployment, -said +done:\n%s", diff)
	}
	env.Contains(t, runUpgrade("--dry-run"), "0 create, 0 change, 0 delete, 0 unchanged, 0 refused, 0 unknown")

	By("what the upgrade refuses, its dry run refuses in the same words")
	for _, refused := range refusedEdits() {
		refused.apply(t, c)
		before = snapshot(t, c)
		out := e.MustKudo(t, 3, append(upgrade, "--dry-run")...)
		env.Contains(t, out, "set by "+refused.by, "--force-conflicts")
		if diff := cmp.Diff(refusals(e.MustKudo(t, 1, upgrade...), "Error: "), refusals(out, "✗ refused: ")); diff != "" {
			t.Errorf("-upgrade +dry run:\n%s", diff)
		}
		if written := effects(before, snapshot(t, c)); len(written) > 0 {
			t.Errorf("what is refused has written: %v", written)
		}
	}
})

// refusals are the lines of an output with the reasons of a refusal, from the first with a prefix on: each has its remedy.
func refusals(out, prefix string) []string {
	var lines []string
	for line := range strings.Lines(out[max(0, strings.Index(out, prefix)):]) {
		if strings.Contains(line, "--force-conflicts") {
			lines = append(lines, strings.TrimPrefix(line, prefix))
		}
	}
	return lines
}
