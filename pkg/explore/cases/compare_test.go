package cases

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// TestCompareAnswers has the outputs of operations, and answers that differ from them.
func TestCompareAnswers(t *testing.T) {
	object := func(status any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", "status": status}}
	}
	requirements := &v1alpha1.ReplicaRequirements{}
	requirements.ResourceRequest = quantities(t, "cpu", "1500m", "memory", "1Gi")
	secret := v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Name: "s"}
	config := v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "c"}
	reference := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "name": name}
	}
	for name, tc := range map[string]struct {
		reason string
		output map[string]any
		answer explore.Answer
		want   []string
	}{
		"Healthy": {
			"health and its message",
			map[string]any{"healthy": false, "message": "a"},
			explore.Answer{Message: "b"},
			[]string{`message: want "a", got "b"`},
		},
		"Order": {
			"outputs in order",
			map[string]any{"message": "a", "healthy": true},
			explore.Answer{},
			[]string{"healthy: want true, got false", `message: want "a", got ""`},
		},
		"Replica": {"replicas", map[string]any{"replica": int64(3)}, explore.Answer{Replicas: 2}, []string{"replica: want 3, got 2"}},
		"Quantities": {
			"quantities by their value",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": "1.5", "memory": "1024Mi"}}},
			explore.Answer{Requirements: requirements},
			nil,
		},
		"Quantity": {
			"one that differs as a decimal number",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": "1.500", "memory": "1G"}}},
			explore.Answer{Requirements: requirements},
			[]string{`requires.resourceRequest.memory: want "1000000000", got "1073741824"`},
		},
		"HugeQuantity": {
			"a quantity that takes minutes to read",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": "1e-999999999"}}},
			explore.Answer{Requirements: &v1alpha1.ReplicaRequirements{}},
			[]string{`requires.resourceRequest.cpu: want "1e-999999999", got nothing`},
		},
		"Number": {
			"a quantity that is a number",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": 1.5, "memory": int64(1 << 30)}}},
			explore.Answer{Requirements: requirements},
			nil,
		},
		"Unknown": {
			"a field that requirements have not",
			map[string]any{"requires": map[string]any{"resourceRequests": map[string]any{"cpu": "1"}}},
			explore.Answer{},
			[]string{`requires.resourceRequests.cpu: want "1", got nothing`},
		},
		"NoneRequired": {
			"requirements that are not there",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": "1"}}},
			explore.Answer{},
			[]string{`requires.resourceRequest.cpu: want "1", got nothing`},
		},
		"ExcludedPart": {
			"a quantity that does not matter",
			map[string]any{"requires": map[string]any{"resourceRequest": map[string]any{"cpu": Excluded, "memory": "1Gi"}}},
			explore.Answer{Requirements: requirements},
			nil,
		},
		"Set": {
			"dependencies by their set",
			map[string]any{"dependencies": []any{reference("Secret", "s"), reference("ConfigMap", "c")}},
			explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{config, secret}},
			nil,
		},
		"Fewer": {
			"a dependency that is missing",
			map[string]any{"dependencies": []any{reference("Secret", "s")}},
			explore.Answer{},
			[]string{`dependencies: want [{"apiVersion":"v1","kind":"Secret","name":"s"}], got []`},
		},
		"NoList": {
			"dependencies that are no list",
			map[string]any{"dependencies": "x"},
			explore.Answer{Dependencies: []v1alpha1.DependentObjectReference{secret}},
			[]string{`dependencies: want "x", got [{"apiVersion":"v1","kind":"Secret","name":"s"}]`},
		},
		"Status": {
			"a status",
			map[string]any{"status": map[string]any{"n": int64(1)}},
			explore.Answer{Status: map[string]any{"n": int64(2)}},
			[]string{"status.n: want 1, got 2"},
		},
		"Aggregated": {
			"the status alone",
			map[string]any{"aggregatedStatus": map[string]any{"n": int64(1)}},
			explore.Answer{Object: object(map[string]any{"n": int64(1)})},
			nil,
		},
		"Object": {
			"or the whole object",
			map[string]any{"aggregatedStatus": map[string]any{"apiVersion": "v1", "kind": "Y"}},
			explore.Answer{Object: object(nil)},
			[]string{`aggregatedStatus.kind: want "Y", got "X"`},
		},
		"NoObject": {
			"no object",
			map[string]any{"packed": map[string]any{"kind": "X"}},
			explore.Answer{},
			[]string{`packed.kind: want "X", got nothing`},
		},
		"Lists": {
			"lists of one length by their entries",
			map[string]any{"status": []any{int64(1), int64(2)}},
			explore.Answer{Status: []any{int64(1), int64(3)}},
			[]string{"status[1]: want 2, got 3"},
		},
		"Lengths": {
			"of two lengths as a whole",
			map[string]any{"status": []any{int64(1)}},
			explore.Answer{Status: []any{int64(1), int64(3)}},
			[]string{"status: want [1], got [1,3]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Case{Output: tc.output}
			if diff := cmp.Diff(tc.want, c.Compare(tc.answer)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCompareBounds has an answer that differs in many places, and in a long value.
func TestCompareBounds(t *testing.T) {
	many := map[string]any{}
	for _, letter := range "abcdefghij" {
		many[string(letter)] = int64(1)
	}
	c := &Case{Output: map[string]any{"status": many}}
	got := c.Compare(explore.Answer{})
	if len(got) != 9 || got[0] != "status.a: want 1, got nothing" || got[7] != "status.h: want 1, got nothing" || got[8] != "and 2 more" {
		t.Errorf("ten differences are reported as %q", got)
	}
	delete(many, "i")
	delete(many, "j")
	if got := c.Compare(explore.Answer{}); len(got) != 8 || got[7] != "status.h: want 1, got nothing" {
		t.Errorf("eight differences are reported as %q", got)
	}
	c.Output = map[string]any{"status": strings.Repeat("x", 1000)}
	if got := c.Compare(explore.Answer{}); len(got) != 1 || len(got[0]) > 200 {
		t.Errorf("a long value is reported as %q", got)
	}
}
