package repository

import (
	"context"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestParseURL checks which URLs can be fetched from, and that no error shows a password.
func TestParseURL(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"https", "https://a.example/x", ""},
		{"http with a port", "http://a.example:8080", ""},
		{"capitals", "HTTPS://a.example/x", ""},
		{"a folder", "file:///x", ""},
		{"a folder of another host", "file://a.example/x", "is not a URL like https://host/folder, or file:///folder"},
		{"a folder without a slash", "file:x", "is not a URL"},
		{"no host", "https:///x", "is not a URL"},
		{"no scheme", "a.example/x", "is not a URL"},
		{"an opaque URL", "https:a.example", "is not a URL"},
		{"another scheme", "oci://a.example/x", "is not a URL"},
		{"no URL", "https://a.example/%zz?token=hunter2", "the URL cannot be read: it must be like https://host/folder"},
		{"a user", "https://me:hunter2@a.example/x?token=hunter2", "the URL of https://a.example/x holds credentials: give them to kubectl kudo repo add by --username"},
		{"a query of another scheme", "ftp://a.example/x?token=hunter2#hunter2", `"ftp://a.example/x" is not a URL`},
	} {
		_, err := parseURL(tc.text)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestIsURL checks what is taken for a URL, and not for a path.
func TestIsURL(t *testing.T) {
	for text, want := range map[string]bool{
		"https://a.example": true, "HTTP://a.example": true, "file:///x": true, "https:/a.example": false, "https": false, "": false,
		"./https://a": false, "oci://a.example": false, "C:/x": false, "httpss://a": false,
	} {
		if got := isURL(text); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
}

// TestOrigin checks which URLs share credentials: those of equal scheme, host and port.
func TestOrigin(t *testing.T) {
	for _, tc := range []struct {
		reason, a, b string
		same         bool
	}{
		{"another folder", "https://a.example/x", "https://a.example/y?z", true},
		{"the port of https", "https://a.example", "https://a.example:443/x", true},
		{"the port of http", "http://a.example", "http://a.example:80", true},
		{"capitals", "https://A.example", "https://a.EXAMPLE", true},
		{"another scheme", "https://a.example", "http://a.example:443", false},
		{"another port", "https://a.example", "https://a.example:8443", false},
		{"a host below", "https://a.example", "https://b.a.example", false},
		{"a host whose name begins alike", "https://a.example", "https://a.example.org", false},
		{"an address of IPv6", "https://[::1]", "https://[::1]:443", true},
	} {
		a, errA := url.Parse(tc.a)
		b, errB := url.Parse(tc.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if same := origin(a) == origin(b); same != tc.same {
			t.Errorf("%s: %s and %s: %t", tc.reason, origin(a), origin(b), same)
		}
	}
}

// TestCheckRedirect checks which redirects are followed.
func TestCheckRedirect(t *testing.T) {
	request := func(text string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, text, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Referer", "https://a.example/?token=hunter2")
		return r
	}
	for _, tc := range []struct {
		reason, from, to string
		times            int
		want             string
	}{
		{"the same scheme", "https://a.example", "https://b.example", 1, ""},
		{"to a safer scheme", "http://a.example", "https://b.example", 1, ""},
		{"as many as are allowed", "https://a.example", "https://b.example", maxRedirects, ""},
		{"one more", "https://a.example", "https://b.example", maxRedirects + 1, "more than 5 redirects"},
		{"to plain http", "https://a.example", "http://b.example/x?token=hunter2", 1, "a redirect from https to http://b.example/x, which is less safe"},
		{"to a file", "http://a.example", "file:///etc/passwd", 1, "a redirect to file:///etc/passwd, which is no http"},
	} {
		var via []*http.Request
		for range tc.times {
			via = append(via, request(tc.from))
		}
		to := request(tc.to)
		err := checkRedirect(to, via)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil && to.Header.Get("Referer") != "" {
			t.Errorf("%s: the URL before is told to the next host", tc.reason)
		}
	}
}

// TestCheckTransport checks which dependencies would give away the safety of the package that has them.
func TestCheckTransport(t *testing.T) {
	for _, tc := range []struct{ reason, from, to, want string }{
		{"the same scheme", "https://a.example/a.tgz", "https://b.example/b.tgz", ""},
		{"plain http both", "http://a.example/a.tgz", "http://b.example/b.tgz", ""},
		{"to a safer scheme", "http://a.example/a.tgz", "https://b.example/b.tgz", ""},
		{"a name of the repository", "https://a.example/a.tgz", "b", ""},
		{"a package of this disk may name any URL", "/home/me/a", "http://b.example/b.tgz", ""},
		{"from https to http", "https://a.example/a.tgz", "http://b.example/b.tgz?token=hunter2", "http://b.example/b.tgz: a package that came over https cannot depend on one over plain http"},
		{"capitals hide nothing", "HTTPS://a.example/a.tgz", "HTTP://b.example/b.tgz", "cannot depend on one over plain http"},
		{"unless the digest is known", "https://a.example/a.tgz", "http://b.example/b.tgz#sha256=00", ""},
		{"another fragment is no digest", "https://a.example/a.tgz", "http://b.example/b.tgz#x", "unless its digest follows, as #sha256=<hex>"},
		{"files of this disk", "https://a.example/a.tgz", "file:///etc/a.tgz", "cannot refer to files of this disk"},
		{"files of this disk by plain http", "http://a.example/a.tgz", "file:///etc/a.tgz#sha256=00", "cannot refer to files of this disk"},
		{"a file that names a URL", "file:///a.tgz", "http://b.example/b.tgz", ""},
	} {
		err := checkTransport(tc.from, tc.to)
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestFragmentOfURL checks that a digest with a slip is an error: a user who names a digest gets no archive without it.
func TestFragmentOfURL(t *testing.T) {
	dir := t.TempDir()
	packed := pack(t, files("web"))
	write(t, dir, map[string]string{"web.tgz": packed})
	file := "file://" + filepath.ToSlash(filepath.Join(dir, "web.tgz"))
	digest := digestOf([]byte(packed))
	for _, tc := range []struct{ reason, fragment, want string }{
		{"no digest", "", ""},
		{"the digest", "#sha256=" + digest, ""},
		{"in capitals", "#sha256=" + strings.ToUpper(digest), ""},
		{"an empty fragment", "#", ""},
		{"another digest", "#sha256=" + strings.Repeat("00", 32), "it was damaged or replaced"},
		{"half a digest", "#sha256=" + digest[:32], "is no SHA-256 in hex"},
		{"an empty digest", "#sha256=", "is no SHA-256 in hex"},
		{"a colon", "#sha256:" + strings.Repeat("00", 32), "what follows # is no digest"},
		{"another spelling", "#SHA256=" + strings.Repeat("00", 32), "what follows # is no digest"},
		{"another function", "#sha512=" + strings.Repeat("00", 64), "what follows # is no digest: write it as #sha256=<hex>"},
	} {
		source := NewRemote(Home{t.TempDir()}, 0, nil)
		found, err := source.Find(context.Background(), Request{Name: file + tc.fragment}, nil)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
		}
		if err == nil && found.Package.Operator.Name != "web" {
			t.Errorf("%s: got %s", tc.reason, found.Package.Operator.Name)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestURLOf checks the URLs of an index, which may be relative to it.
func TestURLOf(t *testing.T) {
	for _, tc := range []struct{ reason, base, name, want string }{
		{"relative", "", "a.tgz", "a.tgz"},
		{"in a folder", "", "x/a.tgz", "x/a.tgz"},
		{"a colon is no scheme", "", "a:1.tgz", "./a:1.tgz"},
		{"a blank and a question mark", "", "a b?.tgz", "a%20b%3F.tgz"},
		{"behind a base", "https://a.example/repo", "x/a.tgz", "https://a.example/repo/x/a.tgz"},
		{"slashes at its end", "https://a.example/repo//", "a.tgz", "https://a.example/repo/a.tgz"},
		{"a colon behind a base", "https://a.example", "a:1.tgz", "https://a.example/a:1.tgz"},
	} {
		if got := urlOf(tc.base, tc.name); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestAbsolute checks that entries keep their archives when they move to another index.
func TestAbsolute(t *testing.T) {
	r := Repository{Name: "r", URL: "https://a.example/repo/"}
	for _, tc := range []struct{ reason, text, want, wrong string }{
		{"relative", "x/a.tgz", "https://a.example/repo/x/a.tgz", ""},
		{"from the root", "/a.tgz", "https://a.example/a.tgz", ""},
		{"of another host", "http://b.example/a.tgz", "http://b.example/a.tgz", ""},
		{"of the same scheme", "//b.example/a.tgz", "https://b.example/a.tgz", ""},
		{"the folder above", "../a.tgz", "https://a.example/a.tgz", ""},
		{"a file of this disk", "file:///etc/passwd", "", "package a 1.0.0: file:///etc/passwd: an index from elsewhere cannot refer to files of this disk"},
		{"no URL", "%zz", "", "package a 1.0.0: the index has a URL that cannot be read"},
		{"credentials", "https://me:hunter2@b.example/a.tgz", "", "holds credentials"},
	} {
		entries := map[string][]Entry{"a": {{Name: "a", OperatorVersion: "1.0.0", URLs: []string{tc.text}}}}
		err := Absolute(r, entries)
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.wrong)
			}
			continue
		}
		if got := entries["a"][0].URLs[0]; err != nil || got != tc.want {
			t.Errorf("%s: got %q (%v), want %q", tc.reason, got, err, tc.want)
		}
	}
}

// TestNewClientCertificates checks that a file without certificates is no silent lack of trust.
func TestNewClientCertificates(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"text.pem": "no certificate", "large.pem": strings.Repeat("x", 1<<20+1)})
	for name, want := range map[string]string{"text.pem": "text.pem: it holds no certificate in PEM", "large.pem": "bytes allowed", "nowhere.pem": "no such file"} {
		_, err := NewClient(Repository{Name: "r", URL: "https://a.example", CAFile: filepath.Join(dir, name)}, 0)
		if err == nil || !strings.Contains(err.Error(), "certificates of repository r: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
