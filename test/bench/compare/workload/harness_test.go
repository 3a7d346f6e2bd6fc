package workload

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTry checks that what would fail a test is an error of a benchmark, and that all ends in the order of a test.
func TestTry(t *testing.T) {
	var ended []string
	run := func(work func(testing.TB)) error {
		ended = nil
		return try(t.Context(), t.TempDir(), func(h testing.TB) error {
			h.Cleanup(func() { ended = append(ended, "first") })
			h.Cleanup(func() { ended = append(ended, "second") })
			work(h)
			return nil
		})
	}
	if err := run(func(h testing.TB) {
		if err := os.WriteFile(filepath.Join(h.TempDir(), "file"), nil, 0o600); err != nil || h.Context() != t.Context() {
			h.Fatal(err)
		}
	}); err != nil || !slices.Equal(ended, []string{"second", "first"}) {
		t.Errorf("%v, and these ended: %v", err, ended)
	}
	failed := false
	if err := run(func(h testing.TB) {
		h.Cleanup(func() { failed = h.Failed() })
		h.Fatalf("no %s", "cluster")
	}); err == nil || err.Error() != "no cluster" || !failed || len(ended) != 2 {
		t.Errorf("%v, and these ended: %v", err, ended)
	}
	defer func() {
		if r := recover(); r != "a defect" || len(ended) != 2 {
			t.Errorf("the panic is %v, and these ended: %v", r, ended)
		}
	}()
	_ = run(func(testing.TB) { panic("a defect") })
}
