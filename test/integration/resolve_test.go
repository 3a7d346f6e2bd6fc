package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
	"kudo.dev/kudo/test/gen"
	"kudo.dev/kudo/test/sourcetree"
)

// unit are the files of a package that applies a ConfigMap and has dependencies; these are the specs of its tasks.
func unit(name, version string, dependencies ...string) map[string]string {
	tasks, steps := "- {name: app, kind: Apply, spec: {resources: [app.yaml]}}\n", "app"
	for i, d := range dependencies {
		tasks += fmt.Sprintf("- {name: d%d, kind: KudoOperator, spec: {%s}}\n", i, d)
		steps += fmt.Sprintf(", d%d", i)
	}
	return map[string]string{
		"operator.yaml": fmt.Sprintf("apiVersion: kudo.dev/v1beta1\nname: %s\noperatorVersion: %s\nkubernetesVersion: 1.20.0\ntasks:\n%splans: {deploy: {strategy: serial, phases: [{name: p, strategy: serial, steps: [{name: s, tasks: [%s]}]}]}}\n", name, version, tasks, steps),
		"params.yaml":   "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		"templates/app.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Name }}'}\n" +
			"data: {version: '{{ .OperatorVersion }}'}\n",
	}
}

// within adds the files of a package in a folder of another.
func within(outer, inner map[string]string, dir string) map[string]string {
	for name, text := range inner {
		outer[dir+"/"+name] = text
	}
	return outer
}

// packageServer serves a repository of packages, and configures a home with it. It returns that, and the URL.
func packageServer(t testing.TB, packages ...map[string]string) (home, url string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, files := range packages {
		kudo(t, 0, "package", "create", write(t, files), "-d", dir)
	}
	kudo(t, 0, "repo", "index", dir)
	kudo(t, 0, "repo", "add", "ours", server.URL, "--home", home)
	kudo(t, 0, "repo", "context", "ours", "--home", home)
	return home, server.URL
}

// runs wants the ConfigMaps of Instances, with the version that each has.
func runs(t testing.TB, ns string, versions map[string]string) {
	t.Helper()
	for name, want := range versions {
		if got := get(t, &corev1.ConfigMap{}, ns, name).Data["version"]; got != want {
			t.Errorf("instance %s runs version %q, want %q", name, got, want)
		}
	}
}

var _ = Describe("Each way to name a package finds it and what it depends on, and each plan runs:", Ordered, ContinueOnFailure, func() {
	var home, url, disk string
	BeforeAll(func() {
		t := GinkgoTB()
		leaves := []map[string]string{unit("leaf", "0.1.0"), unit("leaf", "0.1.5"), unit("leaf", "0.2.0"), unit("leaf", "1.0.0-rc.1")}
		mid := unit("mid", "1.0.0", "package: leaf, operatorVersion: ~0.1.0")
		bundle := within(unit("bundle", "2.1.0", "package: ./packages/inner", "package: mid"), unit("inner", "3.0.0", "package: leaf, operatorVersion: 0.2.0"), "packages/inner")
		home, url = packageServer(t, append(leaves, mid, bundle, unit("bundle", "3.0.0"))...)
		top := unit("top", "1.0.0", "package: ../side", "package: leaf, operatorVersion: ^0.1", "package: '"+url+"/mid-1.0.0.tgz'", "package: ../bundle-2.1.0.tgz")
		disk = write(t, within(within(map[string]string{}, top, "top"), unit("side", "1.0.0"), "side"))
		kudo(t, 0, "package", "create", write(t, bundle), "-d", disk)
	})
	bundled := map[string]string{"i": "2.1.0", "i-inner": "3.0.0", "i-inner-leaf": "0.2.0", "i-mid": "1.0.0", "i-mid-leaf": "0.1.5"}
	for _, tc := range []struct {
		reason string
		args   func() []string
		want   map[string]string
	}{
		{"a folder beside it, a repository, a URL, and an archive beside it", func() []string { return []string{filepath.Join(disk, "top")} },
			map[string]string{"i": "1.0.0", "i-side": "1.0.0", "i-leaf": "0.1.5", "i-mid": "1.0.0", "i-mid-leaf": "0.1.5", "i-bundle": "2.1.0", "i-bundle-inner": "3.0.0", "i-bundle-inner-leaf": "0.2.0"}},
		{"a folder within it, and a repository", func() []string { return []string{filepath.Join(disk, "bundle-2.1.0.tgz")} }, bundled},
		{"the same from elsewhere", func() []string { return []string{url + "/bundle-2.1.0.tgz"} }, bundled},
		{"the same by a range", func() []string { return []string{"bundle", "--operator-version", "^2"} }, bundled},
	} {
		It(tc.reason, func() {
			t := GinkgoTB()
			ns := cluster.NewNamespace(t)
			common := []string{"-n", ns, "--home", home, "--wait", "--wait-time", "180"}
			kudo(t, 0, append(append([]string{"install", "--instance", "i"}, tc.args()...), common...)...)
			runs(t, ns, tc.want)
			t.Log("what was installed can be used again, with nothing but the cluster")
			operator := get(t, &v1beta1.Instance{}, ns, "i").Labels[v1beta1.OperatorLabel]
			kudo(t, 0, "install", operator, "--in-cluster", "--operator-version", "<3", "--instance", "j", "-n", ns, "--home", t.TempDir(), "--wait", "--wait-time", "180")
			again := map[string]string{}
			for instance, version := range tc.want {
				again["j"+strings.TrimPrefix(instance, "i")] = version
			}
			runs(t, ns, again)
		})
	}
})

var _ = It("The target catalog makes a repository, from which packages are installed once it is served", func() {
	t := GinkgoTB()
	dir, home, ns := filepath.Join(t.TempDir(), "catalog"), t.TempDir(), cluster.NewNamespace(t)
	made := exec.Command("make", "-C", sourcetree.Root(), "catalog", "CATALOG="+dir, "BIN="+plane.Bin)
	if out, err := made.CombinedOutput(); err != nil {
		t.Fatalf("make catalog: %v\n%s", err, out)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	kudo(t, 0, "repo", "add", "catalog", server.URL, "--home", home)
	packages, err := filepath.Glob(filepath.Join(sourcetree.Root(), "operators", "catalog", "*", "operator"))
	env.Must(t, err)
	found := kudo(t, 0, "search", "", "--repo", "catalog", "--home", home)
	for _, p := range packages {
		contains(t, found, filepath.Base(filepath.Dir(p)))
	}
	kudo(t, 0, "install", "hello", "--repo", "catalog", "--operator-version", "^1", "--home", home, "--instance", "i", "-n", ns, "--wait")
	status(t, get(t, &v1beta1.Instance{}, ns, "i"), "deploy", v1beta1.Complete)

	By("as a folder in OCI layout")
	kudo(t, 0, "repo", "add", "layout", "layout:"+filepath.Join(dir, "layout"), "--home", home)
	for _, p := range packages {
		name := filepath.Base(filepath.Dir(p))
		contains(t, kudo(t, 0, "search", name, "--all-versions", "--repo", "layout", "--home", home), name)
	}
	kudo(t, 0, "install", "hello", "--repo", "layout", "--home", home, "--instance", "j", "-n", ns, "--wait")
})

var _ = It("Ranges choose from what is installed, and the command that is named for a missing dependency installs it", Label("in-cluster-versions"), func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	home, _ := packageServer(t, unit("leaf", "0.1.0"), unit("leaf", "0.1.5"), unit("mid", "1.0.0", "package: leaf, operatorVersion: ~0.1.0"),
		unit("mid", "1.9.0", "package: leaf, operatorVersion: 0.1.0"), unit("mid", "1.10.0-rc.1"), unit("mid", "2.0.0"))
	for _, version := range []string{"1.0.0", "1.9.0", "1.10.0-rc.1"} {
		kudo(t, 0, "install", "mid", "--operator-version", version, "--skip-instance", "-n", ns, "--home", home)
	}
	out := kudo(t, 0, "install", "mid", "--operator-version", "1.0.0", "--skip-instance", "-n", ns, "--home", home)
	contains(t, out, "operatorversion "+ns+"/leaf-0.1.5 already installed", "operatorversion "+ns+"/mid-1.0.0 already installed")
	with := func(code int, args ...string) string {
		t.Helper()
		return kudo(t, code, append([]string{"install", "--in-cluster", "-n", ns, "--wait", "--wait-time", "120"}, args...)...)
	}
	contains(t, with(1, "mid", "--operator-version", "^2"), "no OperatorVersion of operator mid in namespace "+ns+" has operatorVersion ^2", "there is mid-1.10.0-rc.1, mid-1.9.0, mid-1.0.0")
	contains(t, with(1, "mid", "--app-version", "1.x"), "has appVersion 1.x")
	contains(t, with(2, "mid", "--operator-version", "^abc"), "neither a version nor a range")
	with(0, "mid", "--operator-version", "^1", "--instance", "i")
	runs(t, ns, map[string]string{"i": "1.9.0", "i-leaf": "0.1.0"})
	with(0, "mid", "--instance", "newest")
	runs(t, ns, map[string]string{"newest": "1.10.0-rc.1"})

	env.Must(t, cluster.Delete(t.Context(), &v1beta1.OperatorVersion{ObjectMeta: gen.Meta(ns, "leaf-0.1.5")}))
	out = with(1, "mid", "--operator-version", "1.0.x", "--instance", "j")
	contains(t, out, `task "d0" of operatorversion mid-1.0.0 needs OperatorVersion leaf-0.1.5`, "there is leaf-0.1.0")
	if list := (&v1beta1.InstanceList{}); cluster.List(t.Context(), list) == nil {
		for _, i := range list.Items {
			if i.Namespace == ns && i.Name == "j" {
				t.Error("an Instance was made of what cannot run")
			}
		}
	}
	_, command, found := strings.Cut(out, "kubectl kudo install ")
	command, _, _ = strings.Cut(command, " installs it")
	if !found {
		t.Fatalf("no command is named:\n%s", out)
	}
	kudo(t, 0, append([]string{"install", "--home", home}, strings.Fields(command)...)...)
	with(0, "mid", "--operator-version", "1.0.x", "--instance", "j")
	runs(t, ns, map[string]string{"j": "1.0.0", "j-leaf": "0.1.5"})
})

var _ = It("A dependency that is switched off need not be there", func() {
	t := GinkgoTB()
	ns := cluster.NewNamespace(t)
	ov := gen.Version(ns, "app-1.0.0", gen.Param("EXTRA", "false", ""), gen.Param("VALUE", "a", ""), func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Parameters[0].Type, ov.Spec.Operator.Name, ov.Spec.Version = v1beta1.BooleanType, "app", "1.0.0"
	}, gen.ConfigMaps("cm", 1), gen.Task("extra", v1beta1.KudoOperatorTask, v1beta1.TaskSpec{Package: "extra", OperatorVersion: "1.0.0", EnablingParameter: "EXTRA"}), gen.Serial("deploy", "cm", "extra"))
	env.Must(t, cluster.Create(t.Context(), ov))
	install := []string{"install", "app", "--in-cluster", "--instance", "i", "-n", ns, "--wait"}
	contains(t, kudo(t, 1, append(install, "-p", "EXTRA=true")...), `task "extra" of operatorversion app-1.0.0 needs OperatorVersion extra-1.0.0`)
	kudo(t, 0, install...)
	status(t, await(t, ns, "i", env.PlanEnded("deploy", 1)), "deploy", v1beta1.Complete)
})
