package share

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// storedError is the answer of a comparer to a change that removes a stored version.
type storedError struct{ error }

func (storedError) Error() string            { return "objects may be stored in v1alpha1" }
func (storedError) StoredVersions() []string { return []string{"v1alpha1"} }

// TestAwaitMigration checks when the removal of a stored version waits, and what it says (P18).
func TestAwaitMigration(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		migrate *v1beta1.StoredVersionMigration
		deleted bool
		alone   bool
		want    string
	}{
		{"nothing is known of the migration", nil, false, false, "CustomResourceDefinition ships.example.com waits for the migration of the stored versions (v1alpha1)"},
		{"it continues", &v1beta1.StoredVersionMigration{Done: 12400, Of: 100000}, false, false,
			"CustomResourceDefinition ships.example.com waits for the migration of the stored versions (v1alpha1), 12,400 of 100,000"},
		{"the cluster migrates by itself", &v1beta1.StoredVersionMigration{StorageVersionMigration: "kudo-1"}, false, false,
			"CustomResourceDefinition ships.example.com waits for the migration of the stored versions (v1alpha1) by StorageVersionMigration kudo-1"},
		{"it is blocked by an object, perhaps of another namespace, which is not named", &v1beta1.StoredVersionMigration{Done: 1, Of: 2, Message: "Ship a is refused"}, false, false,
			"CustomResourceDefinition ships.example.com waits for the migration of the stored versions (v1alpha1), 1 of 2: status.migrations of Installation HOLDER says what keeps it from continuing"},
		{"the Installation is being deleted, and migrates nothing", nil, true, false, ""},
		{"no Installation holds the definition", nil, false, true, ""},
	} {
		f := newFixture(t)
		f.safety = fixedComparer{breaks: storedError{}}
		holder := f.db.DeepCopy()
		if tc.migrate != nil {
			tc.migrate.Definition = "ships.example.com"
			holder.Status.Migrations = []v1beta1.StoredVersionMigration{*tc.migrate}
		}
		if tc.deleted {
			now := metav1.Now()
			holder.DeletionTimestamp, holder.Finalizers = &now, []string{v1beta1.InstallationFinalizer}
		}
		f.Put(holder)
		holders := []*v1beta1.Installation{holder}
		if tc.alone {
			holders = nil
		}
		live := shipDefinition(t, holders...)
		live.Object["status"] = parse(t, "{conditions: [{type: Established, status: 'True'}]}").Object
		f.Put(live)
		wanted := shipDefinition(t)
		if err := unstructured.SetNestedStringSlice(wanted.Object, []string{"sh"}, "spec", "names", "shortNames"); err != nil {
			t.Fatal(err)
		}
		tc.want = strings.ReplaceAll(tc.want, "HOLDER", f.db.Name)
		change := f.install(t, f.Session(f.web, Policy{Tarball: true, SafeCRDs: true}, nil), wanted)
		switch {
		case tc.want == "" && (change.Action != apply.Failed || !strings.Contains(change.Err.Error(), "(objects may be stored in v1alpha1)")):
			t.Errorf("%s: %v %v", tc.reason, change.Action, change.Err)
		case tc.want != "" && (change.Action != apply.Awaited || change.Err.Error() != tc.want):
			t.Errorf("%s: %v %v, want %s", tc.reason, change.Action, change.Err, tc.want)
		}
		if written := writes(f.Requests()); slices.Contains(written, "apply CustomResourceDefinition ships.example.com") {
			t.Errorf("%s: %q", tc.reason, written)
		}
	}
}
