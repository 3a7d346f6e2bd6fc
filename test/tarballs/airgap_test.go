package tarballs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// command is a command of a document, with what it prints. In that, … stands for anything.
type command struct {
	line   int
	text   string
	prints []string
}

// commandsOf are the commands in the console blocks of a section of the document, up to the next heading.
func commandsOf(t *testing.T, heading string) []command {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(env.Root(), "docs", "crd-tarballs.md"))
	env.Must(t, err)
	before, section, found := strings.Cut(string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("the document has no section %q", heading)
	}
	first := strings.Count(before, "\n") + 2
	var all []command
	console, here := false, false
	for n, line := range strings.Split(section, "\n") {
		rest, starts := strings.CutPrefix(line, "$ ")
		switch {
		case !console && strings.HasPrefix(line, "#"):
			return all
		case strings.HasPrefix(line, "```"):
			console = line == "```console"
		case !console:
		case starts:
			all = append(all, command{line: first + n + 1, text: rest})
			here = strings.HasSuffix(rest, "<<END")
		case here:
			all[len(all)-1].text += "\n" + line
			here = line != "END"
		default:
			all[len(all)-1].prints = append(all[len(all)-1].prints, line)
		}
	}
	return all
}

// follow runs the commands of a section in a folder, and compares what they print.
func follow(t *testing.T, dir, heading string) {
	t.Helper()
	commands := commandsOf(t, heading)
	if len(commands) < 5 {
		t.Fatalf("section %q has %d commands only", heading, len(commands))
	}
	for _, c := range commands {
		// kubectl-kudo is found by kubectl in the PATH.
		cmd := exec.Command("sh", "-euc", c.text)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+suite.Path(), "KUBECONFIG="+suite.Kubeconfig, "CACHE="+cacheFolder(t))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("line %d: %s: %v\n%s", c.line, c.text, err, out)
		}
		printed := columns.ReplaceAllString(string(out), " ")
		for _, want := range c.prints {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(columns.ReplaceAllString(want, " ")), "…", ".*")
			if !regexp.MustCompile(`(?m)^` + pattern + `\s*$`).MatchString(printed) {
				t.Errorf("line %d: %s does not print %q, but\n%s", c.line, c.text, want, out)
			}
		}
	}
}

// columns are wider where another row has more in them.
var columns = regexp.MustCompile(` {2,}`)

// cacheFolder is the cache of the manager that kudo-local runs.
func cacheFolder(t *testing.T) string {
	t.Helper()
	return filepath.Join(filepath.Dir(suite.Kubeconfig), "manager-cache")
}

// printshop copies the package of the catalog that the document uses.
func printshop(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	env.Must(t, os.CopyFS(dir, os.DirFS(filepath.Join(env.Root(), "operators", "catalog", "printshop"))))
	return dir
}

// The walkthroughs of the document for clusters without internet do what they say. No host of theirs exists.
func TestWithoutInternet(t *testing.T) {
	if !suite.Own() {
		t.Skip("needs the cache folder of the manager, and namespaces of its own")
	}
	for _, tc := range []struct{ heading, namespace string }{
		{"### By ConfigMaps", "team-a"},
		{"### By a cache that is carried", "team-b"},
	} {
		t.Run(tc.namespace, func(t *testing.T) {
			follow(t, printshop(t), tc.heading)
			instance := &v1beta1.Instance{}
			instance.Namespace, instance.Name = tc.namespace, "shop"
			env.Must(t, client.IgnoreNotFound(suite.Delete(ctx, instance)))
			gone(t, crd("prints.printshop.example.com"))
			gone(t, crd("trays.printshop.example.com"))
		})
	}
}
