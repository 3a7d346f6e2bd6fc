package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/test/apitest"
)

// registration returns the registration of a cluster, with one condition; none if its status is empty.
func registration(kind schema.GroupVersionKind, namespace, name, status, message string, change func(map[string]any)) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}, "status": map[string]any{}}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	condition := "Ready"
	if kind.Kind == "ClusterProfile" {
		condition = "ControlPlaneHealthy"
	}
	if status != "" {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "Joined", "status": "False"}, map[string]any{"type": condition, "status": status, "reason": "Probed",
			"message": message, "lastTransitionTime": "2026-11-26T12:00:00Z"}}, "status", "conditions")
	}
	if change != nil {
		change(u.Object)
	}
	return u
}

// profile and member are the kinds that register clusters.
var profile, member = clusterKinds[0].GroupVersionKind, clusterKinds[1].GroupVersionKind

// hub returns an API server with both kinds.
func hub(t *testing.T, objects ...*unstructured.Unstructured) *apitest.Server {
	t.Helper()
	api := apitest.Start(t)
	api.AddKind(profile, true)
	api.AddKind(member, false)
	for _, o := range objects {
		api.Put(o)
	}
	return api
}

// clustersOf waits until the registrations are listed, and returns the page.
func (r *running) clustersOf(t *testing.T) string {
	t.Helper()
	r.await(t, "the clusters are listed", func() bool {
		return !slices.ContainsFunc(clusterKinds, func(k clusterKind) bool {
			f, _ := r.clusters.feedOf(k.GroupVersionKind)
			return f == nil || f.Status().State == loading
		})
	})
	_, body := r.get(t, "/clusters")
	return body
}

// TestClusters shows the clusters that are registered, those first that need a user; what says how to reach them is not kept.
func TestClusters(t *testing.T) {
	api := hub(t,
		registration(member, "", "m1", "True", "", func(o map[string]any) { _ = unstructured.SetNestedField(o, "v1.36.3", "status", "kubernetesVersion") }),
		registration(member, "", "m2", "Unknown", "no answer for 40 s", nil),
		registration(profile, "fleet", "east", "False", "the API server is away", func(o map[string]any) {
			_ = unstructured.SetNestedField(o, "v1.35.1", "status", "version", "kubernetes")
			_ = unstructured.SetNestedField(o, "inventory-x", "spec", "clusterManager", "name")
			_ = unstructured.SetNestedField(o, "Frankfurt", "spec", "displayName")
			_ = unstructured.SetNestedField(o, "s3cr3t-address", "status", "accessProviders")
		}),
		registration(profile, "fleet", "odd", "", "", func(o map[string]any) {
			_ = unstructured.SetNestedField(o, "s3cr3t-address", "spec", "displayName", "address")
		}),
		registration(profile, "fleet", "new", "", "", nil))
	r := beginOn(t, api, "")
	body := r.clustersOf(t)
	at := -1
	for _, want := range []string{`href="/clusters" aria-current="page"`, "not healthy", "fleet/east", "Frankfurt", "v1.35.1", "inventory-x", "2026-11-26T12:00:00Z", "the API server is away",
		"not known", "fleet/new", "not known", "m2", "no answer for 40 s", "healthy", "m1", "v1.36.3", "Karmada"} {
		next := strings.Index(body[at+1:], want)
		if next < 0 {
			t.Fatalf("%q is not shown after the others:\n%s", want, body)
		}
		at += 1 + next
	}
	for _, kind := range clusterKinds {
		f, _ := r.clusters.feedOf(kind.GroupVersionKind)
		for _, u := range objectsOf[*unstructured.Unstructured](f) {
			if strings.Contains(fmt.Sprint(u.Object), "s3cr3t") {
				t.Error("what says how to reach a cluster is kept")
			}
		}
	}
	if _, body := r.get(t, "/instances"); !strings.Contains(body, `<a href="/clusters">`) {
		t.Error("the navigation does not lead to the clusters")
	}

	// The page is live.
	next := r.events(t, "/clusters", "")
	api.Put(registration(profile, "fleet", "east", "True", "", nil))
	for shown := ""; strings.Contains(shown, "not healthy") || shown == ""; {
		parts, _ := next()
		shown = parts["clusters"]
	}
}

// TestClustersOfNamespace checks that a page of one namespace asks for the ClusterProfiles of no other.
func TestClustersOfNamespace(t *testing.T) {
	api := hub(t, registration(profile, "fleet", "east", "True", "", nil), registration(profile, "other", "west", "True", "", nil))
	body := beginOn(t, api, "fleet").clustersOf(t)
	if !strings.Contains(body, "fleet/east") || strings.Contains(body, "other/west") || !strings.Contains(body, "ClusterProfiles are those of namespace fleet.") {
		t.Errorf("the page of a namespace shows\n%s", body)
	}
	for _, request := range api.Requests() {
		if request == "list ClusterProfile" {
			t.Error("all namespaces were asked for")
		}
	}
}

// TestNoClusters shows U10: what the page says without clusters, and U12: that a cluster that serves no such kind is not asked for them again.
func TestNoClusters(t *testing.T) {
	t.Run("no kind is served", func(t *testing.T) {
		r := begin(t, "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.clusters.run(t.Context())
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("the kinds are looked for again")
		}
		_, body := r.get(t, "/clusters")
		if !strings.Contains(body, "No clusters can be registered here") {
			t.Errorf("the page says\n%s", body)
		}
		if _, body := r.get(t, "/instances"); strings.Contains(body, "/clusters") {
			t.Error("the navigation leads to clusters where there are none")
		}
	})
	t.Run("it is not known yet which kinds are served", func(t *testing.T) {
		api := apitest.Start(t)
		api.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "" {
				return nil, apierrors.NewServiceUnavailable("starting")
			}
			return nil, nil
		})
		if _, body := beginOn(t, api, "").get(t, "/clusters"); !strings.Contains(body, "Loading…") || strings.Contains(body, "No cluster") {
			t.Errorf("the page says\n%s", body)
		}
	})
	t.Run("none is registered", func(t *testing.T) {
		if body := beginOn(t, hub(t), "").clustersOf(t); !strings.Contains(body, "No cluster is registered here yet") {
			t.Errorf("the page says\n%s", body)
		}
	})
	t.Run("no right", func(t *testing.T) {
		api := hub(t, registration(member, "", "m1", "True", "", nil))
		api.Before(func(r apitest.Request) (any, error) {
			if r.Kind == "ClusterProfile" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Group: profile.Group, Resource: "clusterprofiles"}, "", errors.New("ann may not"))
			}
			return nil, nil
		})
		body := beginOn(t, api, "").clustersOf(t)
		if !strings.Contains(body, "This cannot be shown: clusterprofiles.multicluster.x-k8s.io is forbidden: ann may not") || !strings.Contains(body, "m1") || strings.Contains(body, "No cluster") {
			t.Errorf("the page says\n%s", body)
		}
	})
}

// TestClustersUnknown shows U10: once the clusters cannot be watched any more, the page does not say that they are healthy.
func TestClustersUnknown(t *testing.T) {
	r := beginOn(t, hub(t, registration(member, "", "m1", "True", "", nil)), "")
	if body := r.clustersOf(t); !strings.Contains(body, "✓") {
		t.Fatalf("the page says\n%s", body)
	}
	f, _ := r.clusters.feedOf(member)
	f.note(apierrors.NewForbidden(schema.GroupResource{Group: member.Group, Resource: "clusters"}, "", errors.New("ann may not")))
	if _, body := r.get(t, "/clusters"); strings.Contains(body, "✓") || !strings.Contains(body, "m1") || !strings.Contains(body, "you have no right to list and watch clusters") {
		t.Errorf("the page says\n%s", body)
	}
}

// TestClustersLater checks that the kinds are found by a page that was started while the API server did not answer.
func TestClustersLater(t *testing.T) {
	api, looks := hub(t), atomic.Int32{}
	api.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "" && looks.Add(1) < 4 {
			return nil, apierrors.NewServiceUnavailable("starting")
		}
		return nil, nil
	})
	s, err := New(Options{Config: api.Config(), Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	s.clusters.retry = time.Millisecond
	if f, found := s.clusters.find(t.Context(), clusterKinds[0]); f == nil || !found {
		t.Error("a kind that is served later is not found")
	}
}

// TestHostileClusters shows U9: what registers clusters writes text.
func TestHostileClusters(t *testing.T) {
	body := beginOn(t, hub(t,
		registration(profile, "fleet", "east", "False", hostile, func(o map[string]any) {
			_ = unstructured.SetNestedField(o, hostile, "status", "version", "kubernetes")
			_ = unstructured.SetNestedField(o, hostile, "spec", "clusterManager", "name")
			_ = unstructured.SetNestedField(o, hostile, "spec", "displayName")
		}),
		registration(member, "", "m1", hostile, strings.Repeat("long", 10_000), nil),
		registration(member, "", "m2", "", "", func(o map[string]any) {
			o["status"] = map[string]any{"conditions": []any{hostile}, "kubernetesVersion": int64(7)}
		}),
		registration(member, "", "m3", "", "", func(o map[string]any) { o["status"], o["spec"] = hostile, []any{hostile} }),
	), "").clustersOf(t)
	checkHarmless(t, "the page of clusters", body)
	if len(body) > 20_000 {
		t.Errorf("the page has %d bytes", len(body))
	}
	for _, want := range []string{"its conditions are malformed", "m3", "not healthy"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not shown:\n%s", want, body)
		}
	}
}
