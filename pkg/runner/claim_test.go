package runner

import "testing"

// TestPodSelector is P27: which templates may select pods by kudo's labels, so that pods of objects that are taken over need them.
func TestPodSelector(t *testing.T) {
	for _, tc := range []struct {
		reason, text string
		want         bool
	}{
		{"P27: a Service", "selector:\n  kudo.dev/instance: {{ .Name }}", true},
		{"P27: by the operator", "matchLabels: {kudo.dev/operator: web}", true},
		{"P27: by the heritage", "selector: {heritage: kudo}", true},
		{"P27: in quotes", `selector: {"heritage": "kudo"}`, true},
		{"P27: as the text of a selector", "args: ['--selector=heritage=kudo']", true},
		{"P27: labels of Helm", "selector: {heritage: Helm, app.kubernetes.io/instance: web}", false},
		{"P27: other annotations of kudo", "annotations: {kudo.dev/keep: 'true'}", false},
		{"P27: another heritage", "selector: {my-heritage: kudos}", false},
	} {
		if got := podSelector.MatchString(tc.text); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
