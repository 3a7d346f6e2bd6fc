package instance

import (
	"strings"
	"testing"
)

func TestCheckChange(t *testing.T) {
	old := Settings{Profile: Full, EmulatedVersion: "1.33", FeatureGates: "A=true"}
	for _, tc := range []struct {
		reason, want string
		change       func(*Settings)
	}{
		{"the same settings are no change", "", func(*Settings) {}},
		{"servers that start again can have other features", "", func(s *Settings) { s.FeatureGates, s.WithKudo = "", true }},
		{"the profile says what the cluster has", "has the profile full", func(s *Settings) { s.Profile = API }},
		{"pods are bound to the nodes", "other nodes", func(s *Settings) { s.RealNodes = true }},
		{"objects are stored in the version", "another version", func(s *Settings) { s.EmulatedVersion = "" }},
		{"objects are stored by the servers", "other servers", func(s *Settings) { s.KubernetesDir = "/servers" }},
	} {
		next := old
		tc.change(&next)
		checkError(t, tc.reason, old.CheckChange(next), tc.want)
	}
}

func TestCheckSettings(t *testing.T) {
	for _, tc := range []struct {
		reason, want string
		settings     Settings
	}{
		{"nodes can be real", "", Settings{Profile: Full, RealNodes: true}},
		{"servers can be of another version", "", Settings{Profile: API, KubernetesDir: "/servers"}},
		{"a version can be emulated on a real node", "", Settings{Profile: Full, RealNodes: true, EmulatedVersion: "1.33"}},
		{"the profile api has no nodes", "--profile api", Settings{Profile: API, RealNodes: true}},
		{"servers have one version", "--kubernetes-version", Settings{Profile: Full, KubernetesDir: "/servers", EmulatedVersion: "1.33"}},
		{"nodes of other servers are played", "--nodes real", Settings{Profile: Full, KubernetesDir: "/servers", RealNodes: true}},
	} {
		checkError(t, tc.reason, tc.settings.Check(), tc.want)
	}
}

// checkError checks that an error has a text, or is nil if the text is empty.
func checkError(t *testing.T, reason string, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: the error is %v, want one with %q", reason, err, want)
	}
}
