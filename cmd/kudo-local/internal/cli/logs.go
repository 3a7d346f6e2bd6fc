package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

func newLogs(o *options) *cobra.Command {
	var follow bool
	var tail int
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Print the log of a component since its last start",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.load(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if names := append(p.Components(), p.NodeServers()...); !slices.Contains(names, args[0]) {
				return fmt.Errorf("instance %q has no component %q: it has %s", p.Name, args[0], strings.Join(names, ", "))
			}
			end, offset, err := plane.Tail(p.Log(args[0]), tail)
			if err != nil {
				return err
			}
			if _, err := cmd.OutOrStdout().Write(end); err != nil || !follow {
				return err
			}
			return followFile(cmd.Context(), cmd.OutOrStdout(), p.Log(args[0]), offset)
		},
		ValidArgsFunction: o.completeComponent,
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue to print what is written to it")
	cmd.Flags().IntVar(&tail, "tail", -1, "number of lines from its end (default all)")
	return cmd
}

// followFile copies what is appended to a file until ctx ends. A component that
// is started again writes to a new file of the same name, which is followed
// from its beginning.
func followFile(ctx context.Context, w io.Writer, path string, offset int64) error {
	var last os.FileInfo
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if info, err := os.Stat(path); err == nil {
			if last != nil && !os.SameFile(last, info) {
				offset = 0
			}
			last = info
			n, err := copyFrom(w, path, offset)
			if err != nil {
				return err
			}
			offset += n
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func copyFrom(w io.Writer, path string, offset int64) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil // between two runs of the component
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, fmt.Errorf("reading the log: %w", err)
	}
	n, err := io.Copy(w, f)
	if err != nil {
		return n, fmt.Errorf("printing the log: %w", err)
	}
	return n, nil
}
