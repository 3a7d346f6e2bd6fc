package crdtarball

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func TestDamage(t *testing.T) {
	s := serve(t, map[string][]byte{"/x": tarball(t, "a.example.org")})
	for name, tc := range map[string]struct {
		reason string
		damage func(entry, content string) error
	}{
		"File": {"a file that changed", func(_, c string) error { return os.WriteFile(filepath.Join(c, "files/LICENSE"), []byte("paid"), 0o600) }},
		"Cut":  {"a tarball that is shorter", func(_, c string) error { return os.Truncate(filepath.Join(c, tarballName), 10) }},
		"Gone": {"a file that was removed", func(_, c string) error { return os.Remove(filepath.Join(c, "files/LICENSE")) }},
		"More": {"a file too many", func(_, c string) error {
			return os.WriteFile(filepath.Join(c, "files/x.yaml"), []byte(crd("x.y")), 0o600)
		}},
		"Link": {"a link in place of a file", func(_, c string) error {
			name := filepath.Join(c, "files/LICENSE")
			return errors.Join(os.Remove(name), os.Symlink("/etc/hostname", name))
		}},
		"Meta":   {"meta.json that is no JSON", func(e, _ string) error { return os.WriteFile(filepath.Join(e, metaName), []byte("{"), 0o600) }},
		"NoMeta": {"no meta.json", func(e, _ string) error { return os.Remove(filepath.Join(e, metaName)) }},
		"MetaDir": {"a folder meta.json", func(e, _ string) error {
			name := filepath.Join(e, metaName)
			return errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o755))
		}},
		"MetaLeave": {"meta.json that names something else", func(e, _ string) error {
			return os.WriteFile(filepath.Join(e, metaName), []byte(`{"version":1,"content":"content-/../.."}`), 0o600)
		}},
		"Content":  {"no content", func(_, c string) error { return os.RemoveAll(c) }},
		"NoFolder": {"a file in place of the entry", func(e, _ string) error { return errors.Join(os.RemoveAll(e), os.WriteFile(e, nil, 0o600)) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, c := range []*Cache{openCache(t, dir), openCache(t, dir)} {
				source := fromURL(t, s.URL+"/x", func(h *v1beta1.HTTPSource) { h.SHA256 = sum(s.tarballs["/x"]) })
				got := resolve(t, c, source, "")
				m, err := c.readMeta(got.Key)
				if err != nil {
					t.Fatal(err)
				}
				if err := tc.damage(c.path(got.Key), c.path(got.Key, m.Content)); err != nil {
					t.Fatal(err)
				}
				refuse(t, c, source, v1beta1.DownloadNever, ReasonNotCached, "has a damaged copy")
				before := s.requests.Load()
				if got := resolve(t, c, source, ""); !got.Fetched || s.requests.Load() != before+1 {
					t.Errorf("%s is fetched anew: %+v", tc.reason, got)
				}
				if got := resolve(t, c, source, v1beta1.DownloadNever); len(c.unreferencedFiles(got.Key, mustMeta(t, c, got.Key).Content)) != 0 {
					t.Errorf("%s leaves something", tc.reason)
				}
			}
		})
	}
}

func mustMeta(t testing.TB, c *Cache, key string) *meta {
	t.Helper()
	m, err := c.readMeta(key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEviction(t *testing.T) {
	dir := t.TempDir()
	big := func(name string) []byte {
		return pack(t, file(name+".yaml", crd(name+".x")), file("fill", strings.Repeat("some text ", 1000)))
	}
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	c := openCache(t, dir, func(o *Options) { o.MaxBytes, o.Metrics = 25_000, metrics })
	sources := map[string]*rawSource{}
	for _, name := range []string{"a", "b", "c"} {
		sources[name] = &rawSource{identity: name, data: big(name)}
	}
	resolve(t, c, sources["a"], "")
	resolve(t, c, sources["b"], "")
	old := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(c.path(Key("raw:a")), old, old), os.Chtimes(c.path(Key("raw:b")), old.Add(time.Minute), old.Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	resolve(t, c, sources["a"], "") // used just now
	resolve(t, c, sources["c"], "")
	has := func(c *Cache) (names string) {
		for _, name := range []string{"a", "b", "c"} {
			if c.has(Key("raw:" + name)) {
				names += name
			}
		}
		return names
	}
	if got := has(c); got != "ac" {
		t.Errorf("the one used least recently goes: %s", got)
	}
	// One that is in use stays, though it was used least recently.
	if err := os.Chtimes(c.path(Key("raw:a")), old, old); err != nil {
		t.Fatal(err)
	}
	done := c.use(t.Context(), Key("raw:a"))
	resolve(t, c, sources["b"], "")
	done()
	if got := has(c); got != "ab" {
		t.Errorf("one in use stays: %s", got)
	}
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		m := family.GetMetric()[0]
		got[family.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	delete(got, "kudo_crd_tarball_received_bytes_total")
	delete(got, "kudo_crd_tarball_cache_bytes")
	want := map[string]float64{"kudo_crd_tarball_fetches_total": 4, "kudo_crd_tarball_hits_total": 1, "kudo_crd_tarball_evictions_total": 2, "kudo_crd_tarball_cache_entries": 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics -want +got:\n%s", diff)
	}
}
