package explore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/cli/commandtest"
)

const (
	manyKinds    = 30
	casesOfAKind = 20
)

// manyCases writes a tree of 600 cases in 30 kinds, as larger libraries of rules have them, with five operations each.
func manyCases(tb testing.TB) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	for k := range manyKinds {
		kind := fmt.Sprintf("Kind%02d", k)
		folder := filepath.Join(dir, "many.example.com", "v1", kind)
		rule := fmt.Sprintf(`apiVersion: config.kudo.dev/v1alpha1
kind: Config
metadata: {name: %s}
spec:
  retentions:
  - {apiVersion: many.example.com/v1, kind: %s, retentionLua: "desiredObj.spec.replicas = runtimeObj.spec.replicas; return desiredObj"}
  explorations:
  - apiVersion: many.example.com/v1
    kind: %s
    healthLua: |
      for _, c in ipairs(observedObj.status.conditions) do
        if c.type == "Ready" then
          return c.status == "True", c.message
        end
      end
      return false
    replicaLua: return desiredObj.spec.replicas, kube.accuratePodRequirements(desiredObj.spec.template)
    dependenciesLua: return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
    statusLua: 'return {conditions = observedObj.status.conditions}'
`, strings.ToLower(kind), kind, kind)
		var text strings.Builder
		for n := range casesOfAKind {
			object := func(replicas int, ready string) string {
				return fmt.Sprintf(`{apiVersion: many.example.com/v1, kind: %s, metadata: {name: a, namespace: ns}, spec: {replicas: %d, template: {spec: {containers: [{name: c, `+
					`resources: {requests: {cpu: 100m}}}], volumes: [{name: v, secret: {secretName: s%d}}]}}}, status: {conditions: [{type: Other, status: "True"}, {type: Ready, status: %q}]}}`,
					kind, replicas, n, ready)
			}
			switch n % 5 {
			case 0:
				fmt.Fprintf(&text, "operation: InterpretHealth\nobservedObj: %s\noutput: {healthy: true}\n", object(n, "True"))
			case 1:
				fmt.Fprintf(&text, "operation: InterpretReplica\ndesiredObj: %s\noutput: {replica: %d}\n", object(n, "True"), n)
			case 2:
				fmt.Fprintf(&text, "operation: InterpretDependency\ndesiredObj: %s\noutput: {dependencies: [{apiVersion: v1, kind: Secret, namespace: ns, name: s%d}]}\n", object(n, "True"), n)
			case 3:
				fmt.Fprintf(&text, "operation: InterpretStatus\nobservedObj: %s\noutput: {status: {conditions: [{type: Other, status: \"True\"}, {type: Ready, status: \"False\"}]}}\n", object(n, "False"))
			case 4:
				fmt.Fprintf(&text, "operation: Retain\ndesiredObj: %s\nobservedObj: %s\noutput: {retained: %s}\n", object(1, "True"), object(n, "True"), object(n, "True"))
			}
			text.WriteString("---\n")
		}
		writeFile(tb, filepath.Join(folder, "config.yaml"), rule)
		writeFile(tb, filepath.Join(folder, "testdata", "cases.yaml"), text.String())
	}
	return dir
}

func writeFile(tb testing.TB, name, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// TestManyCases (C53): of 600 cases in 30 kinds, ten of whose files are malformed, the ten are reported with their files, and all others are
// judged. BenchmarkManyCases measures them.
func TestManyCases(t *testing.T) {
	dir := manyCases(t)
	if out, errs, code := commandtest.Run(t, New, "", "explore", "test", dir); code != 0 || !strings.Contains(out, "600 cases passed, 0 failed, 0 broken, 0 unasserted") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	var malformed []string
	for n, text := range []string{"a: [", "a:\n\tb: 1", "- 1", "operation: 7", "operation: Fly", "just text", "observedObj: 3", "{{ x }}", "operation: InterpretHealth\noutput: 3", "operation: [Retain]"} {
		name := filepath.Join("many.example.com", "v1", fmt.Sprintf("Kind%02d", 3*n), "testdata", "malformed.yaml")
		writeFile(t, filepath.Join(dir, name), text+"\n")
		malformed = append(malformed, filepath.ToSlash(name))
	}
	out, errs, code := commandtest.Run(t, New, "", "explore", "test", dir)
	if code != command.ExitError || !strings.Contains(out, "600 cases passed, 0 failed, 10 broken, 0 unasserted") || !strings.Contains(errs, "10 of 610 cases are broken, and 0 failed") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	for _, name := range malformed {
		if strings.Count(out, "("+name+":") != 1 {
			t.Errorf("%s is not reported once:\n%s", name, out)
		}
	}
}

// BenchmarkManyCases runs 600 cases in 30 kinds by the command. It shall take at most 3 s on two cores.
func BenchmarkManyCases(b *testing.B) {
	dir := manyCases(b)
	for b.Loop() {
		if out, errs, code := commandtest.Run(b, New, "", "explore", "test", dir); code != 0 {
			b.Fatalf("exit code %d\n%s%s", code, out, errs)
		}
	}
}
