package native

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("YAML of the test: %v\n%s", err, text)
	}
	return exploretest.Object(t, string(data))
}

// scaled counts the objects of these names as scaled by an autoscaler.
type scaled map[string]bool

func (s scaled) Scales(_ context.Context, object *unstructured.Unstructured) (bool, error) {
	if object.GetName() == "unsure" {
		return false, errors.New("the cache is not filled yet")
	}
	return s[object.GetName()], nil
}

// phases is a rule of health for pods.
func phases(object *unstructured.Unstructured) (healthy, known bool, message string) {
	if object.GetKind() != "Pod" {
		return false, false, ""
	}
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	return phase == "Running", true, "is " + phase
}

func layer() *Layer { return New(phases, scaled{"scaled": true}) }

const podTemplate = `
template:
  spec:
    serviceAccountName: runner
    priorityClassName: high
    nodeSelector: {disk: ssd}
    containers: [{name: a, resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 64Mi}}, envFrom: [{configMapRef: {name: env}}]}]`

func TestConformance(t *testing.T) {
	workload := func(kind, spec string) *unstructured.Unstructured {
		return parse(t, "apiVersion: "+kind+"\nmetadata: {name: a, namespace: ns, uid: u, generation: 3}\nspec: {"+spec+"}\nstatus: {replicas: 1, observedGeneration: 3, conditions: [{type: Available, status: 'True', message: up}]}")
	}
	deployment := workload("apps/v1\nkind: Deployment", "replicas: 2, template: {spec: {containers: [{name: c, envFrom: [{secretRef: {name: s}}]}]}}")
	service := parse(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}, spec: {type: NodePort, ports: [{port: 80}]}}")
	live := parse(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: ns}, spec: {type: NodePort, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80, nodePort: 30000}]}}")
	hpa := workload("apps/v1\nkind: Deployment", "replicas: 2")
	hpa.SetName("scaled")
	unsure := hpa.DeepCopy()
	unsure.SetName("unsure")
	wrong := workload("apps/v1\nkind: Deployment", "replicas: many")
	exploretest.Run(t, layer(),
		exploretest.Case{Name: "Retaining", Request: explore.Request{Operation: explore.Retaining, Object: service, Observed: live}},
		exploretest.Case{Name: "Retaining what an autoscaler scales", Request: explore.Request{Operation: explore.Retaining, Object: hpa, Observed: hpa.DeepCopy()}},
		exploretest.Case{Name: "Retaining when it is not known whether an autoscaler scales it", Unknown: true,
			Request: explore.Request{Operation: explore.Retaining, Object: unsure, Observed: unsure.DeepCopy()}},
		exploretest.Case{Name: "Healthy", Request: explore.Request{Operation: explore.Healthy, Object: parse(t, "{apiVersion: v1, kind: Pod, status: {phase: Pending}}")},
			Check: func(t *testing.T, a explore.Answer) {
				if a.Healthy || a.Message != "is Pending" {
					t.Errorf("got %v, %q", a.Healthy, a.Message)
				}
			}},
		exploretest.Case{Name: "Dependencies", Request: explore.Request{Operation: explore.Dependencies, Object: deployment}},
		exploretest.Case{Name: "Replica", Request: explore.Request{Operation: explore.Replica, Object: deployment}},
		exploretest.Case{Name: "Replica of a malformed object", Request: explore.Request{Operation: explore.Replica, Object: wrong}, Unknown: true},
		exploretest.Case{Name: "ReplicaRevising", Request: explore.Request{Operation: explore.ReplicaRevising, Object: deployment, Replicas: 7}},
		exploretest.Case{Name: "Status", Request: explore.Request{Operation: explore.Status, Object: deployment}},
		exploretest.Case{Name: "StatusAggregating", Request: explore.Request{Operation: explore.StatusAggregating, Object: deployment,
			Items: exploretest.Items([]string{"b", "a"}, `{"replicas":1,"conditions":[{"type":"Available","status":"True"}]}`, `{"replicas":2}`)}},
		exploretest.Case{Name: "StatusAggregating of a malformed status", Unknown: true, Request: explore.Request{Operation: explore.StatusAggregating, Object: deployment,
			Items: exploretest.Items([]string{"a"}, `{"replicas":"x"}`)}},
	)
}

func TestWithoutHealthAndAutoscalersThereIsNoOpinion(t *testing.T) {
	bare := New(nil, nil)
	object := parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: scaled}, spec: {replicas: 1}}")
	for _, r := range []explore.Request{
		{Operation: explore.Healthy, Object: object},
		{Operation: explore.Retaining, Object: object, Observed: object},
		{Operation: explore.Packing, Object: object},
	} {
		if _, known, err := bare.Explore(t.Context(), r); known || err != nil {
			t.Errorf("%s: got known %v, error %v", r.Operation, known, err)
		}
	}
}

// FuzzExplore feeds objects of any shape: no panic, nothing changed, answers that pass explore.Check, and retentions and
// aggregations that are fixed points.
func FuzzExplore(f *testing.F) {
	for _, kind := range []string{`"v1","kind":"Service"`, `"v1","kind":"Pod"`, `"apps/v1","kind":"StatefulSet"`, `"batch/v1","kind":"Job"`, `"batch/v1","kind":"CronJob"`,
		`"v1","kind":"Secret"`, `"v1","kind":"ServiceAccount"`, `"networking.k8s.io/v1","kind":"Ingress"`, `"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration"`} {
		f.Add([]byte(`{"apiVersion":`+kind+`,"metadata":{"name":"scaled"},"spec":{"replicas":1,"ports":[{"port":1}],"template":{"spec":{"volumes":[{"name":"a","persistentVolumeClaim":{"claimName":"c"}}]}}}}`),
			[]byte(`{"apiVersion":`+kind+`,"type":"kubernetes.io/service-account-token","data":{"token":"x"},"secrets":[{"name":"a"}],
				"spec":{"clusterIP":"1","clusterIPs":["1"],"ports":[{"port":1,"nodePort":2}],"type":"NodePort"},"status":{"conditions":[{"type":"A"}],"replicas":1}}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		desired, live := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if desired.UnmarshalJSON(a) != nil || live.UnmarshalJSON(b) != nil || desired.IsList() || live.IsList() {
			return
		}
		before := exploretest.Text(t, []any{desired, live})
		status := exploretest.Text(t, live.Object["status"])
		for _, operation := range explore.Operations() {
			r := explore.Request{Operation: operation, Object: desired, Observed: live, Replicas: 3, Items: exploretest.Items([]string{"x", "y"}, status, status)}
			answer, known, err := layer().Explore(t.Context(), r)
			if !known || err != nil {
				continue
			}
			if err := explore.Check(r, &answer); err != nil {
				t.Errorf("%s: %v", operation, err)
			}
			if operation == explore.Retaining || operation == explore.StatusAggregating {
				r.Object = answer.Object
				again, known, err := layer().Explore(t.Context(), r)
				if !known || err != nil || !explore.Equal(again.Object.Object, answer.Object.Object) {
					t.Errorf("%s is no fixed point (known %v, error %v)", operation, known, err)
				}
			}
		}
		if exploretest.Text(t, []any{desired, live}) != before {
			t.Error("the request was changed")
		}
	})
}

func BenchmarkRetainService(b *testing.B) {
	service := exploretest.Object(b, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"ns"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`)
	live := exploretest.Object(b, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"ns"},"spec":{"type":"NodePort","clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"nodePort":30000}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, known, err := layer().Explore(b.Context(), explore.Request{Operation: explore.Retaining, Object: service, Observed: live}); !known || err != nil {
			b.Fatal(known, err)
		}
	}
}
