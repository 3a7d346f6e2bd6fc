package cases

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// TestItemsOfCases (C59) reads status items.
func TestItemsOfCases(t *testing.T) {
	type fields = map[string]any
	for name, tc := range map[string]struct {
		reason   string
		value    any
		want     []v1alpha1.AggregatedStatusItem
		warnings []string
		err      string
	}{
		"Nil": {
			reason: "nil is nil",
		},
		"Empty": {
			reason: "an empty list is one",
			value:  []any{},
			want:   []v1alpha1.AggregatedStatusItem{},
		},
		"Whole": {
			reason: "all fields",
			value: []any{fields{
				"clusterName":    "a",
				"status":         fields{"n": int64(1)},
				"applied":        true,
				"appliedMessage": "m",
				"health":         "Unhealthy",
			}},
			want: []v1alpha1.AggregatedStatusItem{{
				ClusterName:    "a",
				Status:         &runtime.RawExtension{Raw: []byte(`{"n":1}`)},
				Applied:        true,
				AppliedMessage: "m",
				Health:         v1alpha1.CopyUnhealthy,
			}},
		},
		"Nulls": {
			reason: "null is nothing",
			value:  []any{fields{"clusterName": nil, "status": nil, "applied": nil, "appliedMessage": nil, "health": nil}},
			want:   []v1alpha1.AggregatedStatusItem{{}},
		},
		"Unknown": {
			reason: "unknown fields are named, in order",
			value:  []any{fields{"b": int64(1), "a": int64(1)}},
			want:   []v1alpha1.AggregatedStatusItem{{}},
			warnings: []string{
				"statusItems[0].a is unknown: use clusterName, status, applied, appliedMessage or health",
				"statusItems[0].b is unknown: use clusterName, status, applied, appliedMessage or health",
			},
		},
		"Name": {
			reason: "names are texts",
			value:  []any{fields{"clusterName": int64(1)}},
			err:    "statusItems[0].clusterName must be a text",
		},
		"Message": {
			reason: "messages, too",
			value:  []any{fields{}, fields{"appliedMessage": []any{}}},
			err:    "statusItems[1].appliedMessage must be a text",
		},
		"Health": {
			reason: "health has three values",
			value:  []any{fields{"health": "Failed"}},
			err:    "statusItems[0].health must be Healthy, Unhealthy or Unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			items, warnings, err := Items(tc.value)
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
			if diff := cmp.Diff(tc.want, items); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s: warnings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMatched (C56) compares lists as sets.
func TestMatched(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		want, got []any
		same      bool
	}{
		"Order": {
			reason: "in any order",
			want:   []any{"a", "b"},
			got:    []any{"b", "a"},
			same:   true,
		},
		"Twice": {
			reason: "equal ones are one, on both sides",
			want:   []any{"a", "b", "a"},
			got:    []any{"b", "b", "a"},
			same:   true,
		},
		"Excluded": {
			reason: "a value that does not matter fits what others leave",
			want:   []any{Excluded, "a"},
			got:    []any{"a", "b"},
			same:   true,
		},
		"Missing": {
			reason: "one that is missing",
			want:   []any{"a", "b"},
			got:    []any{"a"},
		},
		"More": {
			reason: "one that is not expected",
			want:   []any{"a"},
			got:    []any{"a", "b"},
		},
		"None": {
			reason: "two empty lists",
			want:   []any{},
			got:    []any{},
			same:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := matched(tc.want, tc.got)
			if found := differences("x", want, got); (len(found) == 0) != tc.same {
				t.Errorf("%s: %v", tc.reason, found)
			}
		})
	}
}

// TestByName (C54) compares components by their names, and empty values as absent ones.
func TestByName(t *testing.T) {
	type fields = map[string]any
	for name, tc := range map[string]struct {
		reason    string
		want, got any
		same      bool
	}{
		"Order": {
			reason: "in any order",
			want:   []any{fields{"name": "a", "replicas": int64(1)}, fields{"name": "b", "replicas": int64(2)}},
			got:    []any{fields{"name": "b", "replicas": int64(2)}, fields{"name": "a", "replicas": int64(1)}},
			same:   true,
		},
		"Zero": {
			reason: "no number is 0",
			want:   []any{fields{"name": "a"}},
			got:    []any{fields{"name": "a", "replicas": int64(0)}},
			same:   true,
		},
		"DeepEmpty": {
			reason: "requirements that say nothing are none",
			want:   []any{fields{"name": "a"}},
			got:    []any{fields{"name": "a", "replicaRequirements": fields{"nodeClaim": fields{"tolerations": []any{}}}}},
			same:   true,
		},
		"Quantities": {
			reason: "quantities go by their value",
			want:   []any{fields{"name": "a", "replicaRequirements": fields{"resourceRequest": fields{"cpu": int64(1)}}}},
			got:    []any{fields{"name": "a", "replicaRequirements": fields{"resourceRequest": fields{"cpu": "1000m"}}}},
			same:   true,
		},
		"OtherQuantity": {
			reason: "which may differ",
			want:   []any{fields{"name": "a", "replicaRequirements": fields{"resourceRequest": fields{"cpu": "2"}}}},
			got:    []any{fields{"name": "a", "replicaRequirements": fields{"resourceRequest": fields{"cpu": "1000m"}}}},
		},
		"Missing": {
			reason: "a component that is missing",
			want:   []any{fields{"name": "a"}, fields{"name": "b"}},
			got:    []any{fields{"name": "a"}},
		},
		"Twice": {
			reason: "an expected name that stands twice fits nothing",
			want:   []any{fields{"name": "a"}, fields{"name": "a"}},
			got:    []any{fields{"name": "a"}},
		},
		"NoMap": {
			reason: "nor does what is no component",
			want:   []any{"a"},
			got:    []any{fields{"name": "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if found := differences("x", byName(tc.want), byName(tc.got)); (len(found) == 0) != tc.same {
				t.Errorf("%s: %v", tc.reason, found)
			}
		})
	}
}
