package integration

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// clientOf returns a client of an administrator with a name.
func clientOf(t testing.TB, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme(), Mapper: cluster.RESTMapper()})
	env.Must(t, err)
	return c
}

// patchAs changes an Instance as a user.
func patchAs(t testing.TB, user, ns, name string, change func(*v1beta1.Instance)) {
	t.Helper()
	i := get(t, &v1beta1.Instance{}, ns, name)
	patch := client.MergeFrom(i.DeepCopy())
	change(i)
	env.Must(t, clientOf(t, user).Patch(context.Background(), i, patch))
}

var _ = Describe("Who asked for a run", Label("requester"), func() {
	ctx := context.Background()
	It("is named by events, the history and the log, and not by what clients write", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "words", gen.Param("WORD", "one", ""), gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
		env.Must(t, cluster.Create(ctx, ov))
		env.Must(t, clientOf(t, "ann").Create(ctx, gen.Instance("i", ov, nil)))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		hasEvent(t, ns, "Plan deploy was requested by ann: instance created")
		word := func(value string) func(*v1beta1.Instance) {
			return func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"WORD": value} }
		}
		patchAs(t, "bob of the shop", ns, "i", word("two"))
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 2))
		hasEvent(t, ns, "Plan deploy was requested by bob of the shop: parameters changed: WORD")
		sealOfBob := get(t, &v1beta1.Instance{}, ns, "i").Annotations[v1beta1.RequestedByAnnotation]
		patchAs(t, "carl", ns, "i", func(i *v1beta1.Instance) {
			word("three")(i)
			i.Annotations[v1beta1.RequestedByAnnotation] = sealOfBob
		})
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 3))
		hasEvent(t, ns, "Plan deploy was requested by carl: parameters changed: WORD")
		history := kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns)
		contains(t, history, "instance created; by ann", "parameters changed: WORD; by bob of the shop", "parameters changed: WORD; by carl")
		kudo(t, 0, "update", "--instance", "i", "-n", ns, "-p", "WORD=four")
		await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 4))
		contains(t, kudo(t, 0, "plan", "history", "--instance", "i", "-n", ns), "parameters changed: WORD; by kudo-local-admin with kubectl kudo update")
		env.Must(t, clientOf(t, "dora").Delete(ctx, gen.Instance("i", ov, nil)))
		env.Eventually(t, "the log names who deleted the Instance", env.Condition(func() bool {
			out, _ := plane.Local("logs", "manager")
			for line := range strings.Lines(out) {
				if strings.Contains(line, "Instance is to be deleted") && strings.Contains(line, ns) && strings.Contains(line, "dora") {
					return true
				}
			}
			return false
		}))
	})

	It("is no field of the client that applies the Instance", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		ov := gen.Version(ns, "words", gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
		env.Must(t, cluster.Create(ctx, ov))
		tool := clientOf(t, "tool")
		apply := func() *unstructured.Unstructured {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
				"metadata": map[string]any{"name": "i", "namespace": ns},
				"spec":     map[string]any{"operatorVersion": map[string]any{"name": ov.Name}}}}
			env.Must(t, tool.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("gitops")))
			return o
		}
		apply()
		before := await(t, ns, "i", env.PlanEnded(v1beta1.DeployPlan, 1))
		hasEvent(t, ns, "requested by tool with gitops: ")
		for range 2 {
			apply()
		}
		after := get(t, &v1beta1.Instance{}, ns, "i")
		if after.Annotations[v1beta1.RequestedByAnnotation] != before.Annotations[v1beta1.RequestedByAnnotation] || after.Generation != before.Generation {
			t.Errorf("what is applied again changes the annotations from %v to %v", before.Annotations, after.Annotations)
		}
		for _, entry := range after.ManagedFields {
			if entry.Manager == "gitops" && strings.Contains(string(entry.FieldsV1.GetRawBytes()), "requested-by") {
				t.Errorf("the tool owns the annotation: %s", entry.FieldsV1.GetRawBytes())
			}
		}
	})
})
