// Command kubectl-kudo is the kubectl plugin of kudo.
package main

import (
	"os"
	_ "time/tzdata" // not each machine has the time zones that schedules name

	"kudo.dev/kudo/pkg/cli"
	"kudo.dev/kudo/pkg/cli/heap"
)

func main() {
	heap.Reset()
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
