// Command kubectl-kudo is the kubectl plugin of kudo.
package main

import (
	"os"
	_ "time/tzdata" // not each machine has the time zones that schedules name

	"kudo.dev/kudo/pkg/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
