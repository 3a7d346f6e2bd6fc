package crdtarball

import (
	"context"
	"errors"
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// T34: which sources need a digest.
func TestDigestRequired(t *testing.T) {
	pin := strings.Repeat("a", 64)
	http := func(url, pin string) v1beta1.CRDTarball {
		return v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: url, SHA256: pin}}
	}
	parts := func(pin string) v1beta1.CRDTarball {
		return v1beta1.CRDTarball{ConfigMapSource: &v1beta1.ConfigMapSource{ConfigMaps: []v1beta1.ConfigMapPart{{Name: "a"}}, SHA256: pin}}
	}
	for _, tc := range []struct {
		reason  string
		tarball v1beta1.CRDTarball
		want    string
	}{
		{"anybody on the way may change what http brings", http("http://example.org/x", ""), "spec.crdTarball.httpSource.sha256 is required"},
		{"in any case", http("HTTP://example.org/x", ""), "spec.crdTarball.httpSource.sha256 is required"},
		{"whoever writes a ConfigMap changes it", parts(""), "spec.crdTarball.configMapSource.sha256 is required"},
		{"with a digest it does not matter", http("http://example.org/x", pin), ""},
		{"the same for ConfigMaps", parts(pin), ""},
		{"what https brings is remembered when it is used first", http("https://example.org/x", ""), ""},
		{"a reference has a digest", v1beta1.CRDTarball{OCISource: &v1beta1.OCISource{Ref: "example.org/x@sha256:" + pin}}, ""},
	} {
		_, err := NewSource(tc.tarball, "ns", Access{})
		var e *Error
		switch {
		case tc.want == "" && err != nil, tc.want != "" && (!errors.As(err, &e) || e.Reason != ReasonSpec || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}

// T34: other content than that of the first use is refused, and the cache is not believed without a digest.
func TestRememberedDigest(t *testing.T) {
	first, second := tarball(t, "a.example.org"), tarball(t, "b.example.org")
	good, other := "sha256:"+sum(first), "sha256:"+sum(second)
	for _, tc := range []struct {
		reason, remembered string
		cached, served     []byte
		policy             v1beta1.CRDDownloadPolicy
		digest, want       string
		requests           int64
	}{
		{"the first use takes what is served", "", nil, first, "", good, "", 1},
		{"whatever the cache has", "", second, first, "", good, "", 1},
		{"Never cannot ask", "", first, first, v1beta1.DownloadNever, "", "no digest is known, without which the cache is not trusted: set spec.crdTarball.httpSource.sha256", 0},
		{"then the cache is believed", good, first, second, "", good, "", 0},
		{"with Never too", good, first, second, v1beta1.DownloadNever, good, "", 0},
		{"but not with other content, which the source may mend", good, second, first, "", good, "", 1},
		{"changed content is refused", good, nil, second, "", "", "content has digest " + other + ", not " + good, 1},
		{"in the cache, too", good, second, second, "", "", "content has digest " + other + ", not " + good, 1},
		{"and with Never", good, second, first, v1beta1.DownloadNever, "", "content has digest " + other + ", not " + good, 0},
		{"Always continues with the good copy", good, first, second, v1beta1.DownloadAlways, good, "", 1},
		{"and is refused without one", good, second, second, v1beta1.DownloadAlways, "", "content has digest " + other + ", not " + good, 1},
		{"what was remembered must be a digest", "sha256:../../x", first, first, "", "", "must be sha256:", 0},
		{"of this kind", "sha512:" + sum(first), first, first, "", "", "must be sha256:", 0},
	} {
		s := serve(t, map[string][]byte{"/x": tc.served})
		c, source := openCache(t, t.TempDir()), fromURL(t, s.URL+"/x")
		if tc.cached != nil {
			if _, err := c.Import(t.Context(), s.URL+"/x", "", strings.NewReader(string(tc.cached))); err != nil {
				t.Fatal(err)
			}
		}
		got, err := c.Resolve(context.Background(), Request{Source: source, Policy: tc.policy, Digest: tc.remembered})
		switch {
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)), tc.want == "" && (err != nil || got.Digest != tc.digest):
			t.Errorf("%s: %+v, %v", tc.reason, got, err)
		case s.requests.Load() != tc.requests:
			t.Errorf("%s: %d requests, not %d", tc.reason, s.requests.Load(), tc.requests)
		}
	}
}
