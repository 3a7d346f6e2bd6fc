package crdtarball

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// The test binary plays a process of its own when these are set.
const (
	childDir  = "KUDO_TEST_CRDS_DIR"
	childWhat = "KUDO_TEST_CRDS_WHAT"
	childStep = "KUDO_TEST_CRDS_STEP"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir, os.Getenv(childWhat), os.Getenv(childStep)))
	}
	os.Exit(m.Run())
}

// child fetches into a cache and kills itself at a step. It prints the steps that it comes to.
func child(dir, what, at string) int {
	die := func(step string) {
		fmt.Println(step)
		if step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	c, err := Open(Options{Dir: dir, Retry: quick(1), step: die})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	data, err := os.ReadFile(what)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if at == "limit" {
		// No file of this process becomes larger, as on a full disk; the signal that would end it is ignored by Go.
		limit := syscall.Rlimit{Cur: uint64(len(data)) / 2, Max: uint64(len(data)) / 2}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	_, err = c.Resolve(context.Background(), Request{Source: &rawSource{data: data}, Policy: v1beta1.DownloadAlways})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func runChild(t *testing.T, dir, what, step string) (output string, killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childWhat+"="+what, childStep+"="+step)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status, ok := exit.Sys().(syscall.WaitStatus)
		return string(out), ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	return string(out), false
}

// TestKill ends a process at each step of publishing: a first entry, a newer one, and one in place of a damaged one.
// The next start finds the old whole entry, the new whole entry, or (if there was none) none; and no leftovers.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	oldData, newData := tarball(t, "a.example.org"), tarball(t, "b.example.org")
	oldFile, newFile := write("old", oldData), write("new", newData)
	for name, tc := range map[string]struct {
		prepare func(t *testing.T, cache string)
	}{
		"First": {func(*testing.T, string) {}},
		"Newer": {func(t *testing.T, cache string) { runChild(t, cache, oldFile, "") }},
		"Damaged": {func(t *testing.T, cache string) {
			runChild(t, cache, oldFile, "")
			if err := os.Remove(filepath.Join(cache, Key("raw:"), metaName)); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			tc.prepare(t, cache)
			all, killed := runChild(t, cache, newFile, "no such step")
			steps := strings.Fields(strings.ReplaceAll(strings.TrimSpace(all), " ", "_"))
			if killed || len(steps) < 7 || steps[len(steps)-1] != "done" {
				t.Fatalf("steps %q", all)
			}
			for _, step := range steps {
				step = strings.ReplaceAll(step, "_", " ")
				cache := filepath.Join(t.TempDir(), "cache")
				tc.prepare(t, cache)
				if out, killed := runChild(t, cache, newFile, step); !killed {
					t.Fatalf("at %q it was not killed: %s", step, out)
				}
				checkAfterKill(t, cache, step, name)
			}
		})
	}
}

func checkAfterKill(t *testing.T, dir, step, name string) {
	t.Helper()
	c := openCache(t, dir)
	if left := leftovers(t, dir); left != nil {
		t.Errorf("killed at %q: left over %v", step, left)
	}
	got, err := c.Resolve(context.Background(), Request{Source: &rawSource{}, Policy: v1beta1.DownloadNever})
	switch {
	case err != nil && name == "Newer":
		t.Errorf("killed at %q: the good copy is lost: %v", step, err)
	case err != nil && name == "First" && !strings.Contains(err.Error(), "does not have it"):
		t.Errorf("killed at %q: half an entry: %v", step, err)
	case err == nil:
		if spare := c.unreferencedFiles(got.Key, mustMeta(t, c, got.Key).Content); spare != nil {
			t.Errorf("killed at %q: spare %v", step, spare)
		}
		if len(got.Names) != 1 || step == "done" && got.Names[0] != "b.example.org" {
			t.Errorf("killed at %q: %+v", step, got)
		}
	}
	resolve(t, c, &rawSource{data: tarball(t, "c.example.org")}, v1beta1.DownloadAlways)
}

// TestKillEviction ends a process in the middle of removing an entry.
func TestKillEviction(t *testing.T) {
	dir := t.TempDir()
	c := openCache(t, dir)
	resolve(t, c, &rawSource{data: tarball(t, "a.example.org")}, "")
	failing := openCache(t, dir, func(o *Options) {
		o.step = func(step string) {
			if step == "set aside" {
				panic(step)
			}
		}
	})
	func() {
		defer func() { _ = recover() }()
		_ = failing.Remove(Key("raw:"))
	}()
	refuse(t, openCache(t, dir), &rawSource{}, v1beta1.DownloadNever, ReasonNotCached, "does not have it")
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestFileSizeLimit needs no privilege: the process may write half the tarball only.
func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	what := filepath.Join(dir, "tarball")
	if err := os.WriteFile(what, tarball(t, "a.example.org", "b.example.org", "c.example.org"), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "cache")
	out, killed := runChild(t, cache, what, "limit")
	if killed || !strings.Contains(out, "take no file of that size") {
		t.Errorf("the error says so: %s", out)
	}
	checkNothing(t, cache)
}

// mountTmpfs mounts a disk of some size for the time of a test. Where that is not allowed, the test is skipped, but not in CI, which is
// root.
func mountTmpfs(t *testing.T, dir, size string) {
	t.Helper()
	switch err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size); {
	case err != nil && os.Getenv("CI") != "":
		t.Fatalf("a tmpfs cannot be mounted in CI: %v", err)
	case err != nil:
		t.Skipf("a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// TestDiskFull fills a small tmpfs: with the tarball, with what it unpacks to, and while a good copy is there.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	mountTmpfs(t, dir, "size=256k")
	cache := filepath.Join(dir, "cache")
	small := tarball(t, "a.example.org")
	large := pack(t, file("a.yaml", crd("a.example.org")), file("fill", strings.Repeat("some text ", 80_000)))
	c := openCache(t, cache)
	e := refuse(t, c, &rawSource{data: large}, "", ReasonDisk, "the disk of the cache folder is full")
	if !errors.Is(e, syscall.ENOSPC) {
		t.Errorf("the cause is kept: %v", e)
	}
	checkNothing(t, cache)
	refuse(t, c, &rawSource{data: make([]byte, 1<<20)}, "", ReasonDisk, "the disk of the cache folder is full")
	checkNothing(t, cache)
	resolve(t, c, &rawSource{data: small}, "")
	got := resolve(t, c, &rawSource{data: large}, v1beta1.DownloadAlways)
	if got.Stale == nil || !strings.Contains(got.Stale.Error(), "is full") || got.Digest != "sha256:"+sum(small) {
		t.Errorf("the good copy stays: %+v", got)
	}
	if left := leftovers(t, cache); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestReadOnlyDisk uses a cache on a disk that nothing can be written to.
func TestReadOnlyDisk(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	mountTmpfs(t, dir, "size=1m")
	resolve(t, openCache(t, cache), &rawSource{data: tarball(t, "a.example.org")}, "")
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	c := openCache(t, cache)
	for _, policy := range []v1beta1.CRDDownloadPolicy{v1beta1.DownloadNever, v1beta1.DownloadIfNotPresent} {
		resolve(t, c, &rawSource{}, policy)
	}
	if got := resolve(t, c, &rawSource{}, v1beta1.DownloadAlways); got.Stale == nil || !strings.Contains(got.Stale.Error(), "is read-only") {
		t.Errorf("what cannot be refreshed is stale: %+v", got)
	}
	refuse(t, c, &rawSource{identity: "other"}, "", ReasonDisk, "the cache folder is read-only")
	var e *Error
	if err := c.Remove(Key("raw:")); !errors.As(err, &e) || !strings.Contains(err.Error(), "is read-only") {
		t.Errorf("nothing can be removed: %v", err)
	}
	if _, err := Open(Options{Dir: filepath.Join(dir, "new")}); err == nil || !strings.Contains(err.Error(), "is read-only") {
		t.Errorf("a new folder cannot be made: %v", err)
	}
}
