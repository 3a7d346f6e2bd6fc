package apply

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/test/apitest"
)

// TestIsTakenOver is P27: from which objects kudo's metadata is withheld, if a dry run says that their pods stay.
func TestIsTakenOver(t *testing.T) {
	live := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, uid: u}\nspec: {template: {metadata: {labels: {app: d}}}}"
	marked := func(hash string) string {
		return strings.Replace(live, "uid: u", "uid: u, annotations: {kudo.dev/withheld-hash: "+hash+"}", 1)
	}
	own := strings.Replace(live, "app: d", "kudo.dev/instance: i", 1)
	body := parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"+
		"spec: {template: {metadata: {annotations: {kudo.dev/dependencies-hash: h}}}}")
	id := IDOf(body)
	for _, tc := range []struct {
		reason, live string
		known        map[ID]Record
		want         bool
	}{
		{"P27: it is taken over now", live, nil, true},
		{"P27: before the crash of a manager, only its name was recorded", live, map[ID]Record{id: {}}, true},
		{"P27: another object of the name is known", live, map[ID]Record{id: {UID: "v"}}, true},
		{"P27: it was taken over", marked("h"), map[ID]Record{id: {UID: "u"}}, true},
		{"P27: what its pods read has changed", marked("g"), map[ID]Record{id: {UID: "u"}}, false},
		{"P27: another client has removed the metadata", live, map[ID]Record{id: {UID: "u"}}, false},
		{"P27: its pods have the metadata", own, nil, false},
		{"P27: it has no pods", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d, uid: u}", nil, false},
	} {
		if got := isTakenOver(body, parse(t, tc.live), Options{Known: tc.known}); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestWithholdWithoutDryRuns (P27): a webhook that cannot be asked by a dry run does not keep an object from being taken over.
func TestWithholdWithoutDryRuns(t *testing.T) {
	live := parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\nspec: {template: {metadata: {labels: {app: d}}}}")
	server := apitest.Start(t)
	live = server.Put(live)
	server.Before(func(r apitest.Request) (any, error) {
		if len(r.Query["dryRun"]) > 0 {
			return nil, apierrors.NewBadRequest(`admission webhook "x.example.com" does not support dry run`)
		}
		return nil, nil
	})
	config := server.Config()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := New(client, nil, NewKinds(server.Mapper(), nil, client), nil, nil)
	body := parse(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ns}\n"+
		"spec: {template: {metadata: {labels: {app: d}, annotations: {kudo.dev/dependencies-hash: h}}}}")
	resource, err := e.Resource(body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.withhold(t.Context(), resource, body, live, Ours, Options{Manager: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if hash, _, _ := unstructured.NestedString(got.Object, "spec", "template", "metadata", "annotations", "kudo.dev/dependencies-hash"); hash != "h" {
		t.Errorf("the metadata is withheld, though it is not known whether the pods stay: %v", got.Object)
	}
}
