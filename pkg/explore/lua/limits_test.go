package lua

import (
	"testing"
	"time"

	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// TestDefaultLimits is what docs/explore.md promises.
func TestDefaultLimits(t *testing.T) {
	want := sandbox.Limits{Instructions: 1_000_000, Time: time.Second, Memory: 67_108_864, Output: 3_145_728, Depth: 100}
	if got := DefaultLimits(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
