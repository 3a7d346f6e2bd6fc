package repository

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const zeros = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// TestParseReference checks S9 and S11: the parts of references, and which texts are none.
func TestParseReference(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         Reference
	}{
		{"a registry", "oci://r.example.org/kudo/web", Reference{Base: "oci://r.example.org/kudo", Name: "web"}},
		{"no path", "oci://r.example.org/web:1.0.0", Reference{Base: "oci://r.example.org", Name: "web", Tag: "1.0.0"}},
		{"a port is no tag", "oci://r.example.org:5000/web", Reference{Base: "oci://r.example.org:5000", Name: "web"}},
		{"a tag with appVersion, and a digest", "oci://localhost:5000/a/b/web:17_1.0.0@" + zeros, Reference{Base: "oci://localhost:5000/a/b", Name: "web", Tag: "17_1.0.0", Digest: zeros}},
		{"a folder", "layout:offline/web:1.0.0", Reference{Base: "layout:offline", Name: "web", Tag: "1.0.0"}},
		{"a folder by its absolute path", "layout:/a/web@" + zeros, Reference{Base: "layout:/a", Name: "web", Digest: zeros}},
		{"a folder here", "layout:web:1.0.0", Reference{Base: "layout:.", Name: "web", Tag: "1.0.0"}},
		{"a folder whose path has a colon", "layout:a:b/web", Reference{Base: "layout:a:b", Name: "web"}},
	} {
		got, err := ParseReference(tc.text)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", tc.reason, err, diff)
		}
		if again, err := ParseReference(got.String()); err != nil || again != got {
			t.Errorf("%s: %s comes back as %+v, %v", tc.reason, got, again, err)
		}
	}
	for _, text := range []string{"", "web", "https://r.example.org/web", "oci://", "oci://r.example.org", "oci://r.example.org/", "oci://a:b@r.example.org/web",
		"oci://r.example.org/web@sha512:00", "oci://r.example.org/web@" + zeros[:20], "oci://r.example.org/web:", "oci://r.example.org/web:a b",
		"oci://r.example.org/../web", "oci://r.example.org/kudo/..", "oci://r.example.org/Kudo/web", "oci://r.example.org/web?a=b", "oci://r.example.org/a/../../web",
		"layout:", "layout:..", "layout:a/..", "layout:a/", "layout:a/web:..", "OCI://r.example.org/web"} {
		if r, err := ParseReference(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		}
	}
	for text, want := range map[string]string{
		"layout:/x/a@b":             "what follows @ must be a digest, sha256:<hex>; if the @ is part of the path, name the folder by another path",
		"layout:/x/a@b/web":         "if the @ is part of the path, name the folder by another path",
		"oci://r.example.org/web@1": "what follows @ must be a digest",
	} {
		if _, err := ParseReference(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for base, want := range map[string]string{
		"layout:/x/a@b": "name a folder whose path has an @ by another path", "layout:": "name the folder", "web": "it must begin with oci:// or layout:",
	} {
		if _, err := Within(base, "web", "1.0.0"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", base, err, want)
		}
	}
	for _, base := range []string{"", "layout:", "https://a", "oci://", "oci://a/b@" + zeros, "oci://a/b?c", "oci://a/b:c"} {
		if r, err := Within(base, "web", "1.0.0"); err == nil {
			t.Errorf("%q is the place %+v", base, r)
		}
	}
}

// TestForeignPlaces checks that a package from elsewhere names neither files of this disk nor what nothing vouches for.
func TestForeignPlaces(t *testing.T) {
	for _, tc := range []struct{ reason, from, to, want string }{
		{"from a registry to a file", "oci://r.example.org/web@" + zeros, "file:///etc/a.tgz", "cannot refer to files of this disk"},
		{"from a folder to a file", "layout:offline/web@" + zeros, "file:///etc/a.tgz", "cannot refer to files of this disk"},
		{"from a registry to plain http", "oci://r.example.org/web@" + zeros, "http://example.org/a.tgz", "came over oci cannot depend on one over plain http"},
		{"the same with a digest", "oci://r.example.org/web@" + zeros, "http://example.org/a.tgz#sha256=00", ""},
		{"from a registry to https", "oci://r.example.org/web@" + zeros, "https://example.org/a.tgz", ""},
		{"from https to a registry", "https://example.org/a.tgz", "oci://r.example.org/web", ""},
	} {
		if err := checkTransport(tc.from, tc.to); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// FuzzParseReference checks that a reference that is read names no folder but that of its name, and is read again as it is written.
func FuzzParseReference(f *testing.F) {
	for _, text := range []string{"oci://r.example.org:5000/a/web:1@" + zeros, "layout:a/../web:1.0.0", `layout:c:\a\web`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReference(text)
		if err != nil {
			return
		}
		again, err := ParseReference(r.String())
		if err != nil || again.Repository() != r.Repository() || again.Tag != r.Tag || again.Digest != r.Digest || !isPackageName(r.Name) {
			t.Errorf("%q is %+v, and comes back as %+v (%v)", text, r, again, err)
		}
	})
}
