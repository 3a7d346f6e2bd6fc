package storedversions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// TestNext is the state machine of a migration (P18).
func TestNext(t *testing.T) {
	definition := Definition{Name: "ships.example.com", UID: "a", Generation: 2, Storage: "v1", Stored: []string{"v1alpha1", "v1"}}
	going := Start(definition, nil, now.Add(-time.Minute))
	at := func(offset time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(offset)} }
	for _, tc := range []struct {
		reason     string
		definition func(*Definition)
		state      func(*v1beta1.StoredVersionMigration)
		want       Action
		after      time.Duration
	}{
		{"the next page", nil, nil, Rewrite, 0},
		{"one stored version", func(d *Definition) { d.Stored = []string{"v1"} }, nil, Finish, 0},
		{"no stored version", func(d *Definition) { d.Stored = nil }, nil, Finish, 0},
		{"another definition of the name", func(d *Definition) { d.UID = "b" }, nil, Begin, 0},
		{"another spec, whose storage version may have changed to and fro", func(d *Definition) { d.Generation = 4 }, nil, Begin, 0},
		{"another storage version", func(d *Definition) { d.Storage, d.Stored = "v2", []string{"v1alpha1", "v1", "v2"} }, nil, Begin, 0},
		{"a stored version that was not there", func(d *Definition) { d.Stored = []string{"v1alpha1", "v1", "v1beta1"} }, nil, Begin, 0},
		{"a stored version less", nil, func(m *v1beta1.StoredVersionMigration) { m.From = []string{"v1alpha1", "v1beta1"} }, Rewrite, 0},
		{"an empty state", nil, func(m *v1beta1.StoredVersionMigration) {
			*m = v1beta1.StoredVersionMigration{Definition: "ships.example.com"}
		}, Begin, 0},
		{"an API server may write the old version", nil, func(m *v1beta1.StoredVersionMigration) { m.StartTime = *at(-2 * time.Second) }, Settle, 3 * time.Second},
		{"a clock that was set back", nil, func(m *v1beta1.StoredVersionMigration) { m.StartTime = *at(time.Hour) }, Rewrite, 0},
		{"refused, and not due", nil, func(m *v1beta1.StoredVersionMigration) { m.RetryTime = at(time.Minute) }, Wait, time.Minute},
		{"refused, and due", nil, func(m *v1beta1.StoredVersionMigration) { m.RetryTime = at(0) }, Probe, 0},
		{"refused, by a clock that was set back", nil, func(m *v1beta1.StoredVersionMigration) { m.RetryTime = at(time.Hour) }, Probe, 0},
		{"refused, and the definition has changed", func(d *Definition) { d.Generation = 3 }, func(m *v1beta1.StoredVersionMigration) { m.RetryTime = at(time.Minute) }, Begin, 0},
	} {
		d, state := definition, going.DeepCopy()
		if tc.definition != nil {
			tc.definition(&d)
		}
		if tc.state != nil {
			tc.state(state)
		}
		if got, after := Next(d, state, now); got != tc.want || after != tc.after {
			t.Errorf("%s: %s after %s, want %s after %s", tc.reason, got, after, tc.want, tc.after)
		}
	}
	if got, _ := Next(definition, nil, now); got != Begin {
		t.Errorf("no state: %s", got)
	}
}

// TestStart checks what a migration begins with.
func TestStart(t *testing.T) {
	d := Definition{Name: "ships.example.com", UID: "a", Generation: 2, Storage: "v1", Stored: []string{"v1alpha1", "v1", "v1beta1"}}
	first := Start(d, nil, now)
	want := v1beta1.StoredVersionMigration{Definition: d.Name, UID: "a", Generation: 2, From: []string{"v1alpha1", "v1beta1"}, To: "v1", StartTime: metav1.NewTime(now)}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	first.Attempts = 3
	if again := Start(d, &first, now); again.Attempts != 3 {
		t.Errorf("the attempts of the same content are %d, want 3", again.Attempts)
	}
	d.Generation++
	if again := Start(d, &first, now); again.Attempts != 0 {
		t.Errorf("the attempts of another content are %d, want 0", again.Attempts)
	}
}

// TestRetryDelay checks that the time between attempts grows, and is bounded.
func TestRetryDelay(t *testing.T) {
	for attempts, want := range map[int32]time.Duration{
		0: minRetry, 1: minRetry, 2: 2 * minRetry, 3: 4 * minRetry, 6: 8 * time.Minute, 7: maxRetry, 1 << 30: maxRetry,
	} {
		if got := retryDelay(attempts); got != want {
			t.Errorf("after %d attempts: %s, want %s", attempts, got, want)
		}
	}
}

// TestParse checks by which version objects are read and written.
func TestParse(t *testing.T) {
	version := func(name string, served, storage bool) any {
		return map[string]any{"name": name, "served": served, "storage": storage}
	}
	unserved := []any{version("v0", false, false), version("v1", true, false), version("v2", false, true)}
	for _, tc := range []struct {
		reason   string
		versions []any
		webhook  bool
		want     string
	}{
		{"the storage version needs no conversion", []any{version("v1", true, false), version("v2", true, true)}, false, "v2"},
		{"another version would prune what only the storage version has", unserved, false, ""},
		{"the first that is served, if a webhook converts", unserved, true, "v1"},
		{"none is served", []any{version("v2", false, true)}, true, ""},
	} {
		crd := definitionObject("v1", "v2")
		spec := crd.Object["spec"].(map[string]any)
		spec["versions"] = tc.versions
		if tc.webhook {
			spec["conversion"] = map[string]any{"strategy": "Webhook"}
		}
		d, err := Parse(crd)
		if err != nil || d.Resource.Version != tc.want || d.Storage != "v2" {
			t.Errorf("%s: %+v, %v, want version %q", tc.reason, d, err, tc.want)
		}
	}
	if _, err := Parse(&unstructured.Unstructured{Object: map[string]any{"spec": "x"}}); err == nil {
		t.Error("a definition that is none was read")
	}
}

// definitionObject returns the CustomResourceDefinition of ships. The last stored version is the storage version.
func definitionObject(stored ...string) *unstructured.Unstructured {
	versions, names := []any{}, []any{}
	for i, name := range stored {
		versions = append(versions, map[string]any{"name": name, "served": true, "storage": i == len(stored)-1})
		names = append(names, name)
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "ships.example.com", "uid": "crd", "generation": int64(1)},
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"kind": "Ship", "plural": "ships"}, "versions": versions},
		"status": map[string]any{"storedVersions": names},
	}}
	return crd
}
