package packages

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/pkg/helmstore"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestCompleteLate is P31: what changes while the question waits for an answer, and while Secrets are set aside, counts.
func TestCompleteLate(t *testing.T) {
	next := func(status string) *corev1.Secret {
		release := gen.HelmRelease("lab", "shop", page)
		release.Version, release.Info.Status = 2, status
		return gen.HelmSecret(release)
	}
	for _, tc := range []struct {
		reason string
		// when begins the request before which the change happens for the nth time.
		when   string
		nth    int
		change func(*apitest.Server)
		err    string
	}{
		{"P31: nothing", "", 1, nil, ""},
		{"P31: an upgrade begins while the question waits", "list Secret", 2, func(s *apitest.Server) { s.Put(next("pending-upgrade")) }, "is pending-upgrade"},
		{"P31: the object is replaced while the question waits", "list Secret", 2, func(s *apitest.Server) {
			s.Put(ownedPage(func(c *corev1.ConfigMap) { c.UID = "other" }))
		}, "has not taken over ConfigMap page"},
		{"P31: another revision while the Secrets are set aside", "patch Secret", 1, func(s *apitest.Server) { s.Put(next("pending-upgrade")) },
			"helm has written Secret sh.helm.release.v1.shop.v2 meanwhile"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			first := secretOf(page, "deployed", false)
			server := apitest.Start(t, first, instanceWith(entry("v1", "ConfigMap", "page", "p")), ownedPage(), gen.Version("lab", "shop"))
			m, printed := newMove(t, server)
			seen := 0
			server.Before(func(r apitest.Request) (any, error) {
				if tc.change != nil && strings.HasPrefix(r.String(), tc.when) {
					if seen++; seen == tc.nth {
						tc.change(server)
					}
				}
				return nil, nil
			})
			err := m.complete(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("the error is %v, want %q", err, tc.err)
			}
			left, err := helmstore.List(t.Context(), server.Client(), "lab", "shop")
			if err != nil || (len(left) == 0) != (tc.err == "") {
				t.Errorf("Helm finds %d Secrets: %v", len(left), err)
			}
			if tc.err != "" && server.Get(first).GetLabels()["owner"] != "helm" {
				t.Error("the first revision is set aside")
			}
			if said := strings.Contains(printed.String(), "is set aside: Instance"); said != (tc.err == "") {
				t.Errorf("printed: %s", printed)
			}
		})
	}
}
