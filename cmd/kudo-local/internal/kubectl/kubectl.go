// Package kubectl is kubectl itself: called by that name, kudo-local is the client of the cluster that it runs, so that
// nothing else needs to be installed.
package kubectl

import (
	"os"
	"path/filepath"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Called reports whether the program was called as kubectl.
func Called() bool { return filepath.Base(os.Args[0]) == "kubectl" }

// Main runs kubectl with the program's arguments and does not return.
func Main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	os.Exit(0)
}
