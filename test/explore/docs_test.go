package explore

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
	"kudo.dev/kudo/test/env"
)

var (
	block    = regexp.MustCompile("(?ms)^```(yaml|console)\n(.*?)^```$")
	fileName = regexp.MustCompile(`^# (\S+\.yaml)\n`)
)

// TestDocumentation does what docs/explore.md shows: it writes the files of blocks that begin with a name, and runs the
// commands, whose output must be that of the page.
func TestDocumentation(t *testing.T) {
	page := read(t, filepath.Join(env.Root(), "docs", "explore.md"))
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "./cmd/explore-sample")
	build.Dir = env.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	definitions := read(t, filepath.Join(env.Root(), "cmd", "explore-sample", "sample", "crds.yaml"))
	env.Must(t, os.WriteFile(filepath.Join(dir, "crds.yaml"), []byte(definitions), 0o600))
	ns := suite.NewNamespace(t)
	t.Cleanup(func() { forget(t, dir, page) })
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		if name := fileName.FindStringSubmatch(found[2]); found[1] == "yaml" && name != nil {
			place := filepath.Join(dir, filepath.FromSlash(name[1]))
			env.Must(t, os.MkdirAll(filepath.Dir(place), 0o755))
			env.Must(t, os.WriteFile(place, []byte(found[2]), 0o600))
		}
		if found[1] == "console" {
			shown(t, dir, ns, found[2])
		}
	}
	boil(t, page, ns)
}

// boil does what the page says of its script.
func boil(t *testing.T, page, ns string) {
	t.Helper()
	const group = "kitchen.example.com/v1"
	define(t, strings.ReplaceAll(kind("Kettle", "kettles"), "explore.example.com", "kitchen.example.com"))
	i := install(t, operator(ns, [][2]string{{"kettle", "apiVersion: " + group + "\nkind: Kettle\nmetadata: {name: kettle}\nspec: {lid: red}\n"}}), nil)
	messages := regexp.MustCompile(`(?m)^Kettle team-a/kettle: .*$`).FindAllString(page, -1)
	if len(messages) != 2 {
		t.Fatalf("the page has the messages %q", messages)
	}
	says(t, i, strings.ReplaceAll(messages[0], "team-a", ns))
	create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: red, namespace: "+ns+"}\n")
	kettle := live(t, group, "Kettle", ns, "kettle")
	merge(t, kettle, `{"status":{"temperature":60}}`, true)
	says(t, i, strings.ReplaceAll(messages[1], "team-a", ns))
	merge(t, kettle, `{"status":{"temperature":100}}`, true)
	complete(t, i, 1)
}

// shown runs the commands of a block, and compares what they print. Definitions may be there from other tests.
func shown(t *testing.T, dir, ns, text string) {
	t.Helper()
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		line, want, _ := strings.Cut(part, "\n")
		if background, is := strings.CutSuffix(line, " &"); is {
			serve(t, dir, ns, background)
			continue
		}
		cmd := shell(dir, ns, line)
		cmd.Stderr = os.Stderr // warnings of kubectl about definitions that were not made by it
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("$ %s\n%s%v", line, out, err)
		}
		got := string(out)
		if strings.Contains(line, "crds.yaml") {
			got = regexp.MustCompile(`(?m) (unchanged|configured)$`).ReplaceAllString(got, " created")
		}
		if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(got)); diff != "" {
			t.Errorf("$ %s: -page +command:\n%s", line, diff)
		}
	}
}

// shell makes a command that works in a folder and a namespace.
func shell(dir, ns, line string) *exec.Cmd {
	line = regexp.MustCompile(`(foo\.yaml|/foo)$`).ReplaceAllString(line, "$1 --namespace "+ns)
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.Kubeconfig, "PATH="+dir+":"+suite.Path())
	return cmd
}

// serve runs a command until the test ends, and waits until it has written its configuration.
func serve(t *testing.T, dir, ns, line string) {
	t.Helper()
	cmd := shell(dir, ns, "exec "+line)
	env.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	env.Eventually(t, "webhooks.yaml", func() string {
		if text, err := os.ReadFile(filepath.Join(dir, "webhooks.yaml")); err != nil || len(text) == 0 {
			return "it is not there"
		}
		return ""
	})
}

// forget deletes the configuration that the page makes.
func forget(t *testing.T, dir, page string) {
	t.Helper()
	for _, name := range []string{"rules/kettles.yaml", "webhooks.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(page, "apply -f "+name) {
			continue
		}
		for _, o := range parse(t, string(text)) {
			_ = suite.Delete(ctx, o)
		}
	}
}

// TestBundledKinds: the page lists the kinds that come with kudo, and no others.
func TestBundledKinds(t *testing.T) {
	layer, err := library.New(lua.New(clock.RealClock{}.Now, lua.DefaultLimits()))
	env.Must(t, err)
	var want []string
	group, kinds := "", []string{}
	flush := func() {
		if group != "" {
			want = append(want, "| `"+group+"` | "+strings.Join(kinds, ", ")+" |")
		}
	}
	for _, k := range layer.Kinds() {
		if k.Group != group {
			flush()
			group, kinds = k.Group, nil
		}
		if !strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+k.Kind+" ") {
			kinds = append(kinds, k.Kind)
		}
	}
	flush()
	page := read(t, filepath.Join(env.Root(), "docs", "explore.md"))
	var got []string
	for _, line := range strings.Split(page[strings.Index(page, "## Kinds that kudo knows"):], "\n") {
		if strings.HasPrefix(line, "| `") {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/explore.md: -library +page:\n%s", diff)
	}
}
