package crdcompat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/test/apitest"
)

// storing is a definition of versions: a name, whether it is served and stored, and the fields of its objects.
func storing(versions ...string) string {
	out := "metadata: {name: ships.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: ships, kind: Ship}\n  versions:\n"
	for _, text := range versions {
		parts := strings.Fields(text)
		properties := []string{}
		for _, field := range parts[2:] {
			properties = append(properties, field+": {type: string}")
		}
		out += "  - {name: " + parts[0] + ", served: " + yes(parts[1], "s") + ", storage: " + yes(parts[1], "S") +
			", schema: {openAPIV3Schema: {type: object, properties: {" + strings.Join(properties, ", ") + "}}}}\n"
	}
	return out
}

func yes(flags, flag string) string {
	if strings.Contains(flags, flag) {
		return "true"
	}
	return "false"
}

// TestStorageVersion checks which changes of the storage version lose no field (P18).
func TestStorageVersion(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		old, new string
		stored   []string
		want     []Rule
	}{
		{"the version takes all that is stored", storing("v1 sS a", "v2 s a"), storing("v1 s a", "v2 sS a"), nil, nil},
		{"it takes more", storing("v1 sS a", "v2 s a b"), storing("v1 s a", "v2 sS a b"), nil, nil},
		{"it is new", storing("v1 sS a"), storing("v1 s a", "v2 sS a"), nil, nil},
		{"a field would be pruned", storing("v1 sS a b", "v2 s a"), storing("v1 s a b", "v2 sS a"), nil, []Rule{RuleStorage}},
		{"a field that a third version stores", storing("v0 - c", "v1 sS a", "v2 s a"), storing("v0 - c", "v1 s a", "v2 sS a"), []string{"v0", "v1"}, []Rule{RuleStorage}},
		{"a field that a third version no longer stores", storing("v0 - c", "v1 sS a", "v2 s a"), storing("v0 - c", "v1 s a", "v2 sS a"), []string{"v1"}, nil},
		{"none is the storage version", storing("v1 sS a", "v2 s a"), storing("v1 s a", "v2 s a"), nil, []Rule{RuleStorage}},
		{"a version goes that is stored", storing("v1 - a", "v2 sS a"), storing("v2 sS a"), []string{"v1", "v2"}, []Rule{RuleStoredVersion}},
		{"a version goes that is stored and served: to wait would be in vain", storing("v1 s a", "v2 sS a"), storing("v2 sS a"), []string{"v1", "v2"},
			[]Rule{RuleServedVersion, RuleStoredVersion}},
		{"a version goes whose objects were migrated, and which clients may use", storing("v1 s a", "v2 sS a"), storing("v2 sS a"), []string{"v2"},
			[]Rule{RuleServedVersion}},
		{"it is served no more", storing("v1 s a", "v2 sS a"), storing("v1 - a", "v2 sS a"), []string{"v2"}, []Rule{RuleServedVersion}},
		{"the administrator has stopped serving it", storing("v1 - a", "v2 sS a"), storing("v2 sS a"), []string{"v2"}, nil},
	} {
		old, new := parse(t, tc.old), parse(t, tc.new)
		old.Status.StoredVersions = tc.stored
		if got := rulesOf(Compare(old, new)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
		}
	}
}

// TestMigrationError checks which changes wait for a migration of stored versions, and which are refused (P18).
func TestMigrationError(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		old, new string
		stored   []string
		want     []string
	}{
		{"one that is served, once no object is stored in it", storing("v1 s a", "v2 sS a"), storing("v2 sS a"), []string{"v2"}, nil},
		{"a version that is stored and not served", storing("v1 - a", "v2 sS a"), storing("v2 sS a"), []string{"v1", "v2"}, []string{"v1"}},
		{"two of them", storing("v0 - a", "v1 - a", "v2 sS a"), storing("v2 sS a"), []string{"v0", "v1", "v2"}, []string{"v0", "v1"}},
		{"one that is served", storing("v1 s a", "v2 sS a"), storing("v2 sS a"), []string{"v1", "v2"}, nil},
		{"the storage version itself", storing("v1 S a", "v2 s a"), storing("v2 sS a"), []string{"v1"}, nil},
		{"another breach besides", storing("v1 - a", "v2 sS a b"), storing("v2 sS a"), []string{"v1", "v2"}, nil},
	} {
		old, new := parse(t, tc.old), parse(t, tc.new)
		old.Status.StoredVersions = tc.stored
		live, errLive := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
		wanted, errWanted := runtime.DefaultUnstructuredConverter.ToUnstructured(new)
		if err := errors.Join(errLive, errWanted); err != nil {
			t.Fatal(err)
		}
		err := newComparer(t, apitest.Start(t)).CheckUpdate(t.Context(), &unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: wanted})
		var wait *MigrationError
		switch {
		case err == nil:
			t.Errorf("%s: it is no error", tc.reason)
		case errors.As(err, &wait) != (tc.want != nil):
			t.Errorf("%s: %v", tc.reason, err)
		case wait != nil && (!slices.Equal(wait.StoredVersions(), tc.want) || !strings.Contains(err.Error(), "ships.example.com may be stored in version "+tc.want[0])):
			t.Errorf("%s: %v", tc.reason, err)
		case strings.HasPrefix(tc.reason, "one that is served") != strings.Contains(err.Error(), "set served: false in the cluster by hand"):
			t.Errorf("%s: who is to stop serving it: %v", tc.reason, err)
		}
	}
}
