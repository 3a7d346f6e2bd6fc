package upgrade

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = Describe("The version before this one", func() {
	It("has the definitions that those of this version are compared with (R20)", func() {
		t := GinkgoTB()
		files, err := filepath.Glob(filepath.Join(sourcetree.Root(), "pkg/cli/packages/testdata/released", earlierCommit[:7], "*.yaml"))
		env.Must(t, err)
		out, err := exec.Command("git", "-C", sourcetree.Root(), "ls-tree", "--name-only", earlierCommit, "manifests/crds/").Output()
		env.Must(t, err)
		if names := strings.Fields(string(out)); len(names) != len(files) {
			t.Errorf("R20: commit %s has the definitions %v, and testdata has %v", earlierCommit, names, files)
		}
		for _, file := range files {
			kept, err := os.ReadFile(file)
			env.Must(t, err)
			out, err := exec.Command("git", "-C", sourcetree.Root(), "show", earlierCommit+":manifests/crds/"+filepath.Base(file)).Output()
			env.Must(t, err)
			if string(out) != string(kept) {
				t.Errorf("R20: %s is not that of commit %s", file, earlierCommit)
			}
		}
	})

	It("is said to need the history of the clone", func() {
		t := GinkgoTB()
		tree := filepath.Join(t.TempDir(), "tree")
		err := addWorktree(sourcetree.Root(), tree, strings.Repeat("0", 40))
		if err == nil || !strings.Contains(err.Error(), "git fetch --unshallow") {
			t.Errorf("a commit that is not there: %v", err)
		}
	})
})
