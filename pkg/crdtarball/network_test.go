package crdtarball

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestLinkLocalBehindName asks for a host whose name resolves to a link-local address.
func TestLinkLocalBehindName(t *testing.T) {
	access := anyHost(nil)
	access.Resolver = nameServer(t, [4]byte{169, 254, 169, 254})
	source := newTestSource(t, v1beta1.HTTPSource{URL: "http://harmless.example.org/x"}, access)
	if e := refuse(t, openCache(t, t.TempDir()), source, "", ReasonRefused, "169.254.169.254 is refused"); e.Temporary {
		t.Errorf("%v is temporary, want final", e)
	}
}

// nameServer is a DNS server that answers every question with an address.
func nameServer(t *testing.T, address [4]byte) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) == 0 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type}, Body: &dnsmessage.AResource{A: address}}}
			}
			if answer, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func TestHosts(t *testing.T) {
	hosts := Hosts{Names: []string{"example.org", "*.Mirror.org", "port.org:8443", " "}}
	for raw, want := range map[string]bool{
		"https://example.org/x": true, "https://EXAMPLE.org.:8443": true, "https://a.example.org": false, "https://a.mirror.org": true, "https://mirror.org": false,
		"https://port.org:8443": true, "https://port.org": false, "https://evil-example.org": false, "https://example.org.evil": false,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := hosts.Allows(u); got != want {
			t.Errorf("%s: %t", raw, got)
		}
	}
	s := serve(t, map[string][]byte{"/x": tarball(t, "a.b")})
	refuse(t, openCache(t, t.TempDir()), newTestSource(t, v1beta1.HTTPSource{URL: s.URL + "/x"}, Access{}), "", ReasonRefused, "not among the allowed hosts")
	if s.requests.Load() != 0 {
		t.Error("a request was sent without allowed hosts")
	}
}

func TestSpecRefusals(t *testing.T) {
	for url, want := range map[string]string{
		"ftp://x/y": "must begin with https://", "https://u:hidden@x/y": "put them into a Secret", "https:///x": "has no host", "://": "is no URL", "x.tgz": "must begin with",
	} {
		_, err := NewSource(v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: url}}, "ns", Access{})
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonSpec || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, tarball := range []v1beta1.CRDTarball{{}, {HTTPSource: &v1beta1.HTTPSource{}, OCISource: &v1beta1.OCISource{}}, {ConfigMapSource: &v1beta1.ConfigMapSource{}},
		{HTTPSource: &v1beta1.HTTPSource{URL: "https://x", SHA256: "ABC"}}, {OCISource: &v1beta1.OCISource{Ref: "registry.org/x:tag"}}} {
		if _, err := NewSource(tarball, "ns", Access{}); err == nil {
			t.Errorf("%+v is refused", tarball)
		}
	}
}

func TestSecretRefusals(t *testing.T) {
	secrets := map[string]map[string]string{"ns/both": {"username": "u", "token": "t"}, "ns/none": {"user": "u"}, "ns/pair": {"tls.crt": "hidden"}}
	s := serve(t, nil)
	for name, want := range map[string]string{"both": "both username and token", "none": "has none of the keys", "pair": "are no matching certificate", "gone": "does not exist"} {
		spec := v1beta1.HTTPSource{URL: s.URL, SecretRef: &v1beta1.SecretReference{Name: name}}
		e := refuse(t, openCache(t, t.TempDir()), newTestSource(t, spec, anyHost(secrets)), "", ReasonCredentials, want)
		if strings.Contains(e.Error(), "hidden") || s.requests.Load() != 0 {
			t.Errorf("%s: %v", name, e)
		}
	}
}
