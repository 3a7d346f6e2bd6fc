package helmstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// revisionOf returns the Secret of a revision of release web.
func revisionOf(n int, status string) *corev1.Secret {
	release := gen.HelmRelease("lab", "web", "")
	release.Version, release.Info.Status = n, status
	return gen.HelmSecret(release)
}

// objects are the Secrets of the tests: three revisions, another release, and a Secret that is none of Helm's.
func objects() []client.Object {
	other := gen.HelmSecret(gen.HelmRelease("lab", "other", ""))
	foreign := revisionOf(4, "deployed")
	foreign.Type = "Opaque"
	return []client.Object{revisionOf(10, "deployed"), revisionOf(9, "superseded"), revisionOf(2, "superseded"), other, foreign}
}

func names(r Releases) (out []string) {
	for _, s := range r {
		out = append(out, strings.TrimPrefix(s.Name, "sh.helm.release.v1."))
	}
	return out
}

// TestAside is P31: the Secrets of a release are found, hidden from Helm with the newest last, and restored with the newest first.
func TestAside(t *testing.T) {
	server := apitest.Start(t, objects()...)
	c := server.Client()
	stored, err := List(t.Context(), c, "lab", "web")
	if diff := cmp.Diff([]string{"web.v2", "web.v9", "web.v10"}, names(stored)); err != nil || diff != "" {
		t.Fatalf("by revision, not by name: %v, %s", err, diff)
	}
	if err := stored.SetAside(t.Context(), c, "site"); err != nil {
		t.Fatal(err)
	}
	if left, err := List(t.Context(), c, "lab", "web"); err != nil || len(left) > 0 {
		t.Errorf("Helm finds %v: %v", names(left), err)
	}
	if others, err := ListAside(t.Context(), c, "lab", "web", "another"); err != nil || len(others) > 0 {
		t.Errorf("set aside for another Instance: %v, %v", names(others), err)
	}
	aside, err := ListAside(t.Context(), c, "lab", "web", "site")
	if diff := cmp.Diff(names(stored), names(aside)); err != nil || diff != "" {
		t.Fatalf("%v, %s", err, diff)
	}
	if release, _, err := aside.Deployed(); err != nil || release.Version != 10 {
		t.Errorf("the release can be read still: %v, %v", release, err)
	}
	if err := aside.Restore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(&aside[0]), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"owner": "helm", "name": "web", "status": "superseded", "version": "2"}, got.Labels); diff != "" {
		t.Errorf("the labels are as before: %s", diff)
	}
	var patched []string
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "patch") {
			patched = append(patched, request[strings.LastIndex(request, ".")+1:])
		}
	}
	if want := []string{"v2", "v9", "v10", "v10", "v9", "v2"}; !slices.Equal(patched, want) {
		t.Errorf("the order was %v, want %v", patched, want)
	}
}

// TestInterrupted is P31: after an error, the newest revision is still where it was.
func TestInterrupted(t *testing.T) {
	server := apitest.Start(t, objects()...)
	c := server.Client()
	stored, err := List(t.Context(), c, "lab", "web")
	if err != nil {
		t.Fatal(err)
	}
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && strings.HasSuffix(r.Name, "v9") {
			return nil, errors.New("refused")
		}
		return nil, nil
	})
	if err := stored.SetAside(t.Context(), c, "site"); err == nil || !strings.Contains(err.Error(), "web.v9") {
		t.Errorf("the error is %v", err)
	}
	left, err := List(t.Context(), c, "lab", "web")
	if diff := cmp.Diff([]string{"web.v9", "web.v10"}, names(left)); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// TestDeployed is P31: the newest revision that is deployed counts, and one that is not what its labels say is refused.
func TestDeployed(t *testing.T) {
	renamed, elsewhere, broken := revisionOf(1, "deployed"), revisionOf(1, "deployed"), revisionOf(1, "deployed")
	renamed.Labels["name"] = "other"
	elsewhere.Namespace = "other"
	broken.Data = nil
	for _, tc := range []struct {
		reason         string
		stored         Releases
		version        int
		newest, failed string
	}{
		{"P31: one", Releases{*revisionOf(1, "deployed")}, 1, "deployed", ""},
		{"P31: an upgrade has failed", Releases{*revisionOf(1, "superseded"), *revisionOf(2, "deployed"), *revisionOf(3, "failed")}, 2, "failed", ""},
		{"P31: none is deployed", Releases{*revisionOf(1, "uninstalling")}, 0, "", "no revision of the release is deployed"},
		{"P31: another name", Releases{*renamed}, 0, "", "not what its labels say"},
		{"P31: another namespace", Releases{*elsewhere}, 0, "", "not what its labels say"},
		{"P31: without content", Releases{*broken}, 0, "", "read the release as JSON"},
	} {
		release, newest, err := tc.stored.Deployed()
		if tc.failed != "" {
			if err == nil || !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
			continue
		}
		if err != nil || release.Version != tc.version || newest != tc.newest {
			t.Errorf("%s: %v, %q, %v", tc.reason, release, newest, err)
		}
	}
	if _, err := List(t.Context(), nil, "lab", "a b"); err == nil {
		t.Error("a name that is none was taken")
	}
}
