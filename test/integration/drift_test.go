package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// by writes as a field manager of a name.
func by(t testing.TB, who string, obj client.Object, patch string, options ...client.PatchOption) {
	t.Helper()
	env.Must(t, cluster.Patch(context.Background(), obj, client.RawPatch(types.MergePatchType, []byte(patch)), append(options, client.FieldOwner(who))...))
}

// scale sets the replicas through the subresource, as kubectl and autoscalers do.
func scale(t testing.TB, who, ns string, replicas int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	env.Must(t, cluster.SubResource("scale").Patch(context.Background(), &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i")}, patch, client.FieldOwner(who)))
}

// drifted is what the status says of the objects that others have changed; empty if it lists none.
func drifted(i *v1beta1.Instance) string {
	var out []string
	for _, d := range i.Status.Drift {
		out = append(out, d.Message)
	}
	return strings.Join(out, "; ")
}

var _ = It("Drift is reported, with field and writer, and not corrected outside a run; the next run does", Label("drift", "rule-13"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns, gen.Template("page.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-page\", labels: {tier: front}}\ndata: {page: hello}\n"),
		gen.Apply("page", "page.yaml"), gen.Serial("deploy", "app", "page"))
	status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
	page, server := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-page")}, &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i")}
	for n, tc := range []struct {
		reason string
		change func()
		want   string
	}{
		{"a field", func() { by(t, "mallory", page, `{"data":{"page":"bye"}}`) }, "ConfigMap " + ns + "/i-page: .data.page was changed by mallory"},
		{"one of metadata, which changes no generation", func() { by(t, "mallory", server, `{"metadata":{"labels":{"kudo.dev/operator":"x"}}}`) },
			"Deployment " + ns + "/i: .metadata.labels.kudo.dev/operator was changed by mallory"},
		{"what was removed", func() { by(t, "mallory", page, `{"metadata":{"labels":{"tier":null}}}`) }, "ConfigMap " + ns + "/i-page: fields of it were changed by "},
		{"by a subresource", func() { scale(t, "kubectl", ns, 2) }, "Deployment " + ns + "/i: .spec.replicas was changed by kubectl"},
	} {
		tc.change()
		i := await(t, ns, "i", func(i *v1beta1.Instance) bool {
			return drifted(i) != "" && meta.IsStatusConditionTrue(i.Status.Conditions, v1beta1.ReadyCondition)
		})
		contains(t, drifted(i), tc.want)
		if n == 0 {
			contains(t, kudo(t, 0, "get", "instances", "-n", ns), "True    1 ")
			contains(t, kudo(t, 0, "plan", "status", "--instance", "i", "-n", ns), "Drifted: "+tc.want)
			hasEvent(t, ns, v1beta1.EventObjectChanged+": "+tc.want)
			if got := get(t, &corev1.ConfigMap{}, ns, "i-page").Data["page"]; got != "bye" {
				t.Errorf("it was corrected outside a run: %s", got)
			}
		}
		kudo(t, 0, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "deploy", "--wait")
		await(t, ns, "i", func(i *v1beta1.Instance) bool { return drifted(i) == "" })
		if got := get(t, &corev1.ConfigMap{}, ns, "i-page"); got.Data["page"] != "hello" || got.Labels["tier"] != "front" {
			t.Errorf("%s: a run puts it right: %v", tc.reason, got)
		}
		if got := get(t, &appsv1.Deployment{}, ns, "i"); *got.Spec.Replicas != 1 || got.Labels[v1beta1.OperatorLabel] == "x" {
			t.Errorf("%s: a run puts it right: %v %v", tc.reason, *got.Spec.Replicas, got.Labels)
		}
	}
})

// driftOf returns the entry of status.drift for an object of a kind, nil if there is none.
func driftOf(i *v1beta1.Instance, kind string) *v1beta1.ObjectDrift {
	if at := slices.IndexFunc(i.Status.Drift, func(d v1beta1.ObjectDrift) bool { return d.Kind == kind }); at >= 0 {
		return &i.Status.Drift[at]
	}
	return nil
}

var _ = It("Drift has the time of the change, which stays while the drift stays", Label("drift-since", "P30", "rule-13"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := web(ns, gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "app", "cm"))
	status(t, deploy(t, ov, "i", nil), "deploy", v1beta1.Complete)
	page, server := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-cm-0")}, &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i")}
	// listed waits for drift of a kind, whose time must not be before a change, nor after now.
	listed := func(kind string, changed time.Time) (*v1beta1.ObjectDrift, *v1beta1.Instance) {
		i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return driftOf(i, kind) != nil })
		d := driftOf(i, kind)
		if d.Since == nil || d.Since.Time.Before(changed.Truncate(time.Second)) || d.Since.After(time.Now()) {
			t.Fatalf("%s: since is %v, and the change was at %s", kind, d.Since, changed.Format(time.RFC3339))
		}
		return d, i
	}
	changed := time.Now()
	by(t, "mallory", page, `{"data":{"key":"bye"}}`)
	first, _ := listed("ConfigMap", changed)
	if first.Writer != "mallory" || !slices.Equal(first.Fields, []string{".data.key"}) {
		t.Errorf("mallory has changed .data.key: %+v", first)
	}

	// The same writer changes the field again, and another object: the Instance is reconciled in another second, since times are of seconds.
	<-time.After(time.Until(first.Since.Add(time.Second)))
	changed = time.Now()
	by(t, "mallory", page, `{"data":{"key":"good bye"}}`)
	by(t, "mallory", server, `{"metadata":{"labels":{"kudo.dev/operator":"x"}}}`)
	second, i := listed("Deployment", changed)
	if again := driftOf(i, "ConfigMap"); again == nil || !again.Since.Equal(first.Since) {
		t.Errorf("the drift of the ConfigMap was found at %s, and after another reconcile it is %+v", first.Since, again)
	}
	if !first.Since.Before(second.Since) {
		t.Errorf("the drift of the Deployment was found at %s, in the second of the first", second.Since)
	}
})

var _ = It("What an autoscaler does is no drift, and does not hide any", Label("drift-beside-autoscaler", "rule-13"), func() {
	t := GinkgoTB()
	ctx := context.Background()
	ns := cluster.NewNamespace(t)
	deploy(t, web(ns), "i", nil)
	server := &appsv1.Deployment{ObjectMeta: gen.Meta(ns, "i")}
	env.Must(t, cluster.Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: gen.Meta(ns, "i"), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "i"}, MaxReplicas: 9,
	}}))
	scale(t, "autoscaler", ns, 3)
	by(t, "mallory", server, `{"metadata":{"labels":{"kudo.dev/operator":"x"}}}`)
	i := await(t, ns, "i", func(i *v1beta1.Instance) bool { return drifted(i) != "" })
	contains(t, drifted(i), "Deployment "+ns+"/i: .metadata.labels.kudo.dev/operator was changed by mallory")
	kudo(t, 0, "plan", "trigger", "--instance", "i", "-n", ns, "--name", "deploy", "--wait")
	await(t, ns, "i", func(i *v1beta1.Instance) bool { return drifted(i) == "" })
	if got := get(t, &appsv1.Deployment{}, ns, "i"); *got.Spec.Replicas != 3 {
		t.Errorf("%d replicas: they are the autoscaler's", *got.Spec.Replicas)
	}
	scale(t, "autoscaler", ns, 4)
	env.Consistently(t, time.Second, func() {
		if i := get(t, &v1beta1.Instance{}, ns, "i"); drifted(i) != "" {
			t.Errorf("the autoscaler's replicas are no drift: %s", drifted(i))
		}
	})
})

var _ = It("A client that changes a field again and again is named once, with one write", Serial, Label("drift-storm", "rule-13"), func() {
	t := GinkgoTB()
	awaitQuiet()
	ctx := context.Background()
	ns := cluster.NewNamespace(t)
	deploy(t, gen.Version(ns, "storm", gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm")), "i", nil)
	before := get(t, &v1beta1.Instance{}, ns, "i").ResourceVersion
	page := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "i-cm-0")}
	by(t, "mallory", page, `{"data":{"key":"0"}}`)
	first := await(t, ns, "i", func(i *v1beta1.Instance) bool { return drifted(i) != "" })
	earlier, err := cluster.Requests(ctx)
	env.Must(t, err)
	for n := range 100 {
		by(t, []string{"mallory", "trudy"}[n%2], page, `{"data":{"key":"`+string(rune('a'+n%26))+`"}}`)
	}
	<-time.After(time.Second) // requests are counted, so that none is sent to look
	later, err := cluster.Requests(ctx)
	env.Must(t, err)
	if now := get(t, &v1beta1.Instance{}, ns, "i"); now.ResourceVersion != first.ResourceVersion || now.ResourceVersion == before {
		t.Errorf("the Instance was written again: %v", now.Status.Drift)
	}
	sent := later.Since(earlier)
	ofNamespaces := sent["LIST instances"] + sent["DELETE instances"]         // the end of the namespaces of other specs
	if n := sent.Of("instances") - ofNamespaces; n > 1 || ofNamespaces > 50 { // one is that of the line above; 100 would be one for each change
		t.Errorf("%d requests for one who changes a field again and again: %v", n, sent)
	}
})
