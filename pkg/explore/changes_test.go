package explore_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
)

func TestChangesOf(t *testing.T) {
	fields := func(pairs ...any) map[string]any {
		made := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			made[pairs[i].(string)] = pairs[i+1]
		}
		return made
	}
	for name, tc := range map[string]struct {
		reason   string
		from, to any
		want     []string
	}{
		"Same": {"what is equal", fields("a", int64(1), "b", nil), fields("a", 1.0, "c", []any{}), nil},
		"Order": {
			"paths in order",
			fields("b", int64(1), "a", int64(1)),
			fields("b", int64(2), "c", int64(1)),
			[]string{".a: 1 -> (none)", ".b: 1 -> 2", ".c: (none) -> 1"},
		},
		"Lists": {
			"entries of lists of one length",
			fields("l", []any{int64(1), int64(2)}),
			fields("l", []any{int64(1), int64(3)}),
			[]string{".l[1]: 2 -> 3"},
		},
		"Lengths": {
			"lists of two lengths as a whole",
			fields("l", []any{int64(1)}),
			fields("l", []any{int64(1), int64(2)}),
			[]string{".l: [1] -> [1,2]"},
		},
		"Types":   {"a map that becomes a text", fields("m", fields("a", int64(1))), fields("m", "x"), []string{`.m: {"a":1} -> "x"`}},
		"Absent":  {"a map that is removed", fields("m", fields("a", int64(1))), fields(), []string{`.m: {"a":1} -> (none)`}},
		"Escaped": {"a text with control characters", fields("a", "x"), fields("a", "\x1b[2J"), []string{`.a: "x" -> "\u001b[2J"`}},
		"Root":    {"values that are no maps", int64(1), int64(2), []string{": 1 -> 2"}},
		"NoJSON":  {"a value that JSON has not", fields("a", "x"), fields("a", complex(1, 2)), []string{`.a: "x" -> (1+2i)`}},
		"NotNone": {"an empty text is no none", fields(), fields("a", ""), []string{`.a: (none) -> ""`}},
		"DeepList": {
			"maps in lists in maps",
			fields("l", []any{[]any{fields("x", "a")}}),
			fields("l", []any{[]any{fields("x", "b")}}),
			[]string{`.l[0][0].x: "a" -> "b"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range explore.Changes(tc.from, tc.to) {
				got = append(got, fmt.Sprint(c))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseOperationNames(t *testing.T) {
	names := map[explore.Operation][]string{
		explore.Packing:           {"pack", "packing", "EXPLOREPACKING"},
		explore.Retaining:         {"retention", "retaining"},
		explore.Healthy:           {"health", "healthy", "exploreHealth"},
		explore.Dependencies:      {"dependency", "GetDependencies", "dependencies"},
		explore.Replica:           {"replicas", "GetReplicas", "replica"},
		explore.Components:        {"component", "components", "InterpretComponent", "GetComponents"},
		explore.ReplicaRevising:   {"replicaRevision", "replicarevising"},
		explore.Status:            {"ReflectStatus", "statusReflection", "status"},
		explore.StatusAggregating: {"statusAggregation", "statusaggregating"},
	}
	for want, all := range names {
		for _, name := range all {
			if got, err := explore.ParseOperation(name); got != want || err != nil {
				t.Errorf("%s is %q (%v), want %s", name, got, err, want)
			}
		}
	}
	for _, name := range []string{"", "explore", "exploreexplorepacking", " pack", "packs"} {
		want := fmt.Sprintf("operation %q is unknown: use one of %v", name, explore.Operations())
		if got, err := explore.ParseOperation(name); got != "" || fmt.Sprint(err) != want {
			t.Errorf("%q is %q, error %v, want %s", name, got, err, want)
		}
	}
}
