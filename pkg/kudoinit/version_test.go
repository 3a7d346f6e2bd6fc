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

// TestStepBefore shows R19: this version continues with what the last two minor versions have written, and names the way from older ones.
func TestStepBefore(t *testing.T) {
	for _, tc := range []struct{ reason, installed, wanted, want string }{
		{"the version before", "v0.3.0", "v0.4.0", ""},
		{"the one before that", "v0.2.9", "v0.4.0", ""},
		{"one more", "v0.1.9", "v0.4.0", "v0.3"},
		{"many: the farthest step", "v0.1.0", "v0.9.3", "v0.3"},
		{"the same", "v0.4.0", "v0.4.0", ""},
		{"a way back", "v0.9.0", "v0.1.0", ""},
		{"commits after a release", "v0.1.0-7-gabcdef0", "v0.4.0", "v0.3"},
		{"the next major version", "v0.9.0", "v1.0.0", ""},
		{"its second minor version", "v0.9.0", "v1.1.0", ""},
		{"its third minor version", "v0.9.0", "v1.2.0", "v1.0"},
		{"a major version is left out", "v0.9.0", "v2.0.0", "v1.0"},
		{"a major version back", "v2.0.0", "v1.5.0", ""},
		{"no version on the cluster", "", "v0.4.0", ""},
		{"a build without a version", "v0.1.0", "dev", ""},
	} {
		if got := stepBefore(tc.installed, tc.wanted); got != tc.want {
			t.Errorf("R19: %s: from %s to %s by %q, want %q", tc.reason, tc.installed, tc.wanted, got, tc.want)
		}
	}
}
