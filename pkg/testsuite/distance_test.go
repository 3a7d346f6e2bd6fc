package testsuite

import (
	"strings"
	"testing"
)

// TestDistance orders objects by how far they are from what is expected: the nearest one is shown.
func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		reason, want, have string
		distance           int
	}{
		{"the same", `{a: 1}`, `{a: 1}`, 0},
		{"one value", `{a: 1, b: 2}`, `{a: 1, b: 3}`, 1},
		{"two values", `{a: 1, b: 2}`, `{a: 2, b: 3}`, 2},
		{"a value that is missing weighs more", `{a: 1}`, `{}`, 2},
		{"a map that is missing by its values", `{a: {b: 1, c: [1, 2]}}`, `{}`, 4},
		{"an empty map that is missing", `{a: {}}`, `{}`, 1},
		{"a list of another length", `[1, 2]`, `[1]`, 1},
	} {
		if got := distance(Differences(value(t, tc.want), value(t, tc.have), "")); got != tc.distance {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.distance)
		}
	}
}

// TestLongDifferences bounds what a message shows of a value.
func TestLongDifferences(t *testing.T) {
	d := Difference{Path: ".a", Want: strings.Repeat("x", 5000), Have: []any{strings.Repeat("y", 5000)}}
	if got := d.String(); len(got) > 500 {
		t.Errorf("the message has %d bytes", len(got))
	}
	d.Missing = true
	if got := d.String(); len(got) > 300 || !strings.HasSuffix(got, ", is missing") {
		t.Errorf("of a missing value: %q", got)
	}
}

// TestTailOfOutput keeps the end of a command's output.
func TestTailOfOutput(t *testing.T) {
	out := &tail{}
	for range 3 {
		if n, err := out.Write([]byte(strings.Repeat("a", maxOutput-1) + "\n")); n != maxOutput || err != nil {
			t.Fatalf("wrote %d bytes: %v", n, err)
		}
	}
	if n, err := out.Write([]byte("end")); n != 3 || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	if got := out.String(); len(got) != maxOutput || !strings.HasSuffix(got, "a\nend") {
		t.Errorf("%d bytes are kept, which end with %q", len(got), got[len(got)-5:])
	}
}

// TestNamespacedFlags has commands that name a namespace themselves.
func TestNamespacedFlags(t *testing.T) {
	for in, want := range map[string]string{
		"kubectl get x --namespace=y": "kubectl get x --namespace=y", "kubectl -n=y get x": "kubectl -n=y get x",
		"kubectl get x -ny":          "kubectl get x -ny",
		"kubectl --namespace y get":  "kubectl --namespace y get",
		"kubectl get x --namespaced": "kubectl get x --namespaced --namespace ns", "kubectl": "kubectl --namespace ns",
		"-- a":           "-- a --namespace ns",
		"a -- -n x -- y": "a --namespace ns -- -n x -- y", "a -n y -- b": "a -n y -- b",
	} {
		if got := strings.Join(namespaced(strings.Fields(in), "ns"), " "); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
