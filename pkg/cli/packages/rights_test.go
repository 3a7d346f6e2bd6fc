package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestRightsNamespace checks that the rights are those in the namespace that the user works in, as for all other commands.
func TestRightsNamespace(t *testing.T) {
	const folder = "../../../operators/catalog/hello/operator"
	file := filepath.Join(t.TempDir(), "config")
	for _, tc := range []struct {
		reason, kubeconfig string
		flags              []string
		want               string
	}{
		{"there is no kubeconfig", "", nil, "In namespace default:"},
		{"the context has a namespace", "{contexts: [{name: c, context: {namespace: team}}], current-context: c}", nil, "In namespace team:"},
		{"the flag wins", "{contexts: [{name: c, context: {namespace: team}}], current-context: c}", []string{"-n", "other"}, "In namespace other:"},
	} {
		if err := os.WriteFile(file, []byte(tc.kubeconfig), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KUBECONFIG", file)
		out, _ := commandtest.Expect(t, New, 0, "", append([]string{"package", "rights", folder}, tc.flags...)...)
		if !strings.HasPrefix(out, tc.want+"\n") {
			t.Errorf("%s: want %s, got\n%s", tc.reason, tc.want, out)
		}
	}
	if err := os.WriteFile(file, []byte("clusters: 5"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs := commandtest.Expect(t, New, command.ExitError, "", "package", "rights", folder); !strings.Contains(errs, file) {
		t.Errorf("a kubeconfig that cannot be read is not named:\n%s", errs)
	}
}
