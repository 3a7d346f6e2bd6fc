package crdtarball

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func TestImportExport(t *testing.T) {
	data := tarball(t, "a.example.org")
	const url = "https://mirror.example.org/crds.tgz?token=hidden"
	c := openCache(t, t.TempDir())
	imported, err := c.Import(context.Background(), url, sum(data), bytes.NewReader(data))
	if err != nil || imported.Key != Key(url) || strings.Contains(imported.URL, "hidden") {
		t.Fatalf("%+v, %v", imported, err)
	}
	got := resolve(t, c, fromURL(t, url), v1beta1.DownloadNever)
	if diff := cmp.Diff([]string{"a.example.org"}, got.Names); diff != "" {
		t.Errorf("what was imported needs no network: -want +got:\n%s", diff)
	}
	for _, name := range []string{url, Key(url), Key(url)[:8]} {
		key, err := c.Find(name)
		if err != nil || key != Key(url) {
			t.Errorf("%s is %s, %v", name, key, err)
		}
	}
	var out bytes.Buffer
	if _, err := c.Export(t.Context(), Key(url), &out); err != nil || !bytes.Equal(out.Bytes(), data) {
		t.Errorf("the same bytes come out: %v", err)
	}
	for name, bad := range map[string]struct {
		data []byte
		pin  string
	}{"Damaged": {data[:100], ""}, "Pin": {data, sum(nil)}, "Empty": {nil, ""}} {
		if _, err := c.Import(context.Background(), url, bad.pin, bytes.NewReader(bad.data)); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
		resolve(t, c, fromURL(t, url), v1beta1.DownloadNever)
	}
	if _, err := c.Find("https://other.example.org?token=hidden"); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("what is not there is not found: %v", err)
	}
	entries, err := c.Verify()
	if err != nil || len(entries) != 1 || entries[0].Problem != "" || len(entries[0].CRDs) != 1 {
		t.Errorf("%+v, %v", entries, err)
	}
	if err := os.Truncate(c.path(Key(url), mustMeta(t, c, Key(url)).Content, tarballName), 5); err != nil {
		t.Fatal(err)
	}
	entries, err = c.Verify()
	if err != nil || entries[0].Problem != "crds.tar.gz is not what meta.json says" {
		t.Errorf("%+v, %v", entries, err)
	}
	if _, err := c.Export(t.Context(), Key(url), &out); err == nil {
		t.Error("what is damaged is not exported")
	}
	if err := c.Remove(Key(url)); err != nil {
		t.Error(err)
	}
	checkNothing(t, c.options.Dir)
}

func TestRemoveInUse(t *testing.T) {
	c := openCache(t, t.TempDir())
	resolve(t, c, &rawSource{data: tarball(t, "a.example.org")}, "")
	done := c.use(t.Context(), Key("raw:"))
	var e *Error
	if err := c.Remove(Key("raw:")); !errors.As(err, &e) || !e.Temporary || !strings.Contains(err.Error(), "is in use") {
		t.Errorf("an entry in use stays: %v", err)
	}
	done()
	if err := c.Remove(Key("raw:")); err != nil {
		t.Error(err)
	}
}

func TestDisplay(t *testing.T) {
	for raw, want := range map[string]string{
		"https://u:p@example.org/x?a=b#c":    "https://example.org/x?…",
		"https://example.org/a@b":            "https://example.org/a@b",
		"https://example.org":                "https://example.org",
		"oci://reg.org/x@sha256:00":          "oci://reg.org/x@sha256:00",
		"configmap://ns/a:k,b":               "configmap://ns/a:k,b",
		"https://example.org/x#access_token": "https://example.org/x",
	} {
		if got := Display(raw); got != want {
			t.Errorf("%s is shown as %s, want %s", raw, got, want)
		}
	}
}
