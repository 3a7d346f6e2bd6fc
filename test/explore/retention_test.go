package explore

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
)

// kind is a definition of a namespaced kind in explore.example.com/v1, with a status of its own.
func kind(name, plural string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.explore.example.com}
spec:
  group: explore.example.com
  names: {kind: ` + name + `, listKind: ` + name + `List, plural: ` + plural + `, singular: ` + plural[:len(plural)-1] + `}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, x-kubernetes-preserve-unknown-fields: true},
      status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`
}

const group = "explore.example.com/v1"

// controller makes each Tank hold 5 liters, as a controller that writes into spec does, and counts in status.writes how
// often it had to. It runs until the test ends.
func controller(t testing.TB) {
	t.Helper()
	work, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for work.Err() == nil {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(object(group, "TankList").GroupVersionKind())
			_ = suite.List(work, list)
			for i := range list.Items {
				fill(work, &list.Items[i])
			}
			select {
			case <-again.C:
			case <-work.Done():
			}
		}
	}()
}

func fill(work context.Context, tank *unstructured.Unstructured) {
	if field(tank, "spec.liters") == "5" {
		return
	}
	writes, _, _ := unstructured.NestedInt64(tank.Object, "status", "writes")
	_ = unstructured.SetNestedField(tank.Object, int64(5), "spec", "liters")
	if suite.Update(work, tank) != nil { // changed in the meantime: read again
		return
	}
	_ = suite.Status().Patch(work, tank, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"writes":%d}}`, writes+1)))
}

// The story override answers for all Deployments of the cluster: no other spec may run beside it.
var _ = Describe("A story of the proposal runs as a suite:", Ordered, Serial, ContinueOnFailure, Label("scenarios"), func() {
	BeforeAll(func() {
		t := GinkgoTB()
		define(t, kind("Tank", "tanks"))
		controller(t)
	})
	for _, story := range []string{"override", "controller"} {
		It(story, func() {
			t := GinkgoTB()
			t.Log(suite.MustKudo(t, 0, "test", "testdata/suites/"+story, "--timeout", "60"))
		})
	}
})

var _ = It("The number of replicas that an autoscaler set stays, without a rule", func() {
	t := GinkgoTB()
	ns := suite.NewNamespace(t)
	i := install(t, operator(ns, [][2]string{{"web", deployment}}, gen.Param("REPLICAS", "2", ""), gen.Param("WORD", "one", "")), nil)
	complete(t, i, 1)
	create(t, "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: "+ns+"}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 9}\n")
	for n, want := range []string{"7", "0", "3"} {
		step := []string{`{"parameters":{"WORD":"two"}}`, `{"suspend":true}`, `{"suspend":false,"parameters":{"REPLICAS":"3"}}`}[n]
		if n == 0 {
			merge(t, live(t, "apps/v1", "Deployment", ns, "web"), `{"spec":{"replicas":7}}`, false)
		}
		set(t, i, step)
		complete(t, i, int64(n+2))
		settled(t, i)
		if got := field(live(t, "apps/v1", "Deployment", ns, "web"), "spec.replicas"); got != want {
			t.Errorf("after %s: %s replicas, want %s", step, got, want)
		}
	}
})

// settled waits until no plan runs or is queued, and spec was seen.
func settled(t testing.TB, i *v1beta1.Instance) *v1beta1.Instance {
	t.Helper()
	now, err := suite.Await(ctx, i.Namespace, i.Name, env.DefaultTimeout, func(now *v1beta1.Instance) bool {
		return now != nil && now.Status.ObservedGeneration == now.Generation && now.Status.AggregatedStatus.ActivePlanName == "" &&
			len(now.Status.Queue) == 0 && now.Status.Baseline != nil && now.Status.Baseline.Suspended == now.Spec.Suspend
	})
	env.Must(t, err)
	return now
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Params.REPLICAS }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: server, image: nginx, env: [{name: WORD, value: "{{ .Params.WORD }}"}], resources: {requests: {cpu: 10m, memory: 16Mi}}}]
`

var _ = Describe("A suspended Instance runs nothing, and runs as before afterwards, with", Serial, func() {
	for _, tc := range []struct{ reason, config string }{
		{"kinds of Kubernetes", ""},
		{"replicas that a Config keeps", "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: replicas}\nspec: {retentions: [{apiVersion: apps/v1, kind: Deployment, fields: ['{.spec.replicas}']}]}\n"},
	} {
		It(tc.reason, func() {
			t := GinkgoTB()
			if tc.config != "" {
				configure(t, tc.config)
			}
			ns := suite.NewNamespace(t)
			i := install(t, operator(ns, [][2]string{{"web", deployment}}, gen.Param("REPLICAS", "2", ""), gen.Param("WORD", "one", ""),
				gen.ConfigMaps("cm", 1), gen.Serial("other", "cm")), nil)
			complete(t, i, 1)
			for n, want := range []string{"0", "2", "0"} {
				set(t, i, fmt.Sprintf(`{"suspend":%v}`, n%2 == 0))
				complete(t, i, int64(n+2))
				settled(t, i)
				if got := field(live(t, "apps/v1", "Deployment", ns, "web"), "spec.replicas"); got != want {
					t.Errorf("%s: %s replicas, want %s", tc.reason, got, want)
				}
			}
			set(t, i, `{"parameters":{"WORD":"two"}}`)
			complete(t, i, 5)
			if got := field(live(t, "apps/v1", "Deployment", ns, "web"), "spec.replicas"); got != "0" {
				t.Errorf("%s: a plan that runs in a suspended Instance starts nothing: %s replicas", tc.reason, got)
			}
			set(t, i, `{"suspend":false,"planExecution":{"planName":"other","uid":"1"}}`) // which another plan is asked for with
			complete(t, i, 7)
			settled(t, i)
			if got := field(live(t, "apps/v1", "Deployment", ns, "web"), "spec.replicas"); got != "2" {
				t.Errorf("%s: it is taken back after the other plan: %s replicas", tc.reason, got)
			}
		})
	}
})

var _ = It("What a controller wrote into a shared object is no mismatch if a Config keeps it", Serial, func() {
	t := GinkgoTB()
	define(t, kind("Tank", "tanks"))
	name := fmt.Sprintf("pool%d", time.Now().UnixNano()%1e6)
	ns := suite.NewNamespace(t)
	version := func(place string) *v1beta1.OperatorVersion {
		return gen.Version(place, "pool", gen.Template("pool.yaml", "apiVersion: explore.example.com/v1\nkind: Tank\nmetadata: {name: "+name+", namespace: "+ns+"}\nspec: {liters: 1}\n"),
			gen.Apply("pool", "pool.yaml"), gen.Serial("install", "pool"), gen.InstallPlan("install"), gen.Param("VALUE", "a", ""), gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	}
	first := version(ns)
	env.Must(t, suite.Create(ctx, first))
	installed(t, first, v1beta1.Complete)
	merge(t, live(t, group, "Tank", ns, name), `{"spec":{"liters":5}}`, false)
	second := version(suite.NewNamespace(t))
	env.Must(t, suite.Create(ctx, second))
	env.Contains(t, installed(t, second, v1beta1.FatalError), name, "liters")
	configure(t, "apiVersion: config.kudo.dev/v1alpha1\nkind: Config\nmetadata: {name: pools}\nspec: {retentions: [{apiVersion: explore.example.com/v1, kind: Tank, fields: ['{.spec.liters}']}]}\n")
	third := version(suite.NewNamespace(t))
	env.Must(t, suite.Create(ctx, third))
	installed(t, third, v1beta1.Complete)
	if got := field(live(t, group, "Tank", ns, name), "spec.liters"); got != "5" {
		t.Errorf("what the controller wrote stays: %s liters", got)
	}
	for _, ov := range []*v1beta1.OperatorVersion{first, second, third} {
		env.Must(t, suite.Delete(ctx, ov))
	}
})

// installed waits for the end of an install plan, and returns its message.
func installed(t testing.TB, ov *v1beta1.OperatorVersion, want v1beta1.ExecutionStatus) string {
	t.Helper()
	message := ""
	env.Eventually(t, "an install plan that is "+string(want), func() string {
		now := env.Read(t, suite, &v1beta1.OperatorVersion{}, ov.Namespace, ov.Name)
		if now.Status.AggregatedStatus.Status != want {
			return fmt.Sprintf("%+v", now.Status.AggregatedStatus)
		}
		message = now.Status.AggregatedStatus.Message
		return ""
	})
	return message
}
