// Package conformance runs the kuttl suites that others wrote for KUDO, unmodified.
package conformance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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
	e, err := env.Start("--profile", profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	runner, err := newRunner(e)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := manifests(e, filepath.Join(corpus, "kuttl", "manifests")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dirs, err := filepath.Glob(filepath.Join(corpus, "kuttl", "*", "*", "*-assert.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		if seen[dir] || alone[filepath.Base(dir)] != (profile == "api") {
			continue
		}
		seen[dir] = true
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			c, err := scenario.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			r := *runner
			r.Log = t.Logf
			if err := r.Run(context.Background(), c); err != nil {
				t.Error(err)
			}
		})
	}
	if len(seen) == 0 {
		t.Error("no suite was found")
	}
}

func newRunner(e *env.Env) (*scenario.Runner, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, http)
	if err != nil {
		return nil, err
	}
	return &scenario.Runner{Client: client, Mapper: mapper, Kubeconfig: e.Kubeconfig, Path: e.Path(), Timeout: 2 * time.Minute}, nil
}

// manifests creates the OperatorVersions that suites expect in namespace default.
func manifests(e *env.Env, dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	r, err := newRunner(e)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if err := r.Create(context.Background(), file, "default"); err != nil {
			return file, err
		}
	}
	return "", nil
}
