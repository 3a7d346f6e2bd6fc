// Package test tries kudo-local as a person would: it runs the built binary
// and looks at the cluster through its kubeconfig.
package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// versions are what a build must set, or clients cannot parse the version of
// the server.
const versions = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 " +
	"-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"

var binary string

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) != "" {
		os.Exit(fakeManager(os.Args[1:]))
	}
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	binary = os.Getenv("KUDO_LOCAL_BIN")
	if binary == "" {
		dir, err := os.MkdirTemp("", "kudo-local-bin")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "kudo-local")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", versions, "-o", binary, "..")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "building kudo-local: %v; name a built one with KUDO_LOCAL_BIN\n", err)
			return 1
		}
	}
	return m.Run()
}
