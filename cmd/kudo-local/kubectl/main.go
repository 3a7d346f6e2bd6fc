// Command kubectl is kubectl of the version of the control plane, so that nothing else needs to be installed. It is a program of its own:
// one that held the control plane too would take twice the time to start.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
