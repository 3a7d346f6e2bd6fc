package share

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// TestContains checks what a live object may hold besides what is wanted.
func TestContains(t *testing.T) {
	for _, tc := range []struct {
		reason, wanted, live string
		want                 bool
	}{
		{"equal values", "{a: {b: 1}}", "{a: {b: 1}}", true},
		{"maps may hold more", "{a: {b: 1}}", "{a: {b: 1, c: 2}, d: 3}", true},
		{"but not less", "{a: {b: 1, c: 2}}", "{a: {b: 1}}", false},
		{"another value", "{a: 1}", "{a: 2}", false},
		{"a map instead of a value", "{a: 1}", "{a: {b: 1}}", false},
		{"a value instead of a map", "{a: {b: 1}}", "{a: 1}", false},
		{"a value instead of a list", "{a: [1]}", "{a: 1}", false},
		{"named entries may be more, in any order", "{a: [{name: x, v: 1}]}", "{a: [{name: y}, {name: x, v: 1, w: 2}]}", true},
		{"a named entry is missing", "{a: [{name: x}]}", "{a: [{name: y}]}", false},
		{"a named entry differs", "{a: [{name: x, v: 1}]}", "{a: [{name: x, v: 2}]}", false},
		{"lists without names are equal in order", "{a: [1, 2]}", "{a: [2, 1]}", false},
		{"lists without names are equal in length", "{a: [1]}", "{a: [1, 2]}", false},
		{"a live list that is shorter", "{a: [1, 2]}", "{a: [1]}", false},
		{"an empty list and no list", "{a: []}", "{}", false},
		{"null and no value", "{a: null}", "{}", true},
	} {
		if got := contains(any(parse(t, tc.wanted).Object), any(parse(t, tc.live).Object)); got != tc.want {
			t.Errorf("%s: got %t", tc.reason, got)
		}
	}
}

// TestContentLeavesTheObject checks that a comparison changes neither object.
func TestContentLeavesTheObject(t *testing.T) {
	const text = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: x, labels: {a: b}, annotations: {c: d}}
status: {a: 1}
spec:
  list: []
  conversion: {webhook: {clientConfig: {caBundle: Cg==}}}
  versions: [{name: v1, schema: {openAPIV3Schema: {type: object, description: d, x-kubernetes-validations: [{rule: oldSelf.hasValue(), message: "` + fenceMessage + `"}]}}}]`
	obj, before := parse(t, text), parse(t, text)
	content := Content(obj)
	if diff := cmp.Diff(before.Object, obj.Object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
	want := parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {}, spec: {conversion: {webhook: {clientConfig: {}}}, versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}}")
	if diff := cmp.Diff(want.Object, content, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what counts (-want +got):\n%s", diff)
	}
}

// TestFingerprintOfSecrets checks that no plain hash of a Secret is recorded.
func TestFingerprintOfSecrets(t *testing.T) {
	if got := Fingerprint(parse(t, "{apiVersion: v1, kind: Secret, data: {k: b2xk}}"), nil); got != "" {
		t.Errorf("without keys there is no digest of a Secret, got %q", got)
	}
	if got := Fingerprint(parse(t, "{apiVersion: example.com/v1, kind: Secret, data: {k: b2xk}}"), nil); len(got) != 20 {
		t.Errorf("a kind of another group is no Secret, got %q", got)
	}
}

// TestMismatchTexts checks what a user reads of an object that differs.
func TestMismatchTexts(t *testing.T) {
	id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}}
	id.Name = "app"
	one := []Difference{{Path: "a", Live: "1", Wanted: "2"}}
	many := make([]Difference, shown+1)
	for i := range many {
		many[i] = Difference{Path: fmt.Sprintf("f%d", i), Live: "1", Wanted: "absent"}
	}
	for _, tc := range []struct {
		reason string
		err    MismatchError
		want   string
	}{
		{"its holders are listed", MismatchError{ID: id, Differences: one, Holders: []string{"OperatorVersion a/b", "Secret c"}},
			"ClusterRole app exists already and does not match: a is 1, and the package wants 2. It belongs to OperatorVersion a/b, Secret c, and was not changed: change the template to match, or rename one of the objects"},
		{"a reason comes before the remedy", MismatchError{ID: id, Differences: one, Reason: "it is so"},
			"ClusterRole app exists already and does not match: a is 1, and the package wants 2. It belongs to another owner, and was not changed (it is so): change the template to match, or rename one of the objects"},
		{"a drift names who did it", MismatchError{ID: id, Differences: one, Drifted: true, By: "kubectl"},
			"ClusterRole app was changed since it was installed, last by kubectl: a is 1, and the package wants 2. It is not overwritten: revert the change, or take the object over by removing its annotation kudo.dev/managed"},
		{"as many as are shown", MismatchError{ID: id, Differences: many[:shown], Drifted: true}, "f4 is 1, and the package wants absent. It"},
		{"one more", MismatchError{ID: id, Differences: many, Drifted: true}, "f4 is 1, and the package wants absent; and 1 more. It"},
	} {
		if got := tc.err.Error(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
		}
	}
}

// TestDiffOfSecretsAndLargeValues checks that a message shows neither the values of a Secret nor a large value as a whole.
func TestDiffOfSecretsAndLargeValues(t *testing.T) {
	got := diff(parse(t, "{apiVersion: v1, kind: Secret, type: Opaque}"), parse(t, "{apiVersion: v1, kind: Secret, type: tls, stringData: {k: hunter2}}"))
	want := []Difference{{"stringData", "absent", "***"}, {"type", `"Opaque"`, `"tls"`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the data of a Secret is masked as a whole, its type is not (-want +got):\n%s", diff)
	}
	got = diff(parse(t, "{apiVersion: example.com/v1, kind: Secret, data: {k: a}}"), parse(t, "{apiVersion: example.com/v1, kind: Secret, data: {k: b}}"))
	if diff := cmp.Diff([]Difference{{"data.k", `"a"`, `"b"`}}, got); diff != "" {
		t.Errorf("a kind of another group is shown (-want +got):\n%s", diff)
	}
	got = diff(parse(t, "{kind: X, spec: {a: "+strings.Repeat("é", maxValue)+"}}"), parse(t, "{kind: X, spec: {a: {}}}"))
	if len(got) != 1 || len(got[0].Live) > maxValue+len("…") || got[0].Wanted != none {
		t.Errorf("a large value is cut, and an empty map is none: %+v", got)
	}
}

// withRules is a definition with a version for each list of rules in flow style.
func withRules(t *testing.T, rules ...string) *unstructured.Unstructured {
	t.Helper()
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec:\n  versions:\n"
	for i, list := range rules {
		text += fmt.Sprintf("  - {name: v%d, schema: {openAPIV3Schema: {type: object%s}}}\n", i, list)
	}
	return parse(t, text)
}

const (
	ownRule = `{rule: self.a > 0}`
	ourRule = `{rule: oldSelf.hasValue(), message: "` + fenceMessage + `", optionalOldSelf: true}`
)

// TestFences checks which operations put a fence up and take it off, by version.
func TestFences(t *testing.T) {
	rules := func(list string) string { return ", x-kubernetes-validations: [" + list + "]" }
	crd := withRules(t, "", rules(ownRule), rules(ourRule), rules(ownRule+", "+ourRule))
	at := func(i int, rest string) string {
		return fmt.Sprintf("/spec/versions/%d/schema/openAPIV3Schema/x-kubernetes-validations%s", i, rest)
	}
	rule := map[string]any{"rule": fenceRule, "message": fenceMessage, "optionalOldSelf": true}
	up := []operation{{"add", at(0, ""), []any{rule}}, {"add", at(1, "/-"), rule}}
	if diff := cmp.Diff(up, fences(crd)); diff != "" {
		t.Errorf("a version that has a fence gets no second one (-want +got):\n%s", diff)
	}
	off := []operation{
		{"test", at(2, "/0/rule"), fenceRule}, {Op: "remove", Path: at(2, "/0")},
		{"test", at(3, "/1/rule"), fenceRule}, {Op: "remove", Path: at(3, "/1")},
	}
	if diff := cmp.Diff(off, unfences(crd)); diff != "" {
		t.Errorf("a rule of the package's stays (-want +got):\n%s", diff)
	}
	withoutFence(crd.Object)
	if diff := cmp.Diff(withRules(t, "", rules(ownRule), "", rules(ownRule)).Object, crd.Object); diff != "" {
		t.Errorf("no empty list of rules is left (-want +got):\n%s", diff)
	}
	for reason, text := range map[string]string{
		"versions of another type": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: a}}",
		"a version without schema": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1}, 5]}}",
		"a kind without a fence":   "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {kudo.dev/releasing: 'true'}}}",
	} {
		obj := parse(t, text)
		if got := unfences(obj); got != nil {
			t.Errorf("%s: got %+v", reason, got)
		}
		withoutFence(obj.Object)
		if diff := cmp.Diff(parse(t, text).Object, obj.Object); diff != "" {
			t.Errorf("%s: the content was changed:\n%s", reason, diff)
		}
	}
}

// TestFencesOfNamespaces checks that the labels of a Namespace are made where there are none.
func TestFencesOfNamespaces(t *testing.T) {
	label := operation{"add", fenceLabel, "true"}
	for _, tc := range []struct {
		reason, labels string
		up, off        []operation
	}{
		{"no labels", "{}", []operation{{"add", "/metadata/labels", map[string]any{}}, label}, nil},
		{"other labels", "{labels: {a: b}}", []operation{label}, nil},
		{"the fence", "{labels: {kudo.dev/releasing: 'true'}}", []operation{label}, []operation{{"test", fenceLabel, "true"}, {Op: "remove", Path: fenceLabel}}},
		{"another value is not ours", "{labels: {kudo.dev/releasing: 'no'}}", []operation{label}, nil},
	} {
		namespace := parse(t, "{apiVersion: v1, kind: Namespace, metadata: "+tc.labels+"}")
		if diff := cmp.Diff(tc.up, fences(namespace)) + cmp.Diff(tc.off, unfences(namespace)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestDescribeCount checks the text about objects that are left, of which the API server sends the first.
func TestDescribeCount(t *testing.T) {
	rest := int64(2)
	item := func(namespace, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	for _, tc := range []struct {
		reason string
		list   metav1.PartialObjectMetadataList
		want   string
	}{
		{"none", metav1.PartialObjectMetadataList{}, ""},
		{"one", metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{item("", "a")}}, "has one object of kind Ship (a)"},
		{"one of a namespace", metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{item("ns", "a")}}, "has one object of kind Ship (ns/a)"},
		{"the rest is counted", metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{RemainingItemCount: &rest}, Items: []metav1.PartialObjectMetadata{item("ns", "a")}},
			"has 3 objects of kind Ship (one is ns/a)"},
	} {
		if got := describeCount(&tc.list, "Ship"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestEstablished checks which conditions say that a definition was in force.
func TestEstablished(t *testing.T) {
	for text, want := range map[string]bool{
		"{status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}}": true,
		"{status: {conditions: [{type: Established, status: 'False'}]}}":                                       false,
		"{status: {conditions: [{type: Established, status: true}]}}":                                          false,
		"{status: {conditions: [5]}}": false,
		"{status: {conditions: a}}":   false,
		"{}":                          false,
	} {
		if got := established(parse(t, text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

// TestContentOfHolders checks which objects of a namespace the holder has, and which are being deleted.
func TestContentOfHolders(t *testing.T) {
	s := &Session{holder: &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{UID: "holder"}}, inventory: Inventory{
		{Name: "created", UID: "created", State: v1beta1.HoldCreated}, {Name: "used", UID: "used", State: v1beta1.HoldExisting},
	}}
	now := metav1.Now()
	for _, tc := range []struct {
		reason string
		item   metav1.ObjectMeta
		want   bool
	}{
		{"an object of the user's", metav1.ObjectMeta{Name: "a", UID: "a"}, true},
		{"one that is being deleted", metav1.ObjectMeta{Name: "a", UID: "a", DeletionTimestamp: &now}, false},
		{"one that the holder owns", metav1.ObjectMeta{Name: "a", UID: "a", OwnerReferences: []metav1.OwnerReference{{UID: "holder"}}}, false},
		{"one that another Installation owns", metav1.ObjectMeta{Name: "a", UID: "a", OwnerReferences: []metav1.OwnerReference{{UID: "other"}}}, true},
		{"one of the inventory", metav1.ObjectMeta{Name: "created", UID: "created"}, false},
		{"another one of its name", metav1.ObjectMeta{Name: "created", UID: "new"}, true},
		{"one that kudo did not create", metav1.ObjectMeta{Name: "used", UID: "used"}, true},
	} {
		got, err := s.isContent(schema.GroupKind{Kind: "Secret"}, &metav1.PartialObjectMetadata{ObjectMeta: tc.item})
		if err != nil || got != tc.want {
			t.Errorf("%s: got %t, %v", tc.reason, got, err)
		}
	}
}

// TestGuardOwnerIsReadOnce checks which kinds get a guard owner, and that it is read once and not after a failure.
func TestGuardOwnerIsReadOnce(t *testing.T) {
	reads, refused := 0, errors.New("refused")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: guardian, UID: "system"}}
	reader := fake.NewClientBuilder().WithObjects(namespace).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if reads++; reads == 1 {
				return refused
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	g := &guardOwner{reader: reader}
	claim := parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim}")
	if _, err := g.add(t.Context(), claim, nil); !errors.Is(err, refused) || !strings.Contains(err.Error(), "read Namespace kube-system, the guard owner") {
		t.Fatalf("a guard owner that cannot be read is an error: %v", err)
	}
	first := []metav1.OwnerReference{{Kind: "Installation", Name: "a"}}
	for _, text := range []string{"{apiVersion: v1, kind: Namespace}", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}", "{apiVersion: v1, kind: PersistentVolumeClaim}"} {
		owners, err := g.add(t.Context(), parse(t, text), first)
		if err != nil || len(owners) != 2 || owners[0].Name != "a" || owners[1].UID != "system" || !guards(owners[1]) {
			t.Errorf("%s: the guard owner comes last: %+v, %v", text, owners, err)
		}
		again, err := g.add(t.Context(), parse(t, text), owners)
		if diff := cmp.Diff(owners, again); diff != "" || err != nil {
			t.Errorf("%s: it is added once: %v\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"{apiVersion: v1, kind: ConfigMap}", "{apiVersion: example.com/v1, kind: Namespace}"} {
		if owners, err := g.add(t.Context(), parse(t, text), first); err != nil || len(owners) != 1 {
			t.Errorf("%s needs no guard: %+v, %v", text, owners, err)
		}
	}
	if reads != 2 {
		t.Errorf("the guard owner was read %d times, and not once after the failure", reads)
	}
}

// TestOthers checks that neither the holder nor the guard is another owner.
func TestOthers(t *testing.T) {
	live := parse(t, `{metadata: {ownerReferences: [{uid: me, kind: Installation, apiVersion: kudo.dev/v1beta1, name: me}, {uid: g, kind: Namespace, apiVersion: v1, name: kube-system},
		{uid: ns, kind: Namespace, apiVersion: v1, name: mine}, {uid: o, kind: Installation, apiVersion: kudo.dev/v1beta1, name: me}]}}`)
	holder := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "me", UID: "me"}}
	var got []string
	for _, owner := range others(live, holder) {
		got = append(got, string(owner.UID))
	}
	if diff := cmp.Diff([]string{"ns", "o"}, got); diff != "" {
		t.Errorf("a holder of before with the same name is another one (-want +got):\n%s", diff)
	}
	if len(live.GetOwnerReferences()) != 4 {
		t.Error("the owners of the object were changed")
	}
}
