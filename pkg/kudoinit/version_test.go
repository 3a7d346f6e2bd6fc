package kudoinit

import "testing"

func TestOlder(t *testing.T) {
	for _, tc := range []struct {
		reason, a, b string
		want         bool
	}{
		{"releases", "0.1.0", "v0.2.0", true},
		{"not the other way", "v0.2.0", "0.1.0", false},
		{"not by text", "0.9.0", "0.10.0", true},
		{"the same", "v1.0.0", "v1.0.0", false},
		{"commits after a release are newer than it, though semver would call them a pre-release", "v1.0.0", "v1.0.0-3-gabcdef0", true},
		{"and a release is not older than they", "v1.0.0-3-gabcdef0", "v1.0.0", false},
		{"more commits are newer", "v1.0.0-3-gabcdef0", "v1.0.0-12-g1234567-dirty", true},
		{"commits after the release before", "v1.0.0-99-gabcdef0", "v1.1.0", true},
		{"a pre-release", "1.0.0-rc.1", "1.0.0", true},
		{"no version", "dev", "v1.0.0", false},
		{"no version on the cluster", "v1.0.0", "", false},
		{"a commit without a release", "6e0f3a9-dirty", "v1.0.0", false},
	} {
		if got := Older(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: Older(%q, %q) is %v", tc.reason, tc.a, tc.b, got)
		}
	}
}
