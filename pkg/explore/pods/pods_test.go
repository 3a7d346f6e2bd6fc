package pods

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func spec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	s := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRequirements(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Sum":      {"containers add up", "{containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, {resources: {requests: {cpu: 1}}}]}", `{"resourceRequest":{"cpu":"1100m","memory":"1Gi"}}`},
		"Limits":   {"a limit is a request, if there is none", "{containers: [{resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}]}", `{"resourceRequest":{"cpu":"1","memory":"1Gi"}}`},
		"Init":     {"the largest init container counts", "{initContainers: [{resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 2}}}], containers: [{resources: {requests: {cpu: 1}}}]}", `{"resourceRequest":{"cpu":"3"}}`},
		"Sidecar":  {"sidecars add up", "{initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 3}}}], containers: [{resources: {requests: {cpu: 1}}}]}", `{"resourceRequest":{"cpu":"4"}}`},
		"Overhead": {"so does the overhead", "{overhead: {cpu: 1}, containers: [{resources: {requests: {cpu: 1}}}]}", `{"resourceRequest":{"cpu":"2"}}`},
		"Extended": {"and extended resources", "{containers: [{resources: {limits: {example.org/gpu: 2}}}]}", `{"resourceRequest":{"example.org/gpu":"2"}}`},
		"Nodes":    {"nodes", "{nodeSelector: {a: b}, tolerations: [{key: x}], containers: []}", `{"nodeClaim":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"x"}]}}`},
		"None":     {"nothing", "{containers: [{}]}", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(Requirements(spec(t, tc.spec)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDependencies(t *testing.T) {
	s := spec(t, `
serviceAccountName: runner
imagePullSecrets: [{name: pull}]
initContainers: [{name: i, envFrom: [{configMapRef: {name: c2}}]}]
containers:
- name: a
  env: [{name: A, valueFrom: {configMapKeyRef: {name: c1, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: s1, key: k}}}, {name: C, value: x}]
volumes:
- {name: a, configMap: {name: c1}}
- {name: b, secret: {secretName: s2}}
- {name: c, persistentVolumeClaim: {claimName: data}}
- {name: d, projected: {sources: [{configMap: {name: c3}}, {secret: {name: s3}}]}}
- {name: e, csi: {driver: x, nodePublishSecretRef: {name: s4}}}
`)
	var got []string
	for _, d := range Dependencies(s, "lab") {
		got = append(got, fmt.Sprintf("%s %s/%s", d.Kind, d.Namespace, d.Name))
	}
	want := []string{"ConfigMap lab/c1", "ConfigMap lab/c2", "ConfigMap lab/c3", "Secret lab/pull", "Secret lab/s1", "Secret lab/s2", "Secret lab/s3", "Secret lab/s4", "ServiceAccount lab/runner", "PersistentVolumeClaim lab/data"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Dependencies(spec(t, "{serviceAccountName: default, containers: []}"), "lab"); len(got) != 0 {
		t.Errorf("the default account is no dependency: %v", got)
	}
}
