package act

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/settings"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// tarballOfOne is a tarball with one definition.
func tarballOfOne(t *testing.T) []byte {
	t.Helper()
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: pots.example.com}\nspec:\n  group: example.com\n" +
		"  scope: Namespaced\n  names: {kind: Pot, plural: pots, singular: pot}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "pots.yaml", Mode: 0o644, Size: int64(len(definition)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(definition)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestTarballs checks whom a preview asks for a tarball: the author of a package, or of an Instance, cannot have the machine of the user ask
// a host that the administrator has not named, nor use credentials (P6).
func TestTarballs(t *testing.T) {
	body := tarballOfOne(t)
	var asked atomic.Int32
	var other *httptest.Server
	serve := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		_, _ = w.Write(body)
	}
	source := httptest.NewTLSServer(http.HandlerFunc(serve))
	defer source.Close()
	other = httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a host was asked that was not named") }))
	defer other.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw})
	host := strings.TrimPrefix(source.URL, "https://")
	web := func(path string) v1beta1.CRDTarball {
		return v1beta1.CRDTarball{HTTPSource: &v1beta1.HTTPSource{URL: source.URL + path, CABundle: authority}}
	}
	never, guarded := web("/a"), web("/a")
	never.CRDDownloadPolicy, never.HTTPSource.SHA256 = v1beta1.DownloadNever, strings.Repeat("0", 64)
	guarded.HTTPSource.SecretRef = &v1beta1.SecretReference{Name: "token"}
	stored := v1beta1.CRDTarball{ConfigMapSource: &v1beta1.ConfigMapSource{SHA256: strings.Repeat("0", 64), ConfigMaps: []v1beta1.ConfigMapPart{{Name: "crds"}}}}
	for name, tc := range map[string]struct {
		reason  string
		tarball v1beta1.CRDTarball
		hosts   []string
		known   bool
		digest  string
		want    string
		asked   int32
	}{
		"Named":     {"a host that the administrator has named", web("/a"), []string{host}, true, "", "", 1},
		"NoHosts":   {"without a setting, kudo asks any host, and a preview none", web("/a"), nil, true, "", "crd-allowed-hosts", 0},
		"Another":   {"another host than those", web("/a"), []string{"crds.example.com"}, true, "", "is not among the allowed hosts", 0},
		"Unknown":   {"settings that the user may not read", web("/a"), nil, false, "", "you may not read the settings", 0},
		"Redirect":  {"a redirect to another host", web("/away"), []string{host}, true, "", "is not among the allowed hosts", 1},
		"Secret":    {"a Secret is not read, so that none is sent", guarded, []string{host}, true, "", "cannot read Secrets", 0},
		"Never":     {"a policy that asks no one", never, []string{host}, true, "", "crdDownloadPolicy is Never", 0},
		"Digest":    {"content that is not what kudo remembers", web("/a"), []string{host}, true, "sha256:" + strings.Repeat("1", 64), "digest", 1},
		"ConfigMap": {"a ConfigMap of which the content is another one", stored, nil, false, "", "digest", 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			crds := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "crds"), BinaryData: map[string][]byte{"crds.tgz": body}}
			server := apitest.Start(t, crds)
			f := newTarballs(t.Context(), server.Client(), settings.Settings{AllowedHosts: tc.hosts}, tc.known)
			version := gen.Version("ns", "v")
			version.Spec.CRDTarball = &tc.tarball
			wanted, err := f.Resolve(gen.Instance("i", version, nil), "ns", &version.Spec)
			objects := 0
			if err == nil {
				wanted.Digest = tc.digest
				found, failed := f.Fetch(t.Context(), wanted)
				objects, err = len(found), failed
			}
			if name == "Named" {
				if err != nil || objects != 1 {
					t.Fatalf("%s: %d objects, %v", tc.reason, objects, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %d objects, %v", tc.reason, objects, err)
			}
			if asked.Load() != tc.asked {
				t.Errorf("%s: %d requests, want %d", tc.reason, asked.Load(), tc.asked)
			}
		})
	}
}
