package testsuite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/sourcetree"
)

var _ = Describe("A suite", Label("suites"), func() {
	for _, tc := range []struct {
		suite string
		code  int
		want  []string
	}{
		{"all", 0, []string{"01-one | step 0-install done", "02-two | step 0-install done", "2 passed", "report written to", `unknown field "novelty"`, "kindContext", "skipClusterDelete has no effect", "suppress has no effect"}},
		{"failing-command", 1, []string{"commands of the suite", "asked", "exit status 1", "!01-one"}},
		{"slow", 3, []string{"does not hold after 1s"}},
		{"wrong-kind", 1, []string{"holds a ConfigMap of v1, and must hold a TestSuite of kuttl.dev/v1beta1"}},
		{"wrong-type", 1, []string{"TestSuite: ", "kuttl-test.yaml"}},
		{"wrong-report", 1, []string{`reportFormat "CSV": must be JSON or XML`}},
		{"no-manifests", 1, []string{"nowhere: no such file or directory"}},
		{"no-crds", 1, []string{"nowhere: no such file or directory"}},
		{"no-dirs", 1, []string{"folder of tests: open nowhere"}},
		{"no-parallel", 2, []string{"--parallel -1: must be at least 1"}},
	} {
		It(fmt.Sprintf("ends with exit code %d and its reason: %s", tc.code, tc.suite), func() {
			t := GinkgoTB()
			dir := t.TempDir()
			env.Must(t, os.CopyFS(dir, os.DirFS(testdata(t, "suites"))))
			contains(t, kudoTest(t, tc.code, filepath.Join(dir, tc.suite), suite.Kubeconfig), tc.want...)
		})
	}
})

var _ = Describe("The command line", Label("flags"), func() {
	pass, all := filepath.Join("testdata", "pass"), filepath.Join("testdata", "suites", "all")
	for _, tc := range []struct {
		reason string
		code   int
		args   []string
		want   []string
	}{
		{"one case by its exact name", 0, []string{pass, "--test", "errors"}, []string{"1 passed, 0 failed", "!errors-any-name"}},
		{"an unknown case", 1, []string{pass, "--test", "error"}, []string{`no case named "error"`}},
		{"no folder and no suite", 2, nil, []string{"no tests: name a folder of cases"}},
		{"a folder without cases", 1, []string{filepath.Join(all, "crds")}, []string{"no case in"}},
		{"a wrong report", 2, []string{pass, "--report", "csv"}, []string{`--report "csv": must be json or xml`}},
		{"no repetition", 2, []string{pass, "--repeat", "0"}, []string{"--repeat 0: must be at least 1"}},
		{"an unknown fault", 2, []string{pass, "--fault", "etcd"}, []string{`--fault "etcd": must be apiserver, manager or each-write`}},
		{"a fault on a cluster of others", 2, []string{pass, "--fault", "manager"}, []string{"--fault requires --local"}},
		{"an unknown flag", 2, []string{pass, "--color"}, []string{"unknown flag: --color"}},
		{"a config that is not there", 1, []string{"--config", "nowhere.yaml"}, []string{"open nowhere.yaml"}},
		{"kuttl's flags that do not apply", 0, []string{pass, "--test", "errors", "--start-kind", "--kind-context=x", "--kind-config=y", "--skip-cluster-delete", "--attach-control-plane-output", "--suppress-log=events", "--report-granularity=test", "-v=3"}, []string{"1 passed", "have no effect: no container runtime is used"}},
		{"repetition keeps the output apart", 0, []string{pass, "--test", "errors", "--repeat", "3", "--parallel", "3"}, []string{"errors#1 | step 0-install done", "errors#2 | step 0-install done", "errors#3 | step 0-install done", "3 passed"}},
		{"folders of CRDs and manifests", 0, []string{filepath.Join(all, "cases"), "--test", "02-two", "--crd-dir", filepath.Join(all, "crds"), "--manifest-dir", filepath.Join(all, "manifests")}, []string{"1 passed"}},
	} {
		It("takes "+tc.reason, func() {
			t := GinkgoTB()
			args := slices.Clone(tc.args)
			for n, arg := range args {
				if strings.HasPrefix(arg, "testdata") { // the command works in another folder
					path, err := filepath.Abs(arg)
					env.Must(t, err)
					args[n] = path
				}
			}
			contains(t, kudoTest(t, tc.code, t.TempDir(), suite.Kubeconfig, args...), tc.want...)
		})
	}
})

var _ = It("A namespace that was given stays, and one that is made goes, unless --skip-delete keeps it", Serial, Label("namespaces"), func() {
	t, ctx := GinkgoTB(), context.Background()
	ns := suite.NewNamespace(t)
	kudoTest(t, 0, t.TempDir(), suite.Kubeconfig, testdata(t, "pass", "apply-assert"), "-n", ns)
	list := &corev1.ConfigMapList{}
	env.Must(t, suite.List(ctx, list))
	for _, cm := range list.Items {
		if cm.Namespace == ns && cm.Name == "app" {
			t.Error("what a case applies in a namespace that was given must go")
		}
	}
	// One that is not there is made for all cases, and goes after them.
	kudoTest(t, 0, t.TempDir(), suite.Kubeconfig, testdata(t, "shared"), "-n", ns+"-new")
	if left := namespaces(t); slices.Contains(left, ns+"-new") {
		t.Errorf("the namespace that was made for all cases is left: %v", left)
	}
	out := kudoTest(t, 3, t.TempDir(), suite.Kubeconfig, testdata(t, "pass", "apply-assert"), "--as", "stranger")
	contains(t, out, `User "stranger" cannot`)
	out = kudoTest(t, 0, t.TempDir(), suite.Kubeconfig, testdata(t, "pass", "apply-assert"), "--skip-delete")
	left := namespaces(t)
	if len(left) != 1 {
		t.Fatalf("--skip-delete must leave one namespace, and there are %v:\n%s", left, out)
	}
	kept := &corev1.Namespace{}
	kept.Name = left[0]
	env.Must(t, suite.Delete(ctx, kept))
	env.Eventually(t, "no namespace", func() string { return strings.Join(namespaces(t), ", ") })
})

var _ = It("The packages of the catalog hold what their READMEs promise", Label("catalog"), func() {
	t := GinkgoTB()
	catalog := filepath.Join(sourcetree.Root(), "operators", "catalog")
	dirs, err := filepath.Glob(filepath.Join(catalog, "*", "tests"))
	env.Must(t, err)
	packages, err := filepath.Glob(filepath.Join(catalog, "*", "operator"))
	if err != nil || len(dirs) != len(packages) || len(dirs) == 0 {
		t.Fatalf("%d of %d packages have tests (%v)", len(dirs), len(packages), err)
	}
	t.Log(kudoTest(t, 0, sourcetree.Root(), suite.Kubeconfig, append(dirs, "--timeout", "300")...))
})

var _ = It("As many cases as --parallel says run side by side, and no more", Label("many-cases"), func() {
	t := GinkgoTB()
	const cases, few = 25, 5
	for _, tc := range []struct {
		reason, script string
		parallel       int
	}{
		{"each case ends once all have begun", `touch "$PLACE/$NAMESPACE"; until [ "$(ls "$PLACE" | wc -l)" -ge 25 ]; do sleep 0.1; done`, cases},
		{"a case fails if more run beside it", `touch "$PLACE/$NAMESPACE"; [ "$(ls "$PLACE" | wc -l)" -le 5 ] || exit 1; sleep 0.2; rm "$PLACE/$NAMESPACE"`, few},
	} {
		dir, place := t.TempDir(), t.TempDir()
		for n := range cases {
			for name, text := range map[string]string{
				"00-install.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {n: \"%d\"}\n", n),
				"00-assert.yaml":  fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {n: \"%d\"}\n", n),
				"01-meet.yaml":    fmt.Sprintf("apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands:\n- script: |\n    PLACE=%s\n    %s\n  timeout: 180\n", place, tc.script),
			} {
				path := filepath.Join(dir, fmt.Sprintf("small-%d", n), name)
				env.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
				env.Must(t, os.WriteFile(path, []byte(text), 0o644))
			}
		}
		t.Logf("%s:\n%s", tc.reason, kudoTest(t, 0, t.TempDir(), suite.Kubeconfig, dir, "--parallel", strconv.Itoa(tc.parallel), "--timeout", "180"))
	}
})
