package heap

import (
	"runtime/debug"
	"testing"
)

// TestRaise checks that the percentage is raised for the start, that the one of the user stays, and that Reset sets back what was before.
func TestRaise(t *testing.T) {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	defer debug.SetGCPercent(percent())
	for _, tc := range []struct {
		reason, chosen string
		want           int
	}{
		{"nothing is chosen", "", startPercent},
		{"the user has chosen", "70", 70},
	} {
		t.Setenv("GOGC", tc.chosen)
		debug.SetGCPercent(70)
		before = raise()
		if got := percent(); got != tc.want {
			t.Errorf("%s: the percentage is %d, want %d", tc.reason, got, tc.want)
		}
		Reset()
		if got := percent(); got != 70 {
			t.Errorf("%s: after Reset, the percentage is %d", tc.reason, got)
		}
	}
}
