package crdtarball

import (
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/test/sourcetree"
)

var _ = It("The package of the catalog that uses tarballs does what its README says, with two application versions", Label("slow"), func() {
	t := GinkgoTB()
	cmd := exec.Command(filepath.Join(suite.Bin, "kubectl-kudo"), "test", filepath.Join(sourcetree.Root(), "operators", "catalog", "printshop", "tests"), "--timeout", "120")
	cmd.Env = append(cmd.Environ(), "PATH="+suite.Path(), "KUBECONFIG="+suite.Kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
})
