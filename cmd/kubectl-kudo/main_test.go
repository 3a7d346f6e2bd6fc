package main

import (
	"os"
	"runtime/debug"
	"testing"

	"kudo.dev/kudo/pkg/cli/heap"
)

// collections is how often the garbage collector has run before main.
var collections int64

func TestMain(m *testing.M) {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	collections = stats.NumGC
	heap.Reset()
	os.Exit(m.Run())
}

// TestStart checks that the packages of the command are initialized without a garbage collection, which would take a third of the time in
// which it starts.
func TestStart(t *testing.T) {
	if os.Getenv("GOGC") == "" && collections > 0 {
		t.Errorf("the garbage collector has run %d times before main", collections)
	}
}
