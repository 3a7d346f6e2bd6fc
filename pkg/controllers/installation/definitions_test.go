package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestObserveDefinitions checks P18: definitions are read only of an Installation that holds what its object needs, before its state is
// named.
func TestObserveDefinitions(t *testing.T) {
	now := metav1.Now()
	for _, tc := range []struct {
		reason  string
		deleted *metav1.Time
		orphan  bool
		named   bool
		due     int
		want    state
	}{
		{reason: "it holds a definition that is due", due: 1, want: migrating},
		{reason: "the status names a migration, too", named: true, due: 1, want: migrating},
		{reason: "its object does not exist anymore", orphan: true, named: true, want: orphaned},
		{reason: "it is being deleted", deleted: &now, orphan: true, want: releasing},
	} {
		f := newFixture(t)
		f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
		if tc.named {
			f.installation.Status.Migrations = []v1beta1.StoredVersionMigration{{Definition: "boats.example.com"}}
		}
		if tc.orphan {
			f.Remove(f.version)
		}
		f.installation.DeletionTimestamp = tc.deleted
		o, err := f.observe(t.Context(), f.installation)
		if err != nil {
			t.Fatal(err)
		}
		if len(o.definitions.due) != tc.due || o.migrations != tc.named || o.state() != tc.want {
			t.Errorf("%s: state %s, %+v", tc.reason, o.state(), o.definitions)
		}
	}
}

// TestIsOwnDefinition checks which entries of the inventory are definitions that an Installation may migrate.
func TestIsOwnDefinition(t *testing.T) {
	for _, tc := range []struct {
		reason string
		modify func(*v1beta1.HeldResource)
		want   bool
	}{
		{"it was created", func(*v1beta1.HeldResource) {}, true},
		{"another kind", func(r *v1beta1.HeldResource) { r.Kind = "ClusterRole" }, false},
		{"it is about to be created", func(r *v1beta1.HeldResource) { r.UID = "" }, false},
		{"it was there", func(r *v1beta1.HeldResource) { r.State = v1beta1.HoldExisting }, false},
		{"it is being released", func(r *v1beta1.HeldResource) { r.State = v1beta1.HoldReleasing }, false},
	} {
		r := v1beta1.HeldResource{Kind: "CustomResourceDefinition", UID: "x", State: v1beta1.HoldCreated}
		tc.modify(&r)
		if got := isOwnDefinition(r); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}
