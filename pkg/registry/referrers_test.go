package registry

import (
	"encoding/json"
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

// TestReferrers checks S13 and S5: what refers to a manifest and is of another type does not use up the bound, a listing that is cut by the
// bounds of descriptors and pages is said to be, and an error hides nothing that was found before.
func TestReferrers(t *testing.T) {
	const wanted, junk = "application/x-wanted", "application/x-junk"
	keep := func(d ocispec.Descriptor) bool { return d.ArtifactType == wanted }
	list := func(artifactType string, n int) (out []ocispec.Descriptor) {
		for i := range n {
			text := fmt.Sprint(artifactType, i)
			out = append(out, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType,
				Digest: digest.FromString(text), Size: 1})
		}
		return out
	}
	for _, tc := range []struct {
		reason  string
		pages   [][]ocispec.Descriptor
		endless bool
		found   int
		cut     bool
		want    string
	}{
		{"others before it", [][]ocispec.Descriptor{slices.Concat(list(junk, MaxReferrers+1), list(wanted, 1))}, false, 1, false, ""},
		{"pages of others before it", [][]ocispec.Descriptor{list(junk, MaxReferrers), list(junk, MaxReferrers), list(wanted, 1)}, false, 1, false, ""},
		{"as many as are looked at", [][]ocispec.Descriptor{list(wanted, MaxReferrers)}, false, MaxReferrers, false, ""},
		{"one more", [][]ocispec.Descriptor{list(wanted, MaxReferrers+1)}, false, MaxReferrers, true, ""},
		{"pages without an end", [][]ocispec.Descriptor{list(wanted, 1), list(junk, 1)}, true, 1, true, ""},
		{"an error after the first page", [][]ocispec.Descriptor{list(wanted, 1), nil}, false, 1, false, "500"},
	} {
		asked := 0
		r := ocitest.New(t, false)
		r.Hostile = func(w http.ResponseWriter, q *http.Request) bool {
			if !strings.Contains(q.URL.Path, "/referrers/") {
				return false
			}
			asked++
			at, _ := strconv.Atoi(q.URL.Query().Get("at"))
			page := tc.pages[min(at, len(tc.pages)-1)]
			if page == nil {
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
			if at+1 < len(tc.pages) || tc.endless {
				w.Header().Set("Link", fmt.Sprintf(`<%s?at=%d>; rel="next"`, q.URL.Path, at+1))
			}
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			_ = json.NewEncoder(w).Encode(ocispec.Index{Manifests: page})
			return true
		}
		c, err := NewClient("oci://"+r.Host()+"/kudo/web", Options{PlainHTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		found, cut, err := c.Referrers(t.Context(), ocispec.Descriptor{Digest: digest.FromString("subject")}, keep)
		if len(found) != tc.found || cut != tc.cut || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %d, cut %t, %v, want %d, cut %t, %q", tc.reason, len(found), cut, err, tc.found, tc.cut, tc.want)
		}
		if asked > maxTagPages {
			t.Errorf("%s: %d pages are asked for", tc.reason, asked)
		}
	}
}
