package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platform is an operating system and a processor in Go's words.
type platform struct{ system, processor string }

// String implements fmt.Stringer.
func (p platform) String() string { return p.system + "/" + p.processor }

var (
	managerPlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	platforms        = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
		{"windows", "arm64"}}
)

func names(platforms []platform) string {
	var out []string
	for _, p := range platforms {
		out = append(out, p.String())
	}
	return strings.Join(out, ", ")
}

// build builds a command for a platform, so that nothing of this machine is in it.
func (r *release) build(p platform, command, file string, variables map[string]string) error {
	flags := "-s -w"
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		flags += " -X kudo.dev/kudo/" + name + "=" + variables[name]
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/"+command)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.processor, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=",
		"GOENV=off", "GOEXPERIMENT=", "GOTOOLCHAIN="+runtime.Version(), "GOWORK=off") // another go may be first in PATH
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s for %s: %w: %s", command, p, err, out)
	}
	return nil
}

func (r *release) managerFile(p platform) string {
	return filepath.Join(r.work, "manager-"+p.processor)
}

func (r *release) buildManagers() error {
	for _, p := range managerPlatforms {
		variables := map[string]string{"pkg/controllers.Version": r.version, "pkg/controllers.Commit": r.commit.hash}
		if err := r.build(p, "manager", r.managerFile(p), variables); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) commandFile(p platform) string {
	file := filepath.Join(r.work, p.system+"-"+p.processor, "kubectl-kudo")
	if p.system == "windows" {
		file += ".exe"
	}
	return file
}

// buildCommands builds the command line, which names the image by its digest, and the key of the release.
func (r *release) buildCommands() error {
	for _, p := range platforms {
		variables := map[string]string{"pkg/cli/command.Version": r.version, "pkg/kudoinit.Image": r.image + "@" + r.digest,
			"pkg/repository.CatalogURL": r.catalog}
		if r.public != nil {
			variables["pkg/cli/admin.signingKey"] = r.public.text()
		}
		if err := r.build(p, "kubectl-kudo", r.commandFile(p), variables); err != nil {
			return err
		}
	}
	return nil
}
