package command_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestNewInstanceCommand checks that a command about an Instance finds it by its flag and by its argument, and names what is missing.
func TestNewInstanceCommand(t *testing.T) {
	server := apitest.Start(t)
	server.Put(gen.Instance("book", gen.Version("lab", "guestbook-1"), nil))
	t.Setenv("KUBECONFIG", server.Kubeconfig(t, "lab"))
	t.Setenv("KUDO_HOME", t.TempDir())
	var found string
	root := func(env *command.Env) *cobra.Command {
		return command.NewInstanceCommand(env, "name NAME", "Print the name", func(_ context.Context, _ client.WithWatch, i *v1beta1.Instance) error {
			found = i.Namespace + "/" + i.Name
			if i.Name != "book" {
				return errors.New("another Instance was found")
			}
			return nil
		})
	}
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"by its argument", []string{"name", "book"}, 0, ""},
		{"by its flag", []string{"name", "--instance", "book"}, 0, ""},
		{"no name", []string{"name"}, command.ExitUsage, "--instance"},
		{"one that does not exist", []string{"name", "page"}, 1, "page"},
	} {
		found = ""
		_, errs := commandtest.Expect(t, root, tc.code, "", tc.args...)
		if !strings.Contains(errs, tc.want) || (found == "lab/book") != (tc.code == 0) {
			t.Errorf("%s: found %q, and the command says %q", tc.reason, found, errs)
		}
	}
}
