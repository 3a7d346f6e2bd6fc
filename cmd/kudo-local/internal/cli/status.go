package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kudo.dev/kudo/cmd/kudo-local/internal/plane"
)

func newStatus(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the components and whether they run; the exit code is 0 when all do",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.load(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			all, err := p.Status(cmd.Context())
			if err != nil {
				return err
			}
			if err := printStatus(cmd.OutOrStdout(), all); err != nil {
				return err
			}
			return o.componentError(p, all)
		},
	}
}

func printStatus(w io.Writer, all []plane.Status) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPID\tSTATE\tADDRESS")
	for _, s := range all {
		pid := "-"
		if s.PID != 0 {
			pid = fmt.Sprint(s.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Component, pid, s.State, s.Address)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	for _, s := range all {
		switch s.State {
		case plane.Dead:
			fmt.Fprintf(w, "\n%s has died. The end of its log:\n    %s\n", s.Component, strings.ReplaceAll(s.Detail, "\n", "\n    "))
		case plane.NotReady:
			fmt.Fprintf(w, "\n%s is not ready: %s\n", s.Component, s.Detail)
		}
	}
	return nil
}

// componentError returns an error that names the components that do not run, and the remedy; nil if all run.
func (o *options) componentError(p *plane.Plane, all []plane.Status) error {
	var bad []string
	for _, s := range all {
		if s.State != plane.Running {
			bad = append(bad, fmt.Sprintf("%s is %s", s.Component, s.State))
		}
	}
	switch len(bad) {
	case 0:
		return nil
	case len(all):
		return fmt.Errorf("instance %q does not run: start it with '%s'", p.Name, o.commandLine("up"))
	}
	return fmt.Errorf("%s: '%s' starts what is missing", strings.Join(bad, ", "), o.commandLine("up"))
}
