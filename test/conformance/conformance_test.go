package conformance

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"kudo.dev/kudo/pkg/testsuite"
	"kudo.dev/kudo/test/corpus"
	"kudo.dev/kudo/test/env"
)

// alone are suites that assert a Deployment that never becomes ready: they run without Deployment controllers.
var alone = map[string]bool{"parameter-types-operator": true}

// cases returns the folders of the cases of others, or none without the corpus.
func cases() []string {
	root := corpus.Dir()
	if root == "" {
		return nil
	}
	dirs, err := testsuite.Cases([]string{filepath.Join(root, "kuttl", "integration"), filepath.Join(root, "kuttl", "e2e")}, "")
	if err != nil {
		Fail(err.Error())
	}
	return dirs
}

var _ = Describe("A suite that others wrote for KUDO", Label("suites", "corpus"), func() {
	It("is in the corpus", func() {
		if corpus.Require(GinkgoTB()); len(cases()) == 0 {
			Fail("the corpus has no cases")
		}
	})
	It("is run by kuttl, too", func() { env.RequireKuttl(GinkgoTB()) })
	for _, dir := range cases() {
		name := filepath.Base(dir)
		for runner, run := range env.Sorted(runners()) {
			if alone[name] {
				It("passes on a control plane without controllers, by "+runner+": "+name, SpecPriority(1), Label("slow"), func() {
					t := GinkgoTB()
					e, cluster := start(t, "api")
					t.Cleanup(e.Stop)
					run(t, dir, e, cluster)
				})
				continue
			}
			It("passes by "+runner+": "+name, func() { run(GinkgoTB(), dir, plane, cluster) })
		}
	}
})

// runners returns what runs cases: kudo, and kuttl where it could be built.
func runners() map[string]func(t testing.TB, dir string, e *env.Env, cluster *testsuite.Cluster) {
	out := map[string]func(t testing.TB, dir string, e *env.Env, cluster *testsuite.Cluster){"kudo": pass}
	if env.HasKuttl() {
		out["kuttl"] = func(t testing.TB, dir string, e *env.Env, _ *testsuite.Cluster) { t.Helper(); e.Kuttl(t, dir) }
	}
	return out
}

// start starts a control plane of a profile, with what the suites expect on it.
func start(t testing.TB, profile string) (*env.Env, *testsuite.Cluster) {
	t.Helper()
	e, err := env.Start("--profile", profile, "--privileged")
	env.Must(t, err)
	cluster, err := testsuite.Connect(e.Kubeconfig)
	env.Must(t, err)
	env.Must(t, cluster.Setup(context.Background(), filepath.Join(corpus.Require(t), "kuttl", "manifests"), "default"))
	return e, cluster
}

// pass runs a case by kudo's own runner.
func pass(t testing.TB, dir string, e *env.Env, cluster *testsuite.Cluster) {
	t.Helper()
	c, err := testsuite.Load(dir, nil)
	env.Must(t, err)
	r := &testsuite.Runner{Cluster: cluster, Path: e.Path(), Timeout: 2 * time.Minute,
		Log: func(_, format string, args ...any) { t.Logf(format, args...) }}
	if result := r.Run(context.Background(), c); result.Err != nil {
		t.Error(result.Err)
	}
}
