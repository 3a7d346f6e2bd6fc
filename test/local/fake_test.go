package local

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeVariable makes the test binary act as kudo's manager.
const fakeVariable = "KUDO_LOCAL_TEST_FAKE"

// fakeManager serves the address that the arguments of the manager name.
func fakeManager(args []string) int {
	fmt.Println("fake manager", args)
	at := slices.Index(args, "--health-probe-bind-address")
	if at < 0 || at+1 >= len(args) {
		return 2
	}
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	fmt.Println(http.ListenAndServe(args[at+1], nil))
	return 1
}

// fakeKudo makes a folder with programs that keep to the contract between
// kudo-local and kudo, and do nothing else.
func fakeKudo(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(dir, "kubectl-kudo"), `#!/bin/sh
[ "$1 $2 $3" = "init --external-manager --webhook-url" ] || { echo "unexpected: $*" >&2; exit 1; }
[ "$5" = --manager-kubeconfig ] && [ "$7" = --wait ] || { echo "unexpected: $*" >&2; exit 1; }
cp "$KUBECONFIG" "$6"
`)
	writeProgram(t, filepath.Join(dir, "manager"), fmt.Sprintf("#!/bin/sh\n%s=manager exec '%s' \"$@\"\n", fakeVariable, self))
	return dir
}

func writeProgram(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}
