package pods

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRequests has rules of the scheduler on which several containers act together.
func TestRequests(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"InitBelow": {
			"an init container that needs less does not count",
			"{initContainers: [{resources: {requests: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 2}}}]}", `{"cpu":"2"}`,
		},
		"InitEach": {
			"the largest of each resource",
			"{initContainers: [{resources: {requests: {cpu: 3, memory: 1Gi}}}, {resources: {requests: {cpu: 1, memory: 2Gi}}}], " +
				"containers: [{resources: {requests: {cpu: 2, memory: 1Gi}}}]}",
			`{"cpu":"3","memory":"2Gi"}`,
		},
		"SidecarBefore": {
			"sidecars run beside later init containers, not beside earlier ones",
			"{initContainers: [{resources: {requests: {cpu: 5}}}, {restartPolicy: Always, resources: {requests: {cpu: 1}}}, " +
				"{resources: {requests: {cpu: 4500m}}}], containers: [{resources: {requests: {cpu: 2}}}]}",
			`{"cpu":"5500m"}`,
		},
		"Sidecars": {
			"sidecars add up, also while they start",
			"{initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, " +
				"{restartPolicy: Always, resources: {requests: {cpu: 2}}}], " +
				"containers: [{}]}",
			`{"cpu":"3"}`,
		},
		"InitOverhead": {
			"the overhead adds to init containers, too",
			"{overhead: {cpu: 500m}, initContainers: [{resources: {requests: {cpu: 2}}}]}",
			`{"cpu":"2500m"}`,
		},
		"Zero":        {"0 is no request", "{containers: [{resources: {requests: {cpu: 0, memory: 1}}}]}", `{"memory":"1"}`},
		"ZeroRequest": {"and replaces the limit", "{containers: [{resources: {requests: {cpu: 0}, limits: {cpu: 2}}}]}", `{}`},
		"Pages": {
			"huge pages and storage count",
			"{containers: [{resources: {limits: {hugepages-2Mi: 4Mi, ephemeral-storage: 1Gi}}}]}",
			`{"ephemeral-storage":"1Gi","hugepages-2Mi":"4Mi"}`,
		},
		"Unknown": {
			"what the scheduler does not know does not",
			"{containers: [{resources: {requests: {storage: 1Gi, attachable: 1}}}]}",
			`{}`,
		},
		"Ephemeral": {"nor do ephemeral containers", "{ephemeralContainers: [{name: e, resources: {requests: {cpu: 1}}}]}", `{}`},
		"Format": {
			"a sum has the form of its first part",
			"{containers: [{resources: {requests: {memory: 1Gi}}}, {resources: {requests: {memory: 500M}}}]}",
			`{"memory":"1573741824"}`,
		},
		"Restart": {
			"another restart policy makes no sidecar",
			"{initContainers: [{restartPolicy: Never, resources: {requests: {cpu: 1}}}], containers: [{resources: {requests: {cpu: 1}}}]}",
			`{"cpu":"1"}`,
		},
		"NoContainers":  {"a pod without containers", "{}", `{}`},
		"OverheadAlone": {"needs its overhead", "{overhead: {memory: 1Mi}}", `{"memory":"1Mi"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, tc.spec)
			before := s.DeepCopy()
			got, err := json.Marshal(Requirements(s).ResourceRequest)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			wantSpec, gotSpec := marshal(t, before), marshal(t, s)
			if diff := cmp.Diff(wantSpec, gotSpec); diff != "" {
				t.Errorf("%s: the spec was changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLimits (C64) checks what a pod may use.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Sum": {"containers together, by their limits alone", "{containers: [{resources: {limits: {cpu: 1, memory: 1Gi}}}, {resources: {limits: {cpu: 1}, requests: {memory: 9Gi}}}]}",
			`{"cpu":"2","memory":"1Gi"}`},
		"Init": {"an init container that may use more, beside the sidecar before it", "{initContainers: [{restartPolicy: Always, resources: {limits: {cpu: 1}}}, {resources: {limits: {cpu: 5}}}], " +
			"containers: [{resources: {limits: {cpu: 1}}}]}", `{"cpu":"6"}`},
		"InitFree":   {"one without limits", "{initContainers: [{}], containers: [{resources: {limits: {cpu: 1}}}]}", `{"cpu":"1"}`},
		"Overhead":   {"the overhead counts for what is limited", "{overhead: {cpu: 1, memory: 1Mi}, containers: [{resources: {limits: {cpu: 1}}}]}", `{"cpu":"2"}`},
		"Unlimited":  {"no limits", "{containers: [{resources: {requests: {cpu: 1}}}]}", `{}`},
		"NoneAtAll":  {"no containers", "{}", `{}`},
		"OfNothing":  {"a limit of zero is none", "{containers: [{resources: {limits: {cpu: 0}}}]}", `{}`},
		"OtherNames": {"what pods do not have is left out", "{containers: [{resources: {limits: {storage: 1Gi, example.com/gpu: 1}}}]}", `{"example.com/gpu":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(t, tc.spec)
			before := s.DeepCopy()
			if got := marshal(t, Limits(s)); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
			if diff := cmp.Diff(before, s); diff != "" {
				t.Errorf("%s: the spec was changed:\n%s", tc.reason, diff)
			}
		})
	}
}

func marshal(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNodeClaim(t *testing.T) {
	const terms = "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}"
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Required": {
			"what nodes must have",
			"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " + terms + "}}}",
			`{"hardNodeAffinity":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}`,
		},
		"Preferred": {
			"what they should have is no claim",
			"{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}}",
			"null",
		},
		"Pods":      {"nor is an affinity to pods", "{affinity: {podAffinity: {}}}", "null"},
		"Selector":  {"a selector", "{nodeSelector: {a: b}}", `{"nodeSelector":{"a":"b"}}`},
		"Tolerates": {"tolerations", "{tolerations: [{operator: Exists}]}", `{"tolerations":[{"operator":"Exists"}]}`},
		"Empty":     {"empty ones", "{nodeSelector: {}, tolerations: [], affinity: {nodeAffinity: {}}}", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, marshal(t, Requirements(spec(t, tc.spec)).NodeClaim)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
