package helmrelease

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"
)

// stored packs a text as Helm stores a release.
func stored(text string) []byte {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, _ = writer.Write([]byte(text))
	_ = writer.Close()
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// TestDecode is P31: what is read of a release, and what is refused.
func TestDecode(t *testing.T) {
	hooks := strings.Repeat(`{"name": "h"},`, maxHooks+1)
	for _, tc := range []struct {
		reason string
		in     []byte
		want   string
	}{
		{"P31: a release", stored(`{"name": "web", "namespace": "lab", "version": 3, "unknown": {"a": 1}}`), ""},
		{"P31: one that is not packed", []byte(base64.StdEncoding.EncodeToString([]byte(`{"name": "web", "version": 1}`))), ""},
		{"P31: no base64", []byte("{}"), "not stored as base64"},
		{"P31: no JSON", stored(`name: web`), "read the release as JSON"},
		{"P31: cut", stored(`{"name": "web", "version": 1}`)[:40], "unpack the release"},
		{"P31: nothing", nil, "read the release as JSON"},
		{"P31: no name", stored(`{"version": 1}`), "no name"},
		{"P31: no revision", stored(`{"name": "web"}`), "revision 0"},
		{"P31: too many hooks", stored(`{"name": "web", "version": 1, "hooks": [` + strings.TrimSuffix(hooks, ",") + `]}`), "more than 200 hooks"},
		{"P31: a bomb", stored(`{"name": "` + strings.Repeat("a", MaxContent) + `"}`), "more than 33554432 bytes"},
		{"P31: more than a Secret holds", bytes.Repeat([]byte("A"), MaxStored+1), "2097153 bytes"},
	} {
		release, err := Decode(tc.in)
		switch {
		case tc.want == "" && (err != nil || release.Name != "web"):
			t.Errorf("%s: %v, %v", tc.reason, release, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
		}
	}
}
