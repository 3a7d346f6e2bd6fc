package explore

import (
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestRunInputs checks which objects a question may be about.
func TestRunInputs(t *testing.T) {
	const object = "apiVersion: g/v1\nkind: K\nmetadata: {name: a}\n"
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, tc := range map[string]struct {
		reason, in string
		args       []string
		code       int
		want       string
	}{
		"Stdin":          {"an object on the standard input", object, []string{"--operation", "InterpretHealth", "--observed", "-"}, 0, "answered by: user (Config/a)"},
		"FirstDocument":  {"the first document counts", object + "---\n{", []string{"--operation", "InterpretHealth", "--observed", "-"}, 0, "answered by: user (Config/a)"},
		"DesiredAlone":   {"the desired object, if there is no other", object, []string{"--operation", "InterpretHealth", "--desired", "-"}, 0, "healthy: true"},
		"NoOperation":    {"a question is needed", "", []string{"--observed", "-"}, command.ExitUsage, "--operation: "},
		"List":           {"a list is no object", "- a\n", []string{"--operation", "InterpretHealth", "--observed", "-"}, command.ExitError, "- holds no object"},
		"Text":           {"nor is a text", "a\n", []string{"--operation", "InterpretHealth", "--observed", "-"}, command.ExitError, "- holds no object"},
		"EmptyObserved":  {"nor is an empty file, which is not the lack of a flag", "", []string{"--operation", "InterpretHealth", "--observed", "-"}, command.ExitError, "- holds no object"},
		"EmptyDesired":   {"of the desired object, too", "# nothing\n", []string{"--operation", "InterpretReplica", "--desired", "-"}, command.ExitError, "- holds no object"},
		"Broken":         {"a file that is no YAML is named", "a: [", []string{"--operation", "InterpretHealth", "--observed", "-"}, command.ExitError, "-: "},
		"MissingFile":    {"files exist", "", []string{"--operation", "InterpretHealth", "--observed", "none.yaml"}, command.ExitError, "none.yaml"},
		"MissingItems":   {"those of items, too", object, []string{"--operation", "AggregateStatus", "--desired", "-", "--status", "none.yaml"}, command.ExitError, "none.yaml"},
		"Format":         {"formats exist", object, []string{"--operation", "InterpretHealth", "--observed", "-", "-o", "table"}, command.ExitUsage, "invalid output format"},
		"LiveObserved":   {"an object is observed once", "", []string{"--operation", "InterpretHealth", "--observed", "-", "--live", "pods/a"}, command.ExitUsage, "--live and --observed exclude one another"},
		"LiveNoName":     {"a live object has a name, which needs no cluster to say", "", []string{"--operation", "InterpretHealth", "--live", "pods/"}, command.ExitUsage, "--live pods/: write KIND/NAME"},
		"LiveNoKind":     {"and a kind", "", []string{"--operation", "InterpretHealth", "--live", "/a"}, command.ExitUsage, "--live /a: write KIND/NAME"},
		"LiveNoSlash":    {"and both", "", []string{"--operation", "InterpretHealth", "--live", "a"}, command.ExitUsage, "--live a: write KIND/NAME"},
		"LiveNoCluster":  {"a live object needs a cluster", "", []string{"--operation", "InterpretHealth", "--live", "pods/a"}, command.ExitError, "no cluster is configured"},
		"ReplicasWrong":  {"a number is a number", object, []string{"--operation", "ReviseReplica", "--desired", "-", "--replicas", "many"}, command.ExitUsage, "invalid argument"},
		"ReplicasExceed": {"of 32 bits", object, []string{"--operation", "ReviseReplica", "--desired", "-", "--replicas", "2147483648"}, command.ExitUsage, "invalid argument"},
		"Argument":       {"an object is no argument", object, []string{"a.yaml"}, command.ExitUsage, "takes no arguments, but flags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "a.yaml", healthConfig("a", "K"))
			out, errs := commandtest.Expect(t, New, tc.code, tc.in, append([]string{"explore", "run", "-f", "a.yaml"}, tc.args...)...)
			if !strings.Contains(out+errs, tc.want) {
				t.Errorf("%s: no %q in\n%s%s", tc.reason, tc.want, out, errs)
			}
		})
	}
}

// TestRetainNothing checks what is said of a kind that no layer retains values of.
func TestRetainNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "o.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n")
	out, errs, code := commandtest.Run(t, New, "", "explore", "run", "--operation", "Retain", "--desired", "o.yaml", "--observed", "o.yaml")
	if code != 0 || out != "no opinion: no layer answers ExploreRetaining for v1 ConfigMap\n" {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}
