package inventory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/clusters"
	"kudo.dev/kudo/test/corpus"
)

// slice builds a PlacementDecision as the hub has it.
func slice(t *testing.T, name, index string, clusters ...string) PlacementDecision {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(DecisionKind)
	obj.SetNamespace("ns")
	obj.SetName(name)
	obj.SetLabels(map[string]string{DecisionKeyLabel: "prod"})
	if index != "" {
		obj.SetLabels(map[string]string{DecisionKeyLabel: "prod", DecisionIndexLabel: index})
	}
	decisions := []any{}
	for _, c := range clusters {
		ref := map[string]any{"name": c}
		if ns, name, found := strings.Cut(c, "/"); found {
			ref = map[string]any{"name": name, "namespace": ns}
		}
		decisions = append(decisions, map[string]any{"clusterProfileRef": ref, "reason": "fits"})
	}
	obj.Object["decisions"] = decisions
	out, err := ParseDecision(obj)
	if err != nil {
		t.Fatal(err)
	}
	return *out
}

// TestDecide checks which clusters slices choose, and which slices hold what is placed (C45).
func TestDecide(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("m%d", i)
	}
	for name, c := range map[string]struct {
		slices     []PlacementDecision
		fromZero   bool
		want, hold string
		reason     string
	}{
		"by index":      {slices: []PlacementDecision{slice(t, "a", "1", "m3"), slice(t, "b", "0", "m1", "m2")}, want: "ns/m1 ns/m2 ns/m3", reason: "names of slices say nothing if there are indexes"},
		"by number":     {slices: elevenSlices(t), want: "ns/m0 ns/m1 ns/m2 ns/m3 ns/m4 ns/m5 ns/m6 ns/m7 ns/m8 ns/m9 ns/m10", reason: "an index is a number"},
		"from 1":        {slices: []PlacementDecision{slice(t, "a", "1", "m1"), slice(t, "b", "2", "m2")}, want: "ns/m1 ns/m2", reason: "some count from 1"},
		"not from 0":    {slices: []PlacementDecision{slice(t, "a", "1", "m1")}, fromZero: true, hold: "the slice with the index 0, which was there before, is missing", reason: "the scheduler may be withdrawing the decision"},
		"from 0 again":  {slices: []PlacementDecision{slice(t, "a", "0", "m1")}, fromZero: true, want: "ns/m1", reason: "it is as before"},
		"by name":       {slices: []PlacementDecision{slice(t, "b", "", "m2"), slice(t, "a", "", "m1")}, want: "ns/m1 ns/m2", reason: "the order must not depend on that of a list"},
		"once":          {slices: []PlacementDecision{slice(t, "a", "", "m1", "ns/m1", "other/m1")}, want: "ns/m1 other/m1", reason: "a cluster that is there twice counts once"},
		"none":          {slices: []PlacementDecision{slice(t, "a", "")}, reason: "an empty list is a decision"},
		"vanished":      {hold: "there are none: a scheduler that wants no cluster states `decisions: []`", reason: "a decision that has vanished removes nothing"},
		"same index":    {slices: []PlacementDecision{slice(t, "a", "0", "m1"), slice(t, "b", "0", "m2")}, hold: "a and b both have the index 0", reason: "one of them is old"},
		"gap":           {slices: []PlacementDecision{slice(t, "a", "0", "m1"), slice(t, "b", "2", "m2")}, hold: "the slice with the index 1 is missing", reason: "a slice that is missing would remove its clusters"},
		"no beginning":  {slices: []PlacementDecision{slice(t, "a", "3", "m1")}, hold: "the slices with the indexes below 3 are missing", reason: "the first slices are missing"},
		"mixed":         {slices: []PlacementDecision{slice(t, "a", "0", "m1"), slice(t, "b", "", "m2")}, hold: `b has the index "", which is no number`, reason: "the place of a slice is not known"},
		"too many":      {slices: []PlacementDecision{slice(t, "a", "", many...)}, hold: "101 clusters are more than the 100", reason: "an Instance has at most 100"},
		"slash":         {slices: []PlacementDecision{slice(t, "a", "", "ns/m1/x")}, hold: `a: decisions[0].clusterProfileRef has the name "m1/x", which no ClusterProfile can have`, reason: "it would mean a profile of another namespace"},
		"namespace":     {slices: []PlacementDecision{slice(t, "a", "", "N.S/m1")}, hold: `has the namespace "N.S", which cannot be one`, reason: "it names nothing"},
		"without names": {slices: []PlacementDecision{slice(t, "a", "", "m1", "")}, hold: "a: decisions[1].clusterProfileRef has no name", reason: "an entry that says nothing cannot be followed"},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := decide("prod", c.slices, c.fromZero)
			var texts []string
			for _, key := range chosen.profiles {
				texts = append(texts, key.String())
			}
			hold := &clusters.HoldError{}
			switch {
			case c.hold != "" && (!errors.As(err, &hold) || !strings.Contains(hold.Message, c.hold)):
				t.Errorf("%s: the error is %v, want %q", c.reason, err, c.hold)
			case c.hold == "" && (err != nil || strings.Join(texts, " ") != c.want):
				t.Errorf("%s: %v, %v, want %q", c.reason, texts, err, c.want)
			}
		})
	}
}

// elevenSlices are slices whose indexes have one and two digits, in the order of their names.
func elevenSlices(t *testing.T) []PlacementDecision {
	var out []PlacementDecision
	for i := range 11 {
		out = append(out, slice(t, fmt.Sprintf("s%d", 20-i), fmt.Sprint(i), fmt.Sprintf("m%d", i)))
	}
	return out
}

// FuzzDecide checks that a decision names each cluster once, or holds.
func FuzzDecide(f *testing.F) {
	f.Add(`[{"metadata":{"name":"a"},"decisions":[{"clusterProfileRef":{"name":"m1"}}]}]`)
	f.Add(`[{"metadata":{"name":"a","labels":{"multicluster.x-k8s.io/decision-index":"0"}},"decisions":[]},{"metadata":{"name":"b"}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var in []PlacementDecision
		if yaml.Unmarshal([]byte(text), &in) != nil {
			return
		}
		chosen, err := decide("k", in, false)
		seen := map[types.NamespacedName]bool{}
		for _, key := range chosen.profiles {
			if seen[key] || key.Name == "" || err != nil {
				t.Fatalf("%v with the error %v", chosen, err)
			}
			seen[key] = true
		}
	})
}

// TestProfileKey checks which profile a name in spec.placement means (C45).
func TestProfileKey(t *testing.T) {
	for name, c := range map[string]struct{ namespace, want string }{
		"m1": {"fleet", "fleet/m1"}, "other/m1": {"fleet", "other/m1"}, "own/m1": {"", "own/m1"},
		"m2": {"", ""}, "/m1": {"fleet", ""}, "a/": {"fleet", ""}, "a/b/c": {"fleet", ""},
	} {
		got, err := ProfileKey(name, c.namespace)
		if (err != nil) != (c.want == "") || err == nil && got.String() != c.want {
			t.Errorf("%q in %q: %v, %v, want %q", name, c.namespace, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("the error %q does not have the name %q", err, name)
		}
	}
}

// TestPublishedDefinitions checks that the fields which are read are those of the published definitions (C45, C48).
func TestPublishedDefinitions(t *testing.T) {
	dir := filepath.Join(corpus.Require(t), "karmada-crds", "multicluster")
	for file, want := range map[string][]string{
		"multicluster.x-k8s.io_clusterprofiles.yaml": {
			"status.accessProviders.name", "status.accessProviders.cluster.server", "status.accessProviders.cluster.tls-server-name",
			"status.accessProviders.cluster.insecure-skip-tls-verify", "status.accessProviders.cluster.certificate-authority",
			"status.accessProviders.cluster.certificate-authority-data", "status.accessProviders.cluster.proxy-url",
			"status.accessProviders.cluster.disable-compression", "status.accessProviders.cluster.extensions.name",
			"status.accessProviders.cluster.extensions.extension", "status.credentialProviders.cluster.server",
		},
		"multicluster.x-k8s.io_placementdecisions.yaml": {"decisions.clusterProfileRef.name", "decisions.clusterProfileRef.namespace", "schedulerName"},
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		definition := map[string]any{}
		if err := yaml.Unmarshal(data, &definition); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
		schema, found, _ := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
		if !found || versions[0].(map[string]any)["name"] != ProfileKind.Version {
			t.Fatalf("%s has no version %s", file, ProfileKind.Version)
		}
		for _, field := range want {
			at := schema
			for part := range strings.SplitSeq(field, ".") {
				if items, isList := at["items"].(map[string]any); isList {
					at = items
				}
				properties, _ := at["properties"].(map[string]any)
				at, _ = properties[part].(map[string]any)
			}
			if at == nil {
				t.Errorf("%s has no field %s", file, field)
			}
		}
	}
}

// TestSliceOrder checks that a decision does not depend on the order of a list (C45).
func TestSliceOrder(t *testing.T) {
	a, b, c := slice(t, "a", "", "m1"), slice(t, "b", "", "m2", "m1"), slice(t, "c", "", "m3")
	want, err := decide("prod", []PlacementDecision{a, b, c}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range [][]PlacementDecision{{a, c, b}, {b, a, c}, {b, c, a}, {c, a, b}, {c, b, a}} {
		if got, err := decide("prod", order, false); err != nil || !cmp.Equal(got.profiles, want.profiles) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}
