package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/registry"
	"kudo.dev/kudo/test/ocitest"
)

// mirroring returns a home whose registry has mirrors.
func mirroring(t *testing.T, mirrors ...Mirror) Home {
	t.Helper()
	home := Home{filepath.Join(t.TempDir(), "home")}
	if err := home.Change(t.Context(), func(list *Repositories) error {
		for _, m := range mirrors {
			if err := list.SetMirror(m); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return home
}

// TestMirrors checks S12: a package is read from the mirror, with its dependencies and signatures, under its own name; the registry gets a
// request only if that is allowed.
func TestMirrors(t *testing.T) {
	origin, mirror := ocitest.New(t, true), ocitest.New(t, true)
	prefix, place := "oci://"+origin.Host()+"/kudo", "oci://"+mirror.Host()+"/copies/kudo"
	options := registry.Options{Roots: rootsOf(t, origin, mirror), ConfigFile: ocitest.ConfigFile(t, "", origin.Host(), mirror.Host())}
	writer := source(t, Home{filepath.Join(t.TempDir(), "home")}, options)
	pushFiles(t, writer, place, files("db"))
	web := pushFiles(t, writer, place, depending("web", "package: '"+prefix+"/db'"))
	only := pushFiles(t, writer, prefix, files("only"))
	web.Base = prefix
	resolve := func(home Home, r Reference) ([]*operators.Package, error) {
		chain := Chain{Local{Base: t.TempDir(), Names: true}, source(t, home, options)}
		found, err := chain.Resolve(t.Context(), Request{Name: r.String()})
		if err != nil {
			return nil, err
		}
		return chain.WithDependencies(t.Context(), found)
	}
	strict, lenient := mirroring(t, Mirror{Prefix: prefix, To: []string{place}}), mirroring(t, Mirror{Prefix: prefix + "/", To: []string{place + "/"}, Fallback: true})
	origin.Requests()
	for _, r := range []Reference{web, {Base: prefix, Name: "web"}} {
		packages, err := resolve(strict, r)
		if err != nil || len(packages) != 2 || packages[0].Operator.Name != "db" || packages[1].Provenance == nil ||
			!strings.HasPrefix(packages[1].Provenance.Source, prefix+"/web") {
			t.Fatalf("%s from the mirror: %v, %v", r, packages, err)
		}
	}
	if _, err := resolve(strict, only); err == nil {
		t.Error("a package that the mirror does not have is found")
	}
	if requests, _ := origin.Requests(); len(requests) > 0 {
		t.Errorf("the registry was asked: %q", requests)
	}
	if _, err := resolve(lenient, only); err != nil {
		t.Errorf("with a fallback: %v", err)
	}
	if requests, _ := origin.Requests(); len(requests) == 0 {
		t.Error("the fallback was not asked")
	}
	before, _ := mirror.Requests()
	s := source(t, strict, options)
	pushed := pushFiles(t, s, prefix, files("new"))
	if after, _ := mirror.Requests(); len(after) > 0 || pushed.Base != prefix {
		t.Errorf("what is pushed goes to the registry: %q (before: %d)", after, len(before))
	}
}

// TestMirrorsInOrder checks S12: several mirrors are asked in their order, the longest prefix counts, and a mirror cannot exchange what a
// digest names.
func TestMirrorsInOrder(t *testing.T) {
	first, second, origin := t.TempDir(), t.TempDir(), "oci://registry.invalid/kudo"
	s := source(t, Home{filepath.Join(t.TempDir(), "home")}, registry.Options{})
	r := pushFiles(t, s, "layout:"+second, files("web"))
	pushFiles(t, s, "layout:"+first, files("other"))
	r.Base = origin
	find := func(mirrors ...Mirror) (*Found, error) {
		return Chain{source(t, mirroring(t, mirrors...), registry.Options{})}.Resolve(t.Context(), Request{Name: r.String()})
	}
	found, err := find(Mirror{Prefix: origin, To: []string{"layout:" + first, "layout:" + second}})
	if err != nil || found.Origin != r.String() {
		t.Errorf("from the second place: %+v, %v", found, err)
	}
	if _, err := find(Mirror{Prefix: "oci://registry.invalid", To: []string{"layout:" + second}}, Mirror{Prefix: origin, To: []string{"layout:" + first}}); err == nil {
		t.Error("a shorter prefix counts beside a longer one")
	}
	if _, err := find(Mirror{Prefix: "oci://registry.invalid/ku", To: []string{"layout:" + second}}); err == nil || !strings.Contains(err.Error(), "registry.invalid") {
		t.Errorf("a part of a path is no prefix: %v", err)
	}
	blobs, err := os.ReadDir(second + "/web/blobs/sha256")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if err := os.WriteFile(second+"/web/blobs/sha256/"+b.Name(), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := find(Mirror{Prefix: origin, To: []string{"layout:" + second}}); err == nil {
		t.Error("a mirror has exchanged a package")
	}
}

// TestMirrorVersions checks S12: a range chooses from the versions of all mirrors, and hosts are compared without letter case and the port
// of TLS.
func TestMirrorVersions(t *testing.T) {
	first, second := "layout:"+t.TempDir(), "layout:"+t.TempDir()
	s := source(t, Home{filepath.Join(t.TempDir(), "home")}, registry.Options{})
	pushFiles(t, s, first, files("web"))
	newer := files("web")
	newer["operator.yaml"] = strings.Replace(newer["operator.yaml"], "operatorVersion: 0.1.0", "operatorVersion: 0.1.5", 1)
	want := pushFiles(t, s, second, newer)
	home := mirroring(t, Mirror{Prefix: "oci://Registry.invalid/kudo", To: []string{first, second}})
	for _, name := range []string{"oci://registry.invalid/kudo/web", "oci://REGISTRY.invalid:443/kudo/web"} {
		found, err := Chain{source(t, home, registry.Options{})}.Resolve(t.Context(), Request{Name: name, OperatorVersion: "^0.1.0"})
		if err != nil || found.source.Digest != want.Digest {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	direct := source(t, home, registry.Options{})
	direct.Direct = true
	if _, err := (Chain{direct}).Resolve(t.Context(), Request{Name: "oci://registry.invalid/kudo/web:0.1.0"}); err == nil {
		t.Error("what is signed is chosen by a mirror")
	}
}

// TestMirrorSignatures checks S12 and S13: signatures are found in the mirror that has them.
func TestMirrorSignatures(t *testing.T) {
	without, with, origin := "layout:"+t.TempDir(), "layout:"+t.TempDir(), "oci://registry.invalid/kudo"
	s := source(t, Home{filepath.Join(t.TempDir(), "home")}, registry.Options{})
	signed := signedPackage(t, s, with, `{"a":1}`)
	if _, _, err := s.Push(t.Context(), signed.Artifact, without, false); err != nil {
		t.Fatal(err)
	}
	mirrored := source(t, mirroring(t, Mirror{Prefix: origin, To: []string{without, with}}), registry.Options{})
	r := signed.Reference
	r.Base = origin
	pulled, err := mirrored.Pull(t.Context(), r, Versions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(signaturesText(t, s, signed), signaturesText(t, mirrored, pulled)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestMirrorRefuses checks which mirrors are refused, also in a file that was edited by hand.
func TestMirrorRefuses(t *testing.T) {
	many := make([]string, maxMirrors+1)
	for i := range many {
		many[i] = "layout:a"
	}
	for _, tc := range []struct {
		reason string
		m      Mirror
		want   string
	}{
		{"a repository of archives", Mirror{Prefix: "https://a.example", To: []string{"oci://b.example"}}, "only registries have mirrors"},
		{"no place", Mirror{Prefix: "oci://a.example"}, "name 1 to 8 places"},
		{"too many places", Mirror{Prefix: "oci://a.example", To: many}, "name 1 to 8 places"},
		{"a path", Mirror{Prefix: "oci://a.example", To: []string{"/tmp"}}, "it must begin with"},
		{"itself", Mirror{Prefix: "oci://a.example/x", To: []string{"oci://a.example/x/"}}, "its own mirror"},
	} {
		list := &Repositories{}
		if err := list.SetMirror(tc.m); err == nil || !strings.Contains(err.Error(), tc.want) || len(list.Mirrors) > 0 {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
	home := Home{filepath.Join(t.TempDir(), "home")}
	if err := home.Change(t.Context(), func(list *Repositories) error {
		list.Mirrors = []Mirror{{Prefix: "oci://a.example", To: []string{"/tmp"}}}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := (Chain{source(t, home, registry.Options{})}).Resolve(t.Context(), Request{Name: "oci://a.example/web:1.0.0"}); err == nil || !strings.Contains(err.Error(), "mirror of \"oci://a.example\"") {
		t.Errorf("a file that was edited: %v", err)
	}
	list := &Repositories{}
	if err := list.RemoveMirror("oci://a.example"); err == nil || !strings.Contains(err.Error(), "repo mirror list") {
		t.Errorf("a mirror that is not there: %v", err)
	}
}
