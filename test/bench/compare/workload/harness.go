package workload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// harness lets a benchmark use helpers of tests. What would fail a test is a panic with a failure, which try returns as an error.
type harness struct {
	testing.TB

	ctx    context.Context
	dir    string
	ends   []func()
	failed bool
}

// failure is the error of a helper.
type failure struct{ error }

// try runs a benchmark that uses helpers of tests, and ends what they have begun. Their files are in a folder.
func try(ctx context.Context, dir string, run func(testing.TB) error) (err error) {
	h := &harness{ctx: ctx, dir: dir}
	defer func() {
		h.failed = err != nil
		for _, end := range slices.Backward(h.ends) {
			end()
		}
	}()
	defer func() {
		r := recover()
		f, failed := r.(failure)
		switch {
		case failed:
			err = f.error
		case r != nil:
			panic(r)
		}
	}()
	return run(h)
}

// Helper implements testing.TB.
func (h *harness) Helper() {}

// Context implements testing.TB.
func (h *harness) Context() context.Context { return h.ctx }

// Cleanup implements testing.TB.
func (h *harness) Cleanup(end func()) { h.ends = append(h.ends, end) }

// Failed implements testing.TB.
func (h *harness) Failed() bool { return h.failed }

// Logf implements testing.TB.
func (h *harness) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// TempDir implements testing.TB.
func (h *harness) TempDir() string {
	dir, err := os.MkdirTemp(h.dir, "")
	if err != nil {
		h.Fatal(err)
	}
	return dir
}

// Fatal implements testing.TB.
func (h *harness) Fatal(args ...any) {
	panic(failure{errors.New(fmt.Sprint(args...))})
}

// Fatalf implements testing.TB.
func (h *harness) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }
