package instance

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Lock keeps other runs of this program from changing the named instance until
// the returned function is called. The lock is a file of its own, outside of
// the folder of the instance, which may be deleted under it.
func Lock(ctx context.Context, root, name string, progress io.Writer) (unlock func(), err error) {
	return lock(ctx, filepath.Join(root, ".locks", name), fmt.Sprintf("instance %q", name), progress)
}

// LockPorts keeps other runs from choosing ports.
func LockPorts(ctx context.Context, root string, progress io.Writer) (unlock func(), err error) {
	return lock(ctx, filepath.Join(root, ".locks", ".ports"), "the ports", progress)
}

func lock(ctx context.Context, path, what string, progress io.Writer) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for locks: %w", err)
	}
	l := flock.New(path)
	ok, err := l.TryLock()
	if err == nil && !ok {
		fmt.Fprintf(progress, "waiting for another kudo-local that works on %s…\n", what)
		ok, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if err != nil || !ok {
		return nil, fmt.Errorf("locking %s (%s): %w", what, path, err)
	}
	return func() { _ = l.Unlock() }, nil
}
