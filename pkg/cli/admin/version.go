package admin

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/settings"
)

// signingKey is the public key by which users verify the release of this build: a PKIX key in DER and base64. The linker sets it.
var signingKey string

// NewVersion returns the command version.
func NewVersion(env *command.Env) *cobra.Command {
	var output string
	var key bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of this command, and the mode of kudo on the cluster",
		Args: command.ExactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.CheckFormat(output); err != nil {
				return err
			}
			if key {
				return printSigningKey(env)
			}
			mode := clusterMode(cmd.Context(), env)
			if output != "" {
				out := map[string]any{"clientVersion": map[string]string{"gitVersion": command.Version, "goVersion": runtime.Version(),
					"platform": runtime.GOOS + "/" + runtime.GOARCH}}
				if mode != "" {
					out["mode"] = mode
				}
				if kudoinit.Image != "" {
					out["managerImage"] = kudoinit.Image
				}
				return env.PrintValue(output, out)
			}
			env.Printf("kudo %s (%s, %s/%s)", command.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if kudoinit.Image != "" {
				env.Printf("image of the manager: %s", kudoinit.Image)
			}
			if mode != "" {
				env.Printf("mode: %s", mode)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	cmd.Flags().BoolVar(&key, "key", false, "print the public key that the release of this command is verified with, in PEM")
	cmd.MarkFlagsMutuallyExclusive("output", "key")
	return cmd
}

func printSigningKey(env *command.Env) error {
	if signingKey == "" {
		return errors.New("this build of kubectl kudo has no public key: use a signed release, or take the key from SECURITY.md in the " +
			"sources of the release")
	}
	der, err := base64.StdEncoding.DecodeString(signingKey)
	if err != nil {
		return fmt.Errorf("decode the public key of this build: %w: build it by make release", err)
	}
	return env.Print(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}

// settingsTimeout is how long the command waits for a cluster that may not answer.
const settingsTimeout = 5 * time.Second

// clusterMode says with whose rights plans run on the cluster; empty if there is none, or this user may not know.
func clusterMode(ctx context.Context, env *command.Env) string {
	c, _, _, err := env.Connect()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, settingsTimeout)
	defer cancel()
	now, known := kudoinit.ReadSettings(ctx, c)
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
