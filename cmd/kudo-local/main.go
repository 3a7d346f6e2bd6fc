// Command kudo-local runs a real Kubernetes control plane on this machine,
// from one binary, so that operator packages can be tried and tested without
// a container runtime and without a download.
package main

import (
	"os"

	"kudo.dev/kudo/cmd/kudo-local/internal/cli"
	"kudo.dev/kudo/cmd/kudo-local/internal/components"
)

func main() {
	if name, args, ok := components.FromArgs(os.Args); ok {
		os.Exit(components.Run(name, args))
	}
	os.Exit(cli.Main())
}
