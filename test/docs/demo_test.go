package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

// demoLimit is how long the demo may take beside other tests; alone, it takes a minute.
const demoLimit = 10 * time.Minute

// demo runs what make demo runs once all is built: it starts a control plane, installs a package for two teams, runs a plan by hand, and
// previews a removal. Any command that fails ends the demo.
func demo(t *testing.T) {
	t.Helper()
	state := t.TempDir()
	environment := append(os.Environ(), "KUDO_LOCAL_STATE="+state)
	t.Cleanup(func() {
		down := exec.Command(filepath.Join(suite.Bin, "kudo-local"), "down", "--name", "demo", "--delete")
		down.Env = environment
		if out, err := down.CombinedOutput(); err != nil {
			t.Errorf("stop the demo: %v: %s", err, out)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), demoLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(sourcetree.Root(), "hack", "demo.sh"))
	cmd.Env = environment
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the demo failed: %v\n%s", err, out)
	}
	env.Contains(t, string(out), "Plan backup", "[COMPLETE]", "make demo-down")
}
