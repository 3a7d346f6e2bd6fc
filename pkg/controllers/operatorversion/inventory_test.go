package operatorversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/share"
)

// TestWriteInventory checks that the inventory is written once, by the commit of all controllers, and not over that of another client.
func TestWriteInventory(t *testing.T) {
	f := newFixture(t, version(v1beta1.PlanStatus{Status: v1beta1.InProgress}, nil), &v1beta1.Installation{})
	read := f.installation.DeepCopy()
	if err := f.writeInventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.writes(); len(got) > 0 {
		t.Errorf("an unchanged inventory is written: %v", got)
	}
	f.inventory = share.Inventory{heldConfigMap("a", v1beta1.HoldPending)}
	for _, want := range [][]string{{"patch Installation ns-web/status"}, {}} {
		if err := f.writeInventory(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f.writes()); diff != "" {
			t.Error(diff)
		}
	}
	f.installation, f.inventory = read, share.Inventory{heldConfigMap("other", v1beta1.HoldPending)}
	err := f.writeInventory(t.Context())
	if !apierrors.IsConflict(err) || !strings.HasPrefix(err.Error(), "write status of Installation ns-web: ") {
		t.Errorf("an old inventory is written over a newer one: %v", err)
	}
	f.Server.Read(f.installation)
	if diff := cmp.Diff([]string{"a " + string(v1beta1.HoldPending)}, states(f.installation.Status.Resources)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
