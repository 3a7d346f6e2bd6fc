// Package conformance runs the kuttl suites that others wrote for KUDO, unmodified: they know of no accounts, so kudo is privileged.
package conformance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"kudo.dev/kudo/pkg/scenario"
	"kudo.dev/kudo/test/env"
)

// alone are suites that assert a Deployment that never becomes ready: they run without Deployment controllers.
var alone = map[string]bool{"parameter-types-operator": true}

func TestSuites(t *testing.T) {
	corpus := env.Corpus()
	if corpus == "" {
		t.Skip("the suites by others are not there: KUDO_TEST_CORPUS names their folder")
	}
	for _, profile := range []string{"full", "api"} {
		t.Run(profile, func(t *testing.T) { run(t, corpus, profile) })
	}
}

func run(t *testing.T, corpus, profile string) {
	e, err := env.Start("--profile", profile, "--privileged")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	cluster, err := scenario.Connect(e.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Setup(context.Background(), filepath.Join(corpus, "kuttl", "manifests"), "default"); err != nil {
		t.Fatal(err)
	}
	dirs, err := scenario.Cases([]string{filepath.Join(corpus, "kuttl", "integration"), filepath.Join(corpus, "kuttl", "e2e")}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if alone[filepath.Base(dir)] != (profile == "api") {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c, err := scenario.Load(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := &scenario.Runner{Cluster: cluster, Path: e.Path(), Timeout: 2 * time.Minute,
				Log: func(_, format string, args ...any) { t.Logf(format, args...) }}
			if result := r.Run(context.Background(), c); result.Err != nil {
				t.Error(result.Err)
			}
		})
	}
}
