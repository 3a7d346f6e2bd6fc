package native

import (
	"testing"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestMalformedFieldsAreUnknown: what cannot be read is never taken for absent.
func TestMalformedFieldsAreUnknown(t *testing.T) {
	for _, row := range []struct {
		reason    string
		operation explore.Operation
		object    string
		live      string
	}{
		{"a service's type", explore.Retaining, "{apiVersion: v1, kind: Service, spec: {type: 5}}", "{apiVersion: v1, kind: Service}"},
		{"a service's live address", explore.Retaining, "{apiVersion: v1, kind: Service, spec: {}}", "{apiVersion: v1, kind: Service, spec: {clusterIP: 5}}"},
		{"a service's ports", explore.Retaining, "{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: 80}}", "{apiVersion: v1, kind: Service}"},
		{"a port", explore.Retaining, "{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [80]}}", "{apiVersion: v1, kind: Service}"},
		{"a pod's spec", explore.Retaining, "{apiVersion: v1, kind: Pod, spec: 5}", "{apiVersion: v1, kind: Pod, spec: {nodeName: a}}"},
		{"a pod's containers", explore.Retaining, "{apiVersion: v1, kind: Pod, spec: {containers: a}}", "{apiVersion: v1, kind: Pod}"},
		{"a pod's live tolerations", explore.Retaining, "{apiVersion: v1, kind: Pod, spec: {}}", "{apiVersion: v1, kind: Pod, spec: {tolerations: a}}"},
		{"an account's secrets", explore.Retaining, "{apiVersion: v1, kind: ServiceAccount, secrets: a}", "{apiVersion: v1, kind: ServiceAccount, secrets: [{name: a}]}"},
		{"webhooks", explore.Retaining, "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, webhooks: a}", "{apiVersion: v1, kind: X}"},
		{"the live number of what is scaled", explore.Retaining, "{apiVersion: a.example/v1, kind: X, metadata: {name: scaled}, spec: {replicas: 1}}", "{apiVersion: a.example/v1, kind: X, spec: {replicas: many}}"},
		{"a pod template", explore.Dependencies, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {volumes: a}}}}", ""},
		{"a quantity that takes minutes to read", explore.Dependencies, "{apiVersion: v1, kind: Pod, spec: {overhead: {cpu: '1e-999999999'}}}", ""},
		{"a quantity that takes minutes to add", explore.Replica, "{apiVersion: v1, kind: Pod, spec: {overhead: {cpu: '1e9999999'}}}", ""},
		{"claim templates", explore.Dependencies, "{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: a}}", ""},
		{"an Ingress' rules", explore.Dependencies, "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {rules: a}}", ""},
		{"an Ingress' certificate", explore.Dependencies, "{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {tls: [{secretName: 5}]}}", ""},
		{"an autoscaler's target", explore.Dependencies, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {name: 5}}}", ""},
		{"a negative number", explore.Replica, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: -1}}", ""},
		{"half a pod", explore.Replica, "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 1.5}}", ""},
		{"a number beyond 32 bits", explore.Replica, "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 5000000000}}", ""},
		{"a CronJob's suspend", explore.Replica, "{apiVersion: batch/v1, kind: CronJob, spec: {suspend: yes please}}", ""},
		{"a spec to write into", explore.ReplicaRevising, "{apiVersion: apps/v1, kind: Deployment, spec: 5}", ""},
		{"a status", explore.Status, "{apiVersion: apps/v1, kind: Deployment, status: 5}", ""},
	} {
		r := explore.Request{Operation: row.operation, Object: parse(t, row.object)}
		if row.live != "" {
			r.Observed = parse(t, row.live)
		}
		exploretest.Run(t, layer(), exploretest.Case{Name: row.reason, Request: r, Unknown: true})
	}
	for _, status := range []string{`{"conditions":5}`, `{"conditions":[5]}`, `{"replicas":1.5}`, `[]`} {
		r := explore.Request{Operation: explore.StatusAggregating, Object: parse(t, "{apiVersion: apps/v1, kind: Deployment}"), Items: exploretest.Items([]string{"a"}, status)}
		exploretest.Run(t, layer(), exploretest.Case{Name: "a copy's status " + status, Request: r, Unknown: true})
	}
}
