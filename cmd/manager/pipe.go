package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"kudo.dev/kudo/pkg/runner"
)

// pipe is what the manager's program does in the pods of Pipe tasks: it waits until it is stopped, or prints a file. It returns
// the exit code.
func pipe(ctx context.Context, out, problems io.Writer, args []string) int {
	switch {
	case len(args) == 1 && args[0] == runner.PipeWait:
		<-ctx.Done()
		return 0
	case len(args) == 2 && args[0] == runner.PipeRead:
		if err := printFile(out, args[1]); err != nil {
			fmt.Fprintln(problems, err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(problems, "usage: manager %s %s | %s FILE\n", runner.PipeCommand, runner.PipeWait, runner.PipeRead)
	return 2
}

func printFile(out io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(out, file)
	return err
}
