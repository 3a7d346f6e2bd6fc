package native

import (
	"testing"

	"kudo.dev/kudo/pkg/explore"
)

// TestRetainNamesOfAnyType checks that names that are maps or lists, which Go cannot compare with ==, end no process: neither
// admission nor a type has checked the files that kubectl kudo explore reads.
func TestRetainNamesOfAnyType(t *testing.T) {
	for _, row := range []struct{ reason, object string }{
		{"secrets of an account", "{apiVersion: v1, kind: ServiceAccount, secrets: [{name: {a: b}}]}"},
		{"pull secrets of an account", "{apiVersion: v1, kind: ServiceAccount, imagePullSecrets: [{name: [a]}]}"},
		{"volumes of a pod", "{apiVersion: v1, kind: Pod, spec: {volumes: [{name: {a: b}}]}}"},
		{"containers of a pod", "{apiVersion: v1, kind: Pod, spec: {containers: [{name: {a: b}}]}}"},
		{"mounts of a container", "{apiVersion: v1, kind: Pod, spec: {initContainers: [{name: a, volumeMounts: [{mountPath: {a: b}}]}]}}"},
		{"gates of a pod", "{apiVersion: v1, kind: Pod, spec: {schedulingGates: [{name: [a]}]}}"},
		{"webhooks", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: {a: b}}]}"},
		{"ports of a service", "{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{name: {a: b}, nodePort: 0}, {name: {a: b}, nodePort: 30001}]}}"},
		{"protocols of a service", "{apiVersion: v1, kind: Service, spec: {type: NodePort, ports: [{port: 80, protocol: {a: b}}, {port: 80, protocol: {a: b}, nodePort: 30001}]}}"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			r := explore.Request{Operation: explore.Retaining, Object: parse(t, row.object), Observed: parse(t, row.object)}
			got, known, err := layer().Explore(t.Context(), r)
			if err != nil || !known {
				t.Fatalf("known %v, error %v", known, err)
			}
			if err := explore.Check(r, &got); err != nil {
				t.Error(err)
			}
		})
	}
}
