package main

import (
	"runtime/debug"
	"testing"
)

// TestLimitMemory checks R27: the limit of Go's memory follows from that of the container.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, tc := range []struct {
		reason, container, given string
		want                     int64
	}{
		{"nine tenths of 1Gi", "1073741824", "", 966367638 / 9 * 9},
		{"a limit that an administrator has given wins", "1073741824", "800MiB", 0},
		{"no limit", "", "", 0},
		{"no number", "1Gi", "", 0},
		{"nothing", "0", "", 0},
		{"less than nothing", "-1", "", 0},
	} {
		debug.SetMemoryLimit(before)
		if got := limitMemory(tc.container, tc.given); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
		want := before
		if tc.want > 0 {
			want = tc.want
		}
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("%s: the limit is %d, want %d", tc.reason, got, want)
		}
	}
}
