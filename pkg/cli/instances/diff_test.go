package instances

import (
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// TestUpgradeEdit checks which version an upgrade leaves: one that was deleted, or that the cluster never had, is none.
func TestUpgradeEdit(t *testing.T) {
	version := gen.Version("ns", "web-0.1.0")
	live := version.DeepCopy()
	live.UID = "uid"
	i := gen.Instance("i", version, nil)
	for _, tc := range []struct {
		reason   string
		ov, want *v1beta1.OperatorVersion
	}{
		{"it exists", live, live},
		{"it was deleted", nil, nil},
		{"it comes from a file", version, nil},
	} {
		edit := upgradeEdit(i, i, tc.ov, []*v1beta1.OperatorVersion{version})
		if edit.Old != tc.want || edit.After.Spec.OperatorVersion.Name != version.Name {
			t.Errorf("%s: %+v", tc.reason, edit.Old)
		}
	}
}
