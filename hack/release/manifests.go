package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra/doc"

	"kudo.dev/kudo/hack/release/chart"
	"kudo.dev/kudo/pkg/cli"
	"kudo.dev/kudo/pkg/cli/command"
)

// kudo runs the released command line of this machine's platform, in a home of its own, and returns what it prints.
func (r *release) kudo(args ...string) ([]byte, error) {
	cmd := exec.Command(r.commandFile(platform{runtime.GOOS, runtime.GOARCH}), args...)
	cmd.Env = []string{"HOME=" + r.work, "KUBECONFIG=" + os.DevNull}
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %s", strings.Join(args, " "), failed.Stderr)
	}
	return out, err
}

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- install.yaml
`

// writeManifests writes what init would install.
func (r *release) writeManifests() error {
	for name, args := range map[string][]string{
		"install.yaml": {"init", "--dry-run", "-o", "yaml"},
		"crds.yaml":    {"init", "--dry-run", "-o", "yaml", "--crd-only"},
	} {
		text, err := r.kudo(args...)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.out, name), text, 0o644); err != nil {
			return err
		}
	}
	folder := filepath.Join(r.work, "kustomize")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o644); err != nil {
		return err
	}
	install, err := os.ReadFile(filepath.Join(r.out, "install.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "install.yaml"), install, 0o644); err != nil {
		return err
	}
	return r.packFolder(folder, "kudo-kustomize_"+r.version+".tar")
}

// chartName is the file of the chart, whose version has no v, as Helm names it.
func (r *release) chartName() string {
	return chart.Name + "-" + strings.TrimPrefix(r.version, "v") + ".tgz"
}

// writeChart writes the Helm chart.
func (r *release) writeChart() error {
	files, err := chart.Files(chart.Options{Version: r.version, Image: r.image + "@" + r.digest, URL: r.url})
	if err != nil {
		return err
	}
	folder := filepath.Join(r.work, "chart")
	for name, text := range files {
		file := filepath.Join(folder, chart.Name, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return r.packFolder(folder, r.chartName())
}

// completer lets kubectl complete the arguments of its plugin.
const completer = "#!/bin/sh\nexec kubectl kudo __complete \"$@\"\n"

// writeDocuments writes completions and man pages, and returns them by their names in an archive.
func (r *release) writeDocuments() (map[string]entry, error) {
	folder := filepath.Join(r.work, "documents")
	if err := os.MkdirAll(filepath.Join(folder, "man"), 0o755); err != nil {
		return nil, err
	}
	out := map[string]entry{}
	add := func(name string, text []byte) error {
		file := filepath.Join(folder, filepath.FromSlash(name))
		out[name] = entry{file, 0o644}
		return os.WriteFile(file, text, 0o644)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		text, err := r.kudo("completion", shell)
		if err != nil {
			return nil, err
		}
		if err := add("completion."+shell, text); err != nil {
			return nil, err
		}
	}
	if err := add("kubectl_complete-kudo", []byte(completer)); err != nil {
		return nil, err
	}
	out["kubectl_complete-kudo"] = entry{out["kubectl_complete-kudo"].file, 0o755}
	// The pages name defaults below the user's home.
	home := os.Getenv("HOME")
	if err := os.Setenv("HOME", "~"); err != nil {
		return nil, err
	}
	defer func() { _ = os.Setenv("HOME", home) }()
	root := cli.NewRoot(command.NewEnv(nil, &bytes.Buffer{}, &bytes.Buffer{}))
	head := &doc.GenManHeader{Section: "1", Date: &r.commit.time, Source: "kudo " + r.version, Manual: "kubectl kudo"}
	if err := doc.GenManTree(root, head, filepath.Join(folder, "man")); err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(filepath.Join(folder, "man"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		out["man/"+page.Name()] = entry{filepath.Join(folder, "man", page.Name()), 0o644}
	}
	return out, nil
}
