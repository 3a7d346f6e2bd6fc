package cli

import (
	"context"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
)

// Version of kudo; set by the linker.
var Version = "dev"

func (t *tool) versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this command, and the mode of kudo on the cluster", Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			mode := t.clusterMode(cmd.Context())
			if output != "" {
				out := map[string]any{"clientVersion": map[string]string{"gitVersion": Version, "goVersion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}}
				if mode != "" {
					out["mode"] = mode
				}
				return t.printAny(output, out)
			}
			t.say("kudo %s (%s, %s/%s)", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if mode != "" {
				t.say("mode: %s", mode)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return cmd
}

// clusterMode says with whose rights plans run on the cluster; empty if there is none, or this user may not know.
func (t *tool) clusterMode(ctx context.Context) string {
	c, _, _, err := t.connect()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	now, known := readSettings(ctx, c)
	if !known {
		return ""
	}
	if now.Mode == settings.Privileged {
		return string(settings.Privileged) + ", all namespaces"
	}
	list := &corev1.NamespaceList{}
	if err := c.List(ctx, list, client.MatchingLabels{v1beta1.PrivilegedLabel: "true"}); err != nil || len(list.Items) == 0 {
		return string(now.Mode)
	}
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
	}
	return string(now.Mode) + ", privileged in " + strings.Join(names, ", ")
}
