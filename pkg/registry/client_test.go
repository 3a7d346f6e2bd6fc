package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"kudo.dev/kudo/test/ocitest"
)

func blobOf(mediaType, text string) Blob {
	return Blob{ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromString(text), Size: int64(len(text))}, []byte(text)}
}

// TestClient checks that what is pushed comes back by tag and digest, that blobs are sent once, and S5: bounds hold before anything is read.
func TestClient(t *testing.T) {
	r := ocitest.New(t, false)
	r.Open = true
	c, err := NewClient("oci://"+r.Host()+"/kudo/web", Options{PlainHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Manifest(t.Context(), "1.0.0", 100); !errors.Is(err, ErrNotFound) {
		t.Errorf("a tag that is not there: %v", err)
	}
	if _, err := c.Tags(t.Context()); !errors.Is(err, ErrNotFound) {
		t.Errorf("tags of a repository that is not there: %v", err)
	}
	manifest, part := blobOf(ocispec.MediaTypeImageManifest, `{"mediaType":"`+ocispec.MediaTypeImageManifest+`"}`), blobOf("x", "part")
	r.Requests()
	for i, tag := range []string{"1.0.0", "1.1.0"} {
		if err := c.Push(t.Context(), manifest, []Blob{part}, tag); err != nil {
			t.Fatal(err)
		}
		if _, n := r.Requests(); n != 2-i {
			t.Errorf("push %d sends %d blobs and manifests", i, n)
		}
	}
	for _, reference := range []string{"1.0.0", string(manifest.Digest)} {
		d, data, err := c.Manifest(t.Context(), reference, 100)
		if err != nil || d.Digest != manifest.Digest || string(data) != string(manifest.Data) {
			t.Errorf("%s is %s %s (%v)", reference, d.Digest, data, err)
		}
	}
	if _, _, err := c.Manifest(t.Context(), "1.0.0", 10); err == nil || !strings.Contains(err.Error(), "more than the 10 allowed") {
		t.Errorf("a manifest that is too large: %v", err)
	}
	if data, err := c.Blob(t.Context(), part.Descriptor); err != nil || string(data) != "part" {
		t.Errorf("blob %s (%v)", data, err)
	}
	tags, err := c.Tags(t.Context())
	if err != nil || !slices.Equal(tags, []string{"1.0.0", "1.1.0"}) {
		t.Errorf("tags %q (%v)", tags, err)
	}
	r.Hostile = func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = fmt.Fprint(w, "paxt")
		return true
	}
	if data, err := c.Blob(t.Context(), part.Descriptor); err == nil || len(data) > 0 {
		t.Errorf("a blob with another content: %q (%v)", data, err)
	}
	r.Hostile = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true }
	if _, err := c.Tags(t.Context()); err == nil || !strings.Contains(err.Error(), "log in by docker login") {
		t.Errorf("no rights: %v", err)
	}
}

// TestTagPages checks S5: a repository with all the tags that are allowed can be listed, whatever size of pages a registry chooses by itself.
func TestTagPages(t *testing.T) {
	for count, want := range map[int]string{maxTags: "", maxTags + 1: "exceeded 20 pages"} {
		r := ocitest.New(t, false)
		r.Hostile = func(w http.ResponseWriter, q *http.Request) bool {
			size, last := 100, 0
			if n, err := strconv.Atoi(q.URL.Query().Get("n")); err == nil {
				size = n
			}
			last, _ = strconv.Atoi(q.URL.Query().Get("last"))
			var tags []string
			for ; len(tags) < size && last < count; last++ {
				tags = append(tags, strconv.Itoa(last+1))
			}
			if last < count {
				w.Header().Set("Link", fmt.Sprintf(`<%s?n=%d&last=%d>; rel="next"`, q.URL.Path, size, last))
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": tags})
			return true
		}
		c, err := NewClient("oci://"+r.Host()+"/kudo/web", Options{PlainHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		tags, err := c.Tags(t.Context())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(tags) != count {
			t.Errorf("%d of %d tags: %v, want %q", len(tags), count, err, want)
		}
	}
}
