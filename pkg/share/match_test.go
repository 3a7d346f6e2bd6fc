package share

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestAlike: protocols 3, what counts when a live object is compared.
func TestAlike(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object, "
	for name, tc := range map[string]struct {
		reason string
		a, b   string
		alike  bool
	}{
		"Status":      {"the status is the cluster's", "kind: X\nstatus: {a: 1}", "kind: X\nstatus: {a: 2}", true},
		"Label":       {"labels and annotations do not decide", "kind: X\nmetadata: {labels: {a: b}}", "kind: X\nmetadata: {annotations: {c: d}}", true},
		"PodSecurity": {"but those that change what the object does", "kind: Namespace\nmetadata: {labels: {pod-security.kubernetes.io/enforce: baseline}}", "kind: Namespace", false},
		"Aggregate":   {"such as a ClusterRole that others take up", "kind: ClusterRole\nmetadata: {labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}}", "kind: ClusterRole", false},
		"Rules":       {"rules of an aggregated role are filled in", "kind: ClusterRole\naggregationRule: {a: b}\nrules: [{verbs: [get]}]", "kind: ClusterRole\naggregationRule: {a: b}", true},
		"PlainRules":  {"those of others are not", "kind: ClusterRole\nrules: [{verbs: [get]}]", "kind: ClusterRole", false},
		"Bundle":      {"an empty CA bundle says nothing", "kind: X\nwebhooks: [{clientConfig: {caBundle: ''}}]", "kind: X\nwebhooks: [{clientConfig: {}}]", true},
		"OtherBundle": {"one that is named does", "kind: X\nwebhooks: [{clientConfig: {caBundle: YQ==}}]", "kind: X\nwebhooks: [{clientConfig: {}}]", false},
		"Empty":       {"the server stores null for an empty list", "kind: X\nspec: {list: []}", "kind: X\nspec: {list: null}", true},
		"EmptyMap":    {"an empty map means something", "kind: X\nspec: {map: {}}", "kind: X\nspec: {}", false},
		"Description": {"prose in schemas does not count", crd + "description: old}}}]}", crd + "description: new}}}]}", true},
		"Nested":      {"nor does that of what is below", crd + "properties: {a: {items: {anyOf: [{description: old}]}}}}}}]}", crd + "properties: {a: {items: {anyOf: [{description: new}]}}}}}}]}", true},
		"Column":      {"nor does that of a column", crd + "}}, additionalPrinterColumns: [{name: a, description: old}]}]}", crd + "}}, additionalPrinterColumns: [{name: a, description: new}]}]}", true},
		"Default":     {"a field of a default of that name does", crd + "default: {description: old}}}}]}", crd + "default: {description: new}}}}]}", false},
		"Enum":        {"a field of a value of an enum does", crd + "enum: [{description: old}]}}}]}", crd + "enum: [{description: new}]}}}]}", false},
		"OfDefault":   {"prose of a property that is named default does not", crd + "properties: {default: {description: old}}}}}]}", crd + "properties: {default: {description: new}}}}}]}", true},
		"NamedSo":     {"a property of that name does", crd + "properties: {description: {type: string}}}}}]}", crd + "properties: {description: {type: integer}}}}}]}", false},
		"Fence":       {"the fence of a release is up for moments", crd + "x-kubernetes-validations: [{rule: oldSelf.hasValue(), message: '" + fenceMessage + "', optionalOldSelf: true}]}}}]}", crd + "}}}]}", true},
		"OtherRule":   {"other rules count", crd + "x-kubernetes-validations: [{rule: oldSelf.hasValue(), message: mine}]}}}]}", crd + "}}}]}", false},
		"Content":     {"all else counts", "kind: X\nspec: {a: 1}", "kind: X\nspec: {a: 2}", false},
	} {
		if got := alike(parse(t, tc.a), parse(t, tc.b)); got != tc.alike {
			t.Errorf("%s: %s: alike %v", name, tc.reason, got)
		}
		if same := Fingerprint(parse(t, tc.a), nil) == Fingerprint(parse(t, tc.b), nil); same != tc.alike {
			t.Errorf("%s: %s: fingerprints are the same: %v", name, tc.reason, same)
		}
	}
}

// TestDiff: a mismatch names the fields that differ with both values, and masks secrets.
func TestDiff(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		live, wanted string
		want         []Difference
	}{
		"Field":  {"a field", "kind: X\nspec: {a: 1, b: x}", "kind: X\nspec: {a: 2, b: x}", []Difference{{"spec.a", "1", "2"}}},
		"List":   {"an entry of a list", "kind: X\nspec: {a: [1, 2]}", "kind: X\nspec: {a: [1, 3]}", []Difference{{"spec.a[1]", "2", "3"}}},
		"Length": {"lists of other length as a whole", "kind: X\nspec: {a: [1]}", "kind: X\nspec: {a: [1, 2]}", []Difference{{"spec.a", "[1]", "[1,2]"}}},
		"Absent": {"what is not there", "kind: X\nspec: {}", "kind: X\nspec: {a: {b: c}}", []Difference{{"spec.a", "absent", `{"b":"c"}`}}},
		"Order":  {"in order of names", "kind: X\nspec: {c: 1, a: 1}", "kind: X\nspec: {c: 2, a: 2}", []Difference{{"spec.a", "1", "2"}, {"spec.c", "1", "2"}}},
		"Secret": {"secrets are masked", "kind: Secret\napiVersion: v1\ndata: {k: b2xk}", "kind: Secret\napiVersion: v1\ndata: {k: bmV3, m: eA==}", []Difference{{"data.k", "***", "***"}, {"data.m", "absent", "***"}}},
	} {
		if diff := cmp.Diff(tc.want, diff(parse(t, tc.live), parse(t, tc.wanted))); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
	}
	e := &MismatchError{ID: apply.ID{}, Differences: make([]Difference, 9)}
	if text := e.Error(); !strings.Contains(text, "and 4 more") || !strings.Contains(text, "another owner") {
		t.Errorf("a message is bounded: %s", text)
	}
}

// TestState: who created an object stands first among its owners.
func TestState(t *testing.T) {
	holder := &v1beta1.Installation{}
	holder.UID = "me"
	for name, tc := range map[string]struct {
		reason  string
		managed string
		owners  []string
		want    v1beta1.HoldState
	}{
		"Foreign": {"kudo did not create it", "", []string{"me"}, v1beta1.HoldExisting},
		"Other":   {"only the value true counts", "yes", []string{"me"}, v1beta1.HoldExisting},
		"First":   {"we did", "true", []string{"me", "other"}, v1beta1.HoldCreated},
		"Second":  {"another did", "true", []string{"other", "me"}, v1beta1.HoldShared},
		"Orphan":  {"no owner is left to show who created it", "true", nil, v1beta1.HoldShared},
	} {
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: tc.managed})
		var owners []any
		for _, uid := range tc.owners {
			owners = append(owners, map[string]any{"kind": "Installation", "apiVersion": "kudo.dev/v1beta1", "name": uid, "uid": uid})
		}
		if err := unstructured.SetNestedSlice(live.Object, owners, "metadata", "ownerReferences"); err != nil {
			t.Fatal(err)
		}
		if got := State(live, holder); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
		if got := Owns(live, holder); got != (len(tc.owners) > 0) {
			t.Errorf("%s: owns %v", name, got)
		}
	}
}

// TestNewer: which of two versions of an operator is the newer one, and may change what both hold.
func TestNewer(t *testing.T) {
	version := func(version, app string) *v1beta1.OperatorVersion {
		ov := &v1beta1.OperatorVersion{}
		ov.Spec.Version, ov.Spec.AppVersion = version, app
		return ov
	}
	for name, tc := range map[string]struct {
		reason string
		a, b   *v1beta1.OperatorVersion
		want   bool
	}{
		"Higher":  {"by the package's version", version("1.1.0", ""), version("1.0.9", ""), true},
		"Lower":   {"by the package's version", version("1.0.0", "9"), version("1.0.9", "1"), false},
		"App":     {"then by the application's", version("1.0.0", "2.0"), version("1.0.0", "1.9"), true},
		"Same":    {"the same is not newer", version("1.0.0", "2.0"), version("1.0.0", "2.0"), false},
		"Unknown": {"what is no version says nothing", version("latest", ""), version("1.0.0", ""), false},
	} {
		if got := newer(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}

// TestFind: the version of the API does not count.
func TestFind(t *testing.T) {
	held := Inventory{{APIVersion: "policy/v1beta1", Kind: "PodDisruptionBudget", Namespace: "a", Name: "b", UID: types.UID("x")}}
	id := IDOf(held[0])
	id.Version = "v1"
	if held.Find(id) != 0 || held.record(id).UID != "x" {
		t.Error("another version of the API")
	}
	id.Group = "other"
	if held.Find(id) != -1 || held.record(id).UID != "" {
		t.Error("another group is another kind")
	}
}
