package settings

import (
	"strings"
	"testing"
)

// T37: the image that pipe pods are read by is known by its digest.
func TestPipeImageNeedsDigest(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for _, tc := range []struct {
		reason, image string
		ok            bool
	}{
		{"a digest says which it is", "busybox@sha256:" + digest, true},
		{"besides a tag", "example.org:5000/a/busybox:1.36@sha256:" + digest, true},
		{"a tag can be moved", "busybox:1.36", false},
		{"latest is moved", "busybox", false},
		{"a digest is whole", "busybox@sha256:" + digest[:63], false},
		{"and ends the name", "busybox@sha256:" + digest + "\n", false},
		{"of this kind", "busybox@md5:" + digest, false},
		{"nothing", "", false},
	} {
		if err := CheckPipeImage(tc.image); (err == nil) != tc.ok || err != nil && !strings.Contains(err.Error(), "--pipe-image=<image>@sha256:<digest>") {
			t.Errorf("%s: %v", tc.reason, err)
		}
	}
}
