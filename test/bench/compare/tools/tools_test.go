package tools

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for _, c := range []struct {
		reason, script, want string
	}{
		{"a command's cluster is that of the benchmark", `test "$KUBECONFIG" = k`, ""},
		{"what a tool keeps for itself is kept apart", `test "$HOME" = h && test "$XDG_CACHE_HOME" = h/cache`, ""},
		{"a failure tells the end of what was printed", "echo some reason; exit 3", "some reason"},
	} {
		_, err := Run(t.Context(), "k", "h", []string{"sh", "-c", c.script})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestAllDoTheSame(t *testing.T) {
	all, err := All(Programs{Kudo: "kudo", Kubectl: "kubectl", Helm: "helm", SSA: "ssa"}, t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 || !strings.Contains(all[0].Name(), "kudo") {
		t.Fatalf("kudo is the first of four, since the others are compared with it: %v", all)
	}
	for _, tool := range all {
		c := tool.Commands("ns")
		for _, command := range [][]string{c.Install, c.Again, c.Change} {
			if !strings.Contains(strings.Join(command, " "), "-n ns") {
				t.Errorf("%s works in another namespace: %v", tool.Name(), command)
			}
		}
	}
}
