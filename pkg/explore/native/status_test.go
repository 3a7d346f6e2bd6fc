package native

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// indent puts spaces before each line.
func indent(text string, n int) string {
	space := strings.Repeat(" ", n)
	return space + strings.ReplaceAll(strings.TrimLeft(text, "\n"), "\n", "\n"+space)
}

// nest puts YAML below the keys of a path.
func nest(header, path, text string) string {
	depth := 2
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		header += "\n" + strings.Repeat(" ", depth) + key + ":"
		depth += 2
	}
	return header + "\n" + indent(text, depth)
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReflectStatus(t *testing.T) {
	for _, row := range []struct{ reason, object, want string }{
		{"no status is nil", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}}", "null"},
		{"fields of the rule, and the generation", "{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {replicas: 1, collisionCount: 4, observedGeneration: 1}}",
			`{"generation":2,"observedGeneration":1,"replicas":1}`},
		{"the balancer's addresses", "{apiVersion: v1, kind: Service, status: {loadBalancer: {ingress: [{ip: 1.1.1.1}]}}}", `{"loadBalancer":{"ingress":[{"ip":"1.1.1.1"}]}}`},
		{"a claim's phase and size", "{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound, capacity: {storage: 1Gi}}}", `{"capacity":{"storage":"1Gi"},"phase":"Bound"}`},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, known, err := layer().Explore(t.Context(), explore.Request{Operation: explore.Status, Object: parse(t, row.object)})
			if err != nil || !known {
				t.Fatalf("known %v, error %v", known, err)
			}
			if diff := cmp.Diff(row.want, compact(t, exploretest.Text(t, got.Status))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAggregateStatus(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 7}"
	for _, row := range []struct {
		reason, object string
		items          []string // of the clusters b, a, c; nil is unknown
		want           string
	}{
		{"nothing is known: the object stays", deployment + "\nstatus: {replicas: 3}", nil, "{replicas: 3}"},
		{"no copies: none of what was there", deployment + "\nstatus: {replicas: 3}", []string{}, "{replicas: 0}"},
		{"numbers are added, and the generation observed if all copies' are", deployment,
			[]string{"{replicas: 1, generation: 2, observedGeneration: 2}", "{replicas: 2, readyReplicas: 1, generation: 1, observedGeneration: 1}"}, "{replicas: 3, readyReplicas: 1, observedGeneration: 7}"},
		{"a copy that lags", deployment + "\nstatus: {observedGeneration: 6}", []string{"{generation: 2, observedGeneration: 1}"}, "{observedGeneration: 6}"},
		{"a copy of which nothing is known yet", deployment, []string{"{replicas: 1, observedGeneration: 1, conditions: [{type: Available, status: 'True'}]}", ""}, "{replicas: 1}"},
		{"all say True", deployment, []string{"{conditions: [{type: Available, status: 'True', message: x}]}", "{conditions: [{type: Available, status: 'True', message: y}]}"},
			"{conditions: [{type: Available, status: 'True', message: y}]}"},
		{"one says False", deployment, []string{"{conditions: [{type: Available, status: 'False', reason: R, message: x}]}", "{conditions: [{type: Available, status: 'True', message: y}]}"},
			"{conditions: [{type: Available, status: 'False', reason: R, message: 'b: x'}]}"},
		{"a failure of one is a failure", deployment, []string{"{conditions: [{type: ReplicaFailure, status: 'True', message: quota}]}", "{}"}, "{conditions: [{type: ReplicaFailure, status: 'True', message: quota}]}"},
		{"a type that a copy names twice does not stand for another copy", deployment, []string{"{conditions: [{type: Available, status: 'True'}, {type: Available, status: 'True'}]}", "{}"}, "{}"},
		{"a type that a copy names twice, once False", deployment, []string{"{conditions: [{type: Available, status: 'True'}, {type: Available, status: 'False', message: x}]}", "{conditions: [{type: Available, status: 'True'}]}"},
			"{conditions: [{type: Available, status: 'False', message: 'b: x'}]}"},
		{"a Job is complete when all copies are", "apiVersion: batch/v1\nkind: Job", []string{"{succeeded: 1, startTime: '2026-01-01T10:00:00Z', completionTime: '2026-01-01T11:00:00Z', conditions: [{type: Complete, status: 'True'}]}",
			"{active: 1, startTime: '2026-01-01T09:00:00Z'}"}, "{active: 1, succeeded: 1, startTime: '2026-01-01T09:00:00Z'}"},
		{"and has the last copy's time", "apiVersion: batch/v1\nkind: Job", []string{"{completionTime: '2026-01-01T11:00:00Z', conditions: [{type: Complete, status: 'True'}]}",
			"{completionTime: '2026-01-01T10:00:00Z', conditions: [{type: Complete, status: 'True'}]}"}, "{completionTime: '2026-01-01T11:00:00Z', conditions: [{type: Complete, status: 'True'}]}"},
		{"addresses in the order of clusters, without doubles", "apiVersion: v1\nkind: Service", []string{"{loadBalancer: {ingress: [{ip: 2.2.2.2}]}}", "{loadBalancer: {ingress: [{ip: 1.1.1.1}]}}", "{loadBalancer: {ingress: [{ip: 2.2.2.2}]}}"},
			"{loadBalancer: {ingress: [{ip: 1.1.1.1}, {ip: 2.2.2.2}]}}"},
		{"an Ingress", "apiVersion: networking.k8s.io/v1\nkind: Ingress\nstatus: {loadBalancer: {ingress: [{ip: 9.9.9.9}]}}", []string{"{loadBalancer: {}}"}, "{loadBalancer: {}}"},
		{"the worst phase of claims", "apiVersion: v1\nkind: PersistentVolumeClaim", []string{"{phase: Bound}", "{phase: Pending}"}, "{phase: Pending}"},
		{"a budget", "apiVersion: policy/v1\nkind: PodDisruptionBudget", []string{"{currentHealthy: 1, desiredHealthy: 1, disruptionsAllowed: 0, expectedPods: 2}", "{currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2}"},
			"{currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 4}"},
		{"an autoscaler", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler", []string{"{currentReplicas: 1, desiredReplicas: 2, lastScaleTime: '2026-01-01T10:00:00Z'}", "{currentReplicas: 3, desiredReplicas: 3}"},
			"{currentReplicas: 4, desiredReplicas: 5, lastScaleTime: '2026-01-01T10:00:00Z'}"},
		{"a CronJob", "apiVersion: batch/v1\nkind: CronJob", []string{"{active: [{name: x}], lastScheduleTime: '2026-01-01T10:00:00Z'}", "{lastScheduleTime: '2026-01-01T11:00:00Z'}"},
			"{active: [{name: x}], lastScheduleTime: '2026-01-01T11:00:00Z'}"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var statuses []string
			for _, item := range row.items {
				text := ""
				if item != "" {
					data, err := yaml.YAMLToJSON([]byte(item))
					if err != nil {
						t.Fatal(err)
					}
					text = string(data)
				}
				statuses = append(statuses, text)
			}
			r := explore.Request{Operation: explore.StatusAggregating, Object: parse(t, row.object)}
			if row.items != nil {
				r.Items = exploretest.Items([]string{"b", "a", "c"}, statuses...)
			}
			got, known, err := layer().Explore(t.Context(), r)
			if err != nil || !known {
				t.Fatalf("known %v, error %v", known, err)
			}
			want := parse(t, row.object+"\nremoved: x")
			delete(want.Object, "removed")
			want.Object["status"] = parse(t, "{apiVersion: v1, kind: X, status: "+row.want+"}").Object["status"]
			if !explore.Equal(want.Object, got.Object.Object) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(exploretest.Text(t, want), exploretest.Text(t, got.Object)))
			}
			r.Object = got.Object
			if again, _, err := layer().Explore(t.Context(), r); err != nil || !explore.Equal(again.Object.Object, got.Object.Object) {
				t.Errorf("aggregating into the result changes it again (%v)", err)
			}
		})
	}
}
