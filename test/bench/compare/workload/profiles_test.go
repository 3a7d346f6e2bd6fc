package workload

import (
	"slices"
	"strings"
	"testing"
)

func TestOwner(t *testing.T) {
	for _, c := range []struct{ want, stack string }{
		{"encoding/json", "runtime.memmove bytes.(*Buffer).Write encoding/json.(*encodeState).marshal kudo.dev/kudo/pkg/apply.Hash"},
		{"kudo.dev/kudo/pkg/apply", "strings.Index kudo.dev/kudo/pkg/apply.(*Applier).Apply.func1 kudo.dev/kudo/pkg/runner.run"},
		{"garbage collection", "runtime.scanobject runtime.gcDrain runtime.gcBgMarkWorker"},
		{"scheduling of goroutines", "runtime.futex runtime.schedule runtime.mcall"},
		{"sigs.k8s.io/yaml", "runtime.mallocgc sigs.k8s.io/yaml.Unmarshal"},
	} {
		if got := owner(strings.Fields(c.stack)); got != c.want {
			t.Errorf("%s: %q, want %q", c.stack, got, c.want)
		}
	}
}

func TestReadInitTrace(t *testing.T) {
	into := map[string][]float64{}
	text := "init encoding/gob @4.1 ms, 2.5 ms clock, 314112 bytes, 2000 allocs\nanother line\ninit encoding/gob @5 ms, 3 ms clock, 1 bytes, 1 allocs\n"
	if err := readInitTrace(strings.NewReader(text), into); err != nil || !slices.Equal(into["encoding/gob"], []float64{2.5, 3}) || len(into) != 1 {
		t.Errorf("got %v, %v", into, err)
	}
	if err := readInitTrace(strings.NewReader("init a @1 ms, x ms clock, 1 bytes"), into); err == nil {
		t.Error("a malformed time is not an error")
	}
}
