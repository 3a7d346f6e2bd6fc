package cli

import (
	"runtime"

	"github.com/spf13/cobra"
)

// Version of kudo; set by the linker.
var Version = "dev"

func (t *tool) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this command", Args: exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if output != "" {
				return t.printAny(output, map[string]any{"clientVersion": map[string]string{"gitVersion": Version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}})
			}
			t.say("kudo %s (%s, %s/%s)", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return cmd
}
