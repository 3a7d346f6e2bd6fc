// Package docs runs the commands of docs/*.md and of README.md on a real control plane, and compares what they print with
// what the pages show. Each page has a shell, a folder and a namespace of its own; kind says how blocks are marked.
package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/ocitest"
	"kudo.dev/kudo/test/sourcetree"
)

var suite env.Suite

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // pages mostly wait
	suite.Main(m)
}

// files returns README.md and docs/*.md, by their paths in the tree.
func files(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(sourcetree.Root(), "docs", "*.md"))
	env.Must(t, err)
	return append(all, filepath.Join(sourcetree.Root(), "README.md"))
}

// read reads a page.
func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	env.Must(t, err)
	return string(text)
}

// name of a page: that of its file.
func name(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") }

// collects waits until the garbage collector takes the objects of Instances: it learns of kudo's kinds only after half a
// minute of a cluster's life, and no reader of a page would wait for that.
func collects(t *testing.T) {
	ns := suite.NewNamespace(t)
	owner := &v1beta1.Operator{ObjectMeta: gen.Meta(ns, "owner")}
	env.Must(t, suite.Create(t.Context(), owner))
	owned := &corev1.ConfigMap{ObjectMeta: gen.Meta(ns, "owned")}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Operator", Name: owner.Name, UID: owner.UID}}
	env.Must(t, suite.Create(t.Context(), owned))
	env.Must(t, suite.Delete(t.Context(), owner))
	env.Eventually(t, "collected", func() string {
		if err := suite.Get(t.Context(), client.ObjectKeyFromObject(owned), owned); err != nil {
			return ""
		}
		return "the ConfigMap of a deleted Operator still exists"
	})
}

// Each page of the documentation does what it shows, and so does the demo.
func TestPages(t *testing.T) {
	if !suite.IsDisposable() {
		t.Skip("needs the cache folder of the manager, and a cluster without other users")
	}
	tools := build(t)
	collects(t)
	starts := make(chan struct{}, 2) // pages that start control planes of their own, two at a time: the machine may be small
	t.Run("demo", func(t *testing.T) {
		t.Parallel()
		starts <- struct{}{}
		defer func() { <-starts }()
		demo(t)
	})
	for _, path := range files(t) {
		t.Run(name(path), func(t *testing.T) {
			t.Parallel()
			if strings.Contains(read(t, path), "kudo-local up") {
				starts <- struct{}{}
				defer func() { <-starts }()
			}
			follow(t, path, tools)
		})
	}
}

// TestExamples verifies the packages of docs/examples as a reader would: each is valid, and has no warnings.
func TestExamples(t *testing.T) {
	t.Parallel()
	packages, err := filepath.Glob(filepath.Join(sourcetree.Root(), "docs", "examples", "*", "operator.yaml"))
	env.Must(t, err)
	if len(packages) == 0 {
		t.Fatal("docs/examples has no package")
	}
	for _, path := range packages {
		if out, err := exec.Command(filepath.Join(suite.Bin, "kubectl-kudo"), "package", "verify", "--strict", filepath.Dir(path)).CombinedOutput(); err != nil {
			t.Errorf("verify %s: %v\n%s", filepath.Base(filepath.Dir(path)), err, out)
		}
	}
}

// TestExcerpts compares blocks that begin with "# in docs/examples/FILE" with that file, of which they show some lines.
func TestExcerpts(t *testing.T) {
	t.Parallel()
	excerpt := regexp.MustCompile("(?s)```yaml\n# in (docs/examples/\\S+)\n(.*?)```")
	for _, path := range files(t) {
		for _, m := range excerpt.FindAllStringSubmatch(read(t, path), -1) {
			if !strings.Contains(unindented(read(t, filepath.Join(sourcetree.Root(), filepath.FromSlash(m[1])))), unindented(m[2])) {
				t.Errorf("%s: %s has no such lines:\n%s", name(path), m[1], m[2])
			}
		}
	}
}

// unindented returns the lines of a text without their indentation.
func unindented(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "")
}

// build makes the programs that pages use and that are not in bin/.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, "./cmd/explore-sample")
	cmd.Dir = sourcetree.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// follow does what a page says. It stops at the first command that fails where the page shows none, or the other way: the
// rest builds on it.
func follow(t *testing.T, path, tools string) {
	t.Helper()
	parts, err := parse(read(t, path))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	count := map[kind]int{}
	for _, p := range parts {
		count[p.kind]++
	}
	commands := count[script] + count[shown]
	t.Logf("%s: %d blocks and commands run, %d blocks that build", name(path), commands, count[skipped])
	if commands == 0 {
		return
	}
	namespace := bare(t)
	s := place(t, namespace, tools)
	env.Must(t, s.write(parts))
	for _, p := range parts {
		began := time.Now()
		printed, err := s.do(p)
		transcribe(t, path, p, printed, time.Since(began))
		if err != nil {
			t.Fatalf("%s:%d: %v", path, p.line, err)
		}
		if len(p.prints) == 0 {
			continue
		}
		if why := differs(p.prints, printed, namespace); why != "" {
			t.Errorf("%s:%d: $ %s\n%s\nall that is printed:\n%s", path, p.line, p.text, why, printed)
		}
	}
}

// bare makes a namespace as a reader has it: without the account that other suites get with theirs.
func bare(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}
	env.Must(t, suite.Create(t.Context(), ns))
	t.Cleanup(func() { _ = suite.Delete(context.Background(), ns) })
	return ns.Name
}

// transcribe writes what the commands of a page print into the folder KUDO_DOCS_TRANSCRIPT, for who writes the page.
func transcribe(t *testing.T, path string, p part, printed string, took time.Duration) {
	t.Helper()
	dir := os.Getenv("KUDO_DOCS_TRANSCRIPT")
	if dir == "" || p.kind == file || p.kind == skipped {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, name(path)+".txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	env.Must(t, err)
	_, err = fmt.Fprintf(f, "%d (%s) $ %s\n%s", p.line, took.Round(time.Millisecond), p.text, printed)
	env.Must(t, err)
	env.Must(t, f.Close())
}

// place makes the folder of a page, with the parts of the source tree that pages use, and opens a shell in it.
func place(t *testing.T, namespace, tools string) *session {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	for _, part := range []string{"operators/catalog", "docs/examples", "cmd/explore-sample"} {
		env.Must(t, os.CopyFS(filepath.Join(dir, filepath.FromSlash(part)), os.DirFS(filepath.Join(sourcetree.Root(), filepath.FromSlash(part)))))
	}
	config, err := clientcmd.LoadFromFile(suite.Kubeconfig)
	env.Must(t, err)
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	kubeconfig := filepath.Join(home, "kubeconfig")
	env.Must(t, clientcmd.WriteToFile(*config, kubeconfig))
	// crd-tarballs.md finds the folder of the cache beside the kubeconfig, of which this page has a copy.
	env.Must(t, os.Symlink(filepath.Join(filepath.Dir(suite.Kubeconfig), "manager-cache"), filepath.Join(home, "manager-cache")))
	state := filepath.Join(home, "state")
	t.Cleanup(func() { stop(t, state) })
	registry := ocitest.New(t, true) // air-gap.md asks its readers for one
	return open(t, dir, "PATH="+tools+":"+suite.Path(), "KUBECONFIG="+kubeconfig, "HOME="+home, "KUDO_HOME="+filepath.Join(home, "kudo"), "KUDO_PROGRESS=none",
		"KUDO_LOCAL_STATE="+state, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "REGISTRY="+registry.Host(), "REGISTRY_CA="+ocitest.CAFile(t, registry.Server),
		"DOCKER_CONFIG="+filepath.Dir(ocitest.ConfigFile(t, "", registry.Host())))
}

// stop stops the control planes that a page has started.
func stop(t *testing.T, state string) {
	t.Helper()
	local := filepath.Join(suite.Bin, "kudo-local")
	list, err := exec.Command(local, "list", "--state", state).Output()
	env.Must(t, err)
	for _, name := range strings.Fields(string(list)) {
		if out, err := exec.Command(local, "down", "--delete", "--state", state, "--name", name).CombinedOutput(); err != nil {
			t.Errorf("stop the control plane %s: %v\n%s", name, err, out)
		}
	}
}

// write writes all files of a page, before its first command.
func (s *session) write(parts []part) error {
	seen := map[string]bool{}
	for _, p := range parts {
		if p.kind != file {
			continue
		}
		if seen[p.note] {
			return fmt.Errorf("line %d: the page shows the file %s twice", p.line, p.note)
		}
		seen[p.note] = true
		place := filepath.Join(s.dir, filepath.FromSlash(p.note))
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(place, []byte(p.text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// do does one part of a page, and returns what is printed. It is an error if a command fails and the page shows none, or the
// other way.
func (s *session) do(p part) (string, error) {
	if p.kind == file || p.kind == skipped {
		return "", nil
	}
	out, code, err := s.run(p.text, p.kind != shown)
	if err == nil && fails(p.prints) != (code != 0) {
		err = fmt.Errorf("exit code %d", code)
	}
	if err != nil {
		return out, fmt.Errorf("%s\n%w\n%s", p.text, err, out)
	}
	return out, nil
}
