package upgrade

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

// The version before this one. As long as none is released, it is a commit; the versions are those that the command lines say. Whoever
// releases a version names it here, and keeps its CustomResourceDefinitions (pkg/cli/packages/testdata/released) and its records
// (pkg/history/testdata): docs/design/release.md.
const (
	earlierCommit  = "54c471651adda2ea3238f9871f79fc34774affec"
	earlierVersion = "v0.3.0"
	currentVersion = "v0.4.0"
)

// version is the programs of a version, in a folder.
type version struct{ Name, Bin string }

// kudo runs the command line of the version, and wants an exit code.
func (v version) kudo(t testing.TB, code int, args ...string) string {
	t.Helper()
	return (&env.Env{Bin: v.Bin, Kubeconfig: suite.Kubeconfig}).MustKudo(t, code, args...)
}

// build builds the programs of a source tree, whose command line says a version.
func build(tree, bin, version string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X kudo.dev/kudo/pkg/cli/command.Version="+version,
		"-o", bin+string(filepath.Separator), "./cmd/manager", "./cmd/kubectl-kudo")
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s in %s: %w\n%s", version, tree, err, out)
	}
	return nil
}

// cacheDir is the folder in which the Makefile keeps kudo-local, too.
func cacheDir() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "kudo"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".cache", "kudo"), err
}

// earlierPrograms returns the folder of the programs of a commit. They are built once, in a worktree, and kept in the cache.
func earlierPrograms(commit, version string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	kept := filepath.Join(cache, fmt.Sprintf("kudo-%s-%s-%s", version, commit[:12], runtime.Version()))
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		return kept, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "build-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, bin := filepath.Join(dir, "tree"), filepath.Join(dir, "bin")
	if err := addWorktree(sourcetree.Root(), tree, commit); err != nil {
		return "", err
	}
	err = errors.Join(build(tree, bin, version), git(sourcetree.Root(), "worktree", "remove", "--force", tree))
	if err != nil {
		return "", err
	}
	if err := os.Rename(bin, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another run may have built them meanwhile
		return "", err
	}
	return kept, nil
}

// addWorktree checks a commit out into a folder of its own.
func addWorktree(root, tree, commit string) error {
	if err := git(root, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return fmt.Errorf("the commit %s, of which the version before this one is built, is not in %s: a clone without its history needs "+
			"git fetch --unshallow, and a source tree without git a clone: %w", commit, root, err)
	}
	return git(root, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--force", tree, commit)
}

func git(root string, args ...string) error {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %w\n%s", args, err, out)
	}
	return nil
}
