package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// row is one row of a rule's table: an object, and what Check makes of it.
type row struct {
	reason string
	object string
	state  State
	want   string
	// serving is Result.Serving.
	serving bool
}

// run checks a table. The header (apiVersion and kind) stands before each object.
func run(t *testing.T, header string, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.reason, func(t *testing.T) {
			object := parse(t, header+"\n"+r.object)
			before := object.DeepCopy()
			got := Check(object)
			if diff := cmp.Diff(Result{State: r.state, Serving: r.serving, Message: r.want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", r.reason, diff)
			}
			if diff := cmp.Diff(before.Object, object.Object); diff != "" {
				t.Errorf("Check changed the object:\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("YAML of the test: %v\n%s", err, text)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("object of the test: %v\n%s", err, text)
	}
	return object
}

func TestCheckAnyKind(t *testing.T) {
	if got := Check(nil); got.State != Unknown {
		t.Errorf("nil is Unknown, not %v", got)
	}
	if got := Check(&unstructured.Unstructured{}); got.State != Unknown {
		t.Errorf("an empty object is Unknown, not %v", got)
	}
	for _, header := range []string{
		"{apiVersion: apps/v1, kind: Deployment", "{apiVersion: v1, kind: ConfigMap",
		"{apiVersion: v1, kind: PersistentVolumeClaim", "{apiVersion: kudo.dev/v1beta1, kind: Instance",
		"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: 'True'}]}",
	} {
		got := Check(parse(t, header+`, metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`))
		want := Result{State: Progressing, Message: "is being deleted"}
		if got != want {
			t.Errorf("whatever the kind, an object being deleted is Progressing: %s: got %v", header, got)
		}
	}
}

func TestCheckOther(t *testing.T) {
	run(t, "apiVersion: example.com/v1\nkind: Widget", []row{
		{reason: "rule 17: ready once applied", object: "", state: Ready},
		{reason: "rule 17: an empty status is ready", object: "status: {}", state: Ready},
		{reason: "rule 17: a status without conditions or generation is not judged", object: "status: {phase: Failed}", state: Ready},
		{reason: "rule 17: null conditions are none", object: "status: {conditions: null}", state: Ready},
		{reason: "kstatus: the generation is not observed", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 1}",
			state: Progressing, want: "Widget generation is 2, but latest observed generation is 1"},
		{reason: "kstatus: observed and nothing else", object: "metadata: {generation: 2}\nstatus: {observedGeneration: 2}", state: Ready},
		{reason: "kstatus: Stalled is failed", object: "status: {conditions: [{type: Stalled, status: 'True', message: no quota}]}",
			state: Failed, want: "no quota"},
		{reason: "kstatus: Reconciling", object: "status: {conditions: [{type: Reconciling, status: 'True', message: rolls out}]}",
			state: Progressing, want: "rolls out"},
		{reason: "kstatus: Ready false may still become true", object: "status: {conditions: [{type: Ready, status: 'False', message: 1 of 2 up}]}",
			state: Progressing, want: "1 of 2 up"},
		{reason: "kstatus: Ready true", object: "status: {conditions: [{type: Ready, status: 'True'}]}", state: Ready},
		{reason: "kstatus has no opinion: ready, as in KUDO", object: "status: {conditions: [{type: Color, status: 'False'}]}", state: Ready},
		{reason: "without a message there is still one", object: "status: {conditions: [{type: Stalled, status: 'True'}]}",
			state: Failed, want: "has failed"},
		{reason: "a message does not act on a terminal", object: "status: {conditions: [{type: Stalled, status: 'True', message: \"no\\e[2J\\nquota\"}]}",
			state: Failed, want: "no[2J quota"},
	})
	t.Run("malformed conditions are Unknown", func(t *testing.T) {
		got := Check(parse(t, "apiVersion: example.com/v1\nkind: Widget\nstatus: {conditions: none}"))
		if got.State != Unknown || got.Message == "" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("messages are bounded", func(t *testing.T) {
		long := strings.Repeat("ü", 1000)
		got := Check(parse(t, fmt.Sprintf("apiVersion: example.com/v1\nkind: Widget\nstatus: {conditions: [{type: Stalled, status: 'True', message: %s}]}", long)))
		if n := len(got.Message); n > maxMessage || n < maxMessage-len("ü") {
			t.Errorf("message has %d bytes, and %d are allowed", n, maxMessage)
		}
	})
}

func TestKindsWithoutRule(t *testing.T) {
	for _, header := range []string{
		"{apiVersion: v1, kind: ConfigMap, data: {a: b}}",
		"{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true}, status: {}}",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}",
		"{apiVersion: serving.knative.dev/v1, kind: Service, spec: {}}",
		"{apiVersion: example.com/v1, kind: Pod, status: {phase: Failed}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, currentHealthy: 0, desiredHealthy: 2}}",
	} {
		if got := Check(parse(t, header)); got != (Result{State: Ready}) {
			t.Errorf("rule 17, and rules go by group and kind: %s is ready, got %+v", header, got)
		}
	}
}

func TestMalformedFields(t *testing.T) {
	for _, object := range []string{
		"{apiVersion: apps/v1, kind: Deployment, status: {replicas: many}}",
		"{apiVersion: apps/v1, kind: StatefulSet, spec: 7}",
		"{apiVersion: batch/v1, kind: Job, status: {conditions: {}}}",
		"{apiVersion: v1, kind: Pod, status: []}",
		"{apiVersion: kudo.dev/v1beta1, kind: Instance, status: {queue: no}}",
	} {
		if got := Check(parse(t, object)); got.State != Unknown || got.Message == "" {
			t.Errorf("a malformed field that decides gives Unknown and a message: %s gives %+v", object, got)
		}
	}
	if got := Check(parse(t, "{apiVersion: v1, kind: Namespace, metadata: {labels: 5}, status: {phase: Active}}")); got.State != Ready {
		t.Errorf("a malformed field that does not decide does not matter: %+v", got)
	}
}

func FuzzCheck(f *testing.F) {
	for _, kind := range []string{
		`"apps/v1","kind":"Deployment"`, `"apps/v1beta1","kind":"StatefulSet"`, `"apps/v1","kind":"DaemonSet"`, `"apps/v1","kind":"ReplicaSet"`,
		`"batch/v1","kind":"Job"`, `"v1","kind":"Pod"`, `"v1","kind":"Service"`, `"v1","kind":"Namespace"`, `"v1","kind":"PersistentVolumeClaim"`,
		`"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition"`, `"kudo.dev/v1beta1","kind":"Instance"`, `"x.y/v1","kind":"Z"`,
	} {
		f.Add([]byte(`{"apiVersion":` + kind + `,"metadata":{"generation":2,"ownerReferences":[{"controller":true}]},
			"spec":{"replicas":3,"completions":2,"type":"LoadBalancer","updateStrategy":{"rollingUpdate":{"partition":1}}},
			"status":{"observedGeneration":2,"replicas":1.5,"phase":"Failed","conditions":[{"type":"Ready","status":"False"}],"queue":[{}],
			"containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull"}}}],"loadBalancer":{"ingress":[null]}}}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, object := range decodings(data) {
			first := Check(object)
			switch first.State {
			case Ready:
				if first.Message != "" {
					t.Errorf("Ready with the message %q", first.Message)
				}
			case Progressing, Failed, Unknown:
				if first.Message == "" {
					t.Errorf("%s without a message", first.State)
				}
			default:
				t.Errorf("no such state: %q", first.State)
			}
			if second := Check(object); second != first {
				t.Errorf("not stable: %+v, then %+v", first, second)
			}
		}
	})
}
