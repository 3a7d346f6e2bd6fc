package integration

import (
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/ocitest"
)

var _ = Describe("Packages of an OCI registry are installed and upgraded:", Ordered, ContinueOnFailure, Label("oci"), func() {
	var (
		registry *ocitest.Registry
		flags    []string
		base     string
		first    string // the reference of unit 1.0.0, with its digest
	)
	BeforeAll(func() {
		t := GinkgoTB()
		registry = ocitest.New(t, true)
		base = "oci://" + registry.Host() + "/kudo"
		flags = []string{"--registry-ca", ocitest.CAFile(t, registry.Server), "--registry-config", ocitest.ConfigFile(t, "", registry.Host())}
		push := func(files map[string]string) string {
			lines := strings.Split(strings.TrimSpace(kudo(t, 0, slices.Concat([]string{"package", "push", write(t, files), base}, flags)...)), "\n")
			return lines[len(lines)-1] // after warnings
		}
		for _, version := range []string{"0.1.0", "0.1.5", "0.2.0"} {
			push(unit("leaf", version))
		}
		first = push(unit("top", "1.0.0", "package: leaf, operatorVersion: ~0.1.0"))
		push(unit("top", "1.2.0", "package: '"+base+"/leaf', operatorVersion: ^0.2"))
		push(unit("top", "2.0.0"))
	})
	wait := []string{"--wait", "--wait-time", "180"}
	on := func(ns string, args ...string) []string {
		return slices.Concat(args, []string{"--instance", "i", "-n", ns, "--home", GinkgoTB().TempDir()}, wait)
	}

	It("by tag, by digest and by range, with what they depend on, and then to the highest version (S9)", func() {
		t := GinkgoTB()
		for _, tc := range []struct {
			reason, reference string
			args              []string
			want              map[string]string
		}{
			{"a tag", base + "/top:1.0.0", nil, map[string]string{"i": "1.0.0", "i-leaf": "0.1.5"}},
			{"a digest", first[:strings.Index(first, ":1.0.0")] + first[strings.Index(first, "@"):], nil, map[string]string{"i": "1.0.0"}},
			{"a range", base + "/top", []string{"--operator-version", "^1.0"}, map[string]string{"i": "1.2.0", "i-leaf": "0.2.0"}},
		} {
			By(tc.reason)
			ns := cluster.NewNamespace(t)
			kudo(t, 0, slices.Concat(on(ns, "install", tc.reference), tc.args, flags)...)
			runs(t, ns, tc.want)
			kudo(t, 0, slices.Concat(on(ns, "upgrade", base+"/top"), flags)...)
			runs(t, ns, map[string]string{"i": "2.0.0"})
		}
	})

	It("from a folder that was carried over an air gap, without a registry (S11)", func() {
		t := GinkgoTB()
		offline := "layout:" + filepath.ToSlash(t.TempDir())
		kudo(t, 0, slices.Concat([]string{"package", "copy", "--with-dependencies", base + "/leaf:0.1.5", offline}, flags)...)
		kudo(t, 0, "package", "push", write(t, unit("top", "3.0.0", "package: leaf")), offline)
		registry.Requests()
		ns := cluster.NewNamespace(t)
		kudo(t, 0, on(ns, "install", offline+"/top")...)
		runs(t, ns, map[string]string{"i": "3.0.0", "i-leaf": "0.1.5"})
		if requests, _ := registry.Requests(); len(requests) > 0 {
			t.Errorf("the registry was asked %q", requests)
		}
	})

	It("from a registry that is a repository (S10)", func() {
		t := GinkgoTB()
		home, ns := t.TempDir(), cluster.NewNamespace(t)
		kudo(t, 0, "repo", "add", "ours", base, "--home", home)
		if out := kudo(t, 0, slices.Concat([]string{"install", "top", "--operator-version", "<2", "--instance", "i", "-n", ns, "--home", home}, flags, wait)...); !strings.Contains(out, "top-1.2.0 created") {
			t.Errorf("installed: %s", out)
		}
		runs(t, ns, map[string]string{"i": "1.2.0", "i-leaf": "0.2.0"})
	})

	It("but not what a hostile registry makes of a tag, and nothing is created then (S31)", func() {
		t := GinkgoTB()
		ns := cluster.NewNamespace(t)
		manifest := registry.Blob("kudo/top", registry.Tags()["kudo/top:1.0.0"])
		registry.SetTag("kudo/top:7.0.0", manifest)
		out := kudo(t, 1, slices.Concat([]string{"install", base + "/top", "--instance", "i", "-n", ns, "--home", t.TempDir()}, flags)...)
		if want := "top:7.0.0 holds version 1.0.0: the tag was moved, or the push was wrong"; !strings.Contains(out, want) {
			t.Errorf("%s, want %q", out, want)
		}
		versions := &v1beta1.OperatorVersionList{}
		if err := cluster.List(t.Context(), versions, client.InNamespace(ns)); err != nil || len(versions.Items) > 0 {
			t.Errorf("%d OperatorVersions are there (%v)", len(versions.Items), err)
		}
	})
})
