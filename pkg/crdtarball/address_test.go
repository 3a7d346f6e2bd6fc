package crdtarball

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/reach"
)

// T35: names that stand for addresses inside are refused before a proxy sees them.
func TestHostsThatStandForAddresses(t *testing.T) {
	for _, tc := range []struct {
		reason, host, want string
		named              bool
	}{
		{"a name", "example.org", "", false},
		{"a public address", "1.1.1.1", "", false},
		{"loopback", "127.0.0.1", "loopback or private", false},
		{"loopback that is named", "127.0.0.1", "", true},
		{"IPv6 in brackets", "[::1]", "loopback or private", false},
		{"mapped", "[::ffff:10.1.2.3]", "loopback or private", false},
		{"its name", "localhost", "loopback or private", false},
		{"its name with a dot", "localhost.", "loopback or private", false},
		{"below it", "a.LocalHost", "loopback or private", false},
		{"an address with a dot", "10.0.0.1.", "loopback or private", false},
		{"one number", "2130706433", "a number", false},
		{"hexadecimal", "0x7f000001", "a number", false},
		{"the last part is hexadecimal", "127.0x1", "a number", false},
		{"octal", "0177.0.0.01", "a number", false},
		{"short", "127.1", "a number", false},
		{"digits of another script", "１２７.0.0.1", "ASCII", false},
		{"dots of another script", "127。0。0。1", "ASCII", true},
		{"link-local, even if it is named", "169.254.169.254", "link-local", true},
	} {
		err := checkHost(&url.URL{Scheme: "https", Host: tc.host}, tc.named)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s: %v", tc.reason, tc.host, err)
		}
	}
}

// T35: the address counts at the moment of dialing, whatever the name resolved to before, and whoever led there.
func TestDialRefusals(t *testing.T) {
	inside := serve(t, map[string][]byte{"/x": tarball(t, "a.example.org")})
	port := inside.URL[strings.LastIndex(inside.URL, ":"):]
	for _, tc := range []struct {
		reason, url string
		resolves    [4]byte
		named       []string
		want        string
	}{
		{"an address", inside.URL, [4]byte{}, nil, "the address 127.0.0.1 of the host \"127.0.0.1\" is refused: it is loopback or private"},
		{"a name for loopback", "http://harmless.example.org" + port, [4]byte{127, 0, 0, 1}, nil, "the address 127.0.0.1 of the host \"harmless.example.org\" is refused"},
		{"a name for a neighbor", "http://harmless.example.org", [4]byte{10, 96, 0, 1}, nil, "10.96.0.1 of the host \"harmless.example.org\" is refused"},
		{"a name for link-local, though it is named", "http://harmless.example.org", [4]byte{169, 254, 169, 254}, []string{"harmless.example.org"}, "169.254.169.254 is refused"},
		{"a name that is not the one named", "http://harmless.example.org" + port, [4]byte{127, 0, 0, 1}, []string{"other.example.org"}, "is refused"},
		{"a name that is named", "http://harmless.example.org" + port, [4]byte{127, 0, 0, 1}, []string{"harmless.example.org"}, ""},
		{"a name that is named with another port", "http://harmless.example.org" + port, [4]byte{127, 0, 0, 1}, []string{"harmless.example.org:1"}, "is refused"},
	} {
		access := anyHost(nil)
		access.InsideHosts, access.Resolver = tc.named, nameServer(t, tc.resolves)
		source := newTestSource(t, v1beta1.HTTPSource{URL: tc.url + "/x"}, access)
		_, err := openCache(t, t.TempDir()).Resolve(context.Background(), Request{Source: source})
		var e *Error
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (!errors.As(err, &e) || e.Reason != ReasonRefused || e.Temporary || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// T35: a redirect into the inside is refused like a URL that points there.
func TestRedirectInside(t *testing.T) {
	inside := serve(t, map[string][]byte{"/x": tarball(t, "a.example.org")})
	outside := httptest.NewServer(http.RedirectHandler("http://harmless.example.org"+inside.URL[strings.LastIndex(inside.URL, ":"):]+"/x", http.StatusFound))
	defer outside.Close()
	access := anyHost(nil)
	access.Resolver = nameServer(t, [4]byte{127, 0, 0, 1})
	refuse(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: outside.URL}, access), "", ReasonRefused, "\"harmless.example.org\" is refused")
	if inside.requests.Load() != 0 {
		t.Error("the server inside was asked")
	}
}

// T35: the proxy of the manager's environment was chosen by its administrator; that of a block was not.
func TestProxyInside(t *testing.T) {
	data := tarball(t, "a.example.org")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	defer proxy.Close()
	access := anyHost(nil)
	access.InsideHosts = nil
	named := v1beta1.HTTPSource{URL: "http://nowhere.invalid/x", ProxyURL: proxy.URL}
	refuse(t, openCache(t, t.TempDir()), newTestSource(t, named, access), "", ReasonRefused, "the address 127.0.0.1 of the host \"127.0.0.1\" is refused")
	access.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	resolve(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: "http://nowhere.invalid/x"}, access), "")
	for _, target := range []string{"http://10.0.0.1/x", "http://localhost/x", "http://2130706433/x"} {
		refuse(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: target}, access), "", ReasonRefused, "refused")
	}
}

// FuzzReach wants what stands for a refused address of IPv4 to be refused, too.
func FuzzReach(f *testing.F) {
	f.Add([]byte{10, 0, 0, 1})
	f.Add([]byte{169, 254, 169, 254})
	f.Add(netip.MustParseAddr("64:ff9b::a00:1").AsSlice())
	f.Fuzz(func(t *testing.T, raw []byte) {
		address, ok := netip.AddrFromSlice(raw)
		if !ok {
			return
		}
		got := reach.Of(address)
		if plain := address.Unmap(); got == reach.Public && (plain.IsPrivate() || plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()) {
			t.Errorf("%s is public", address)
		}
		if address.Is4() {
			if mapped := netip.AddrFrom16(address.As16()); reach.Of(mapped) != got {
				t.Errorf("%s and %s differ", address, mapped)
			}
		}
	})
}
