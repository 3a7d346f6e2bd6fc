package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// keepCandidate is a ConfigMap with owners and annotations.
func keepCandidate(annotations map[string]string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	out.SetAnnotations(annotations)
	out.SetOwnerReferences(owners)
	return out
}

// instanceOwner is a reference to an Instance.
func instanceOwner(uid types.UID, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "i", UID: uid, Controller: ptr.To(controller)}
}

// TestHasRightController is P25: the Instance owns the live object, unless the object is kept.
func TestHasRightController(t *testing.T) {
	kept, ours := map[string]string{v1beta1.KeepAnnotation: "true"}, instanceOwner("ours", true)
	for _, tc := range []struct {
		reason     string
		live, body *unstructured.Unstructured
		want       bool
	}{
		{"owned", keepCandidate(nil, ours), keepCandidate(nil, ours), true},
		{"its owner was removed", keepCandidate(nil), keepCandidate(nil, ours), false},
		{"kept, and not owned", keepCandidate(kept), keepCandidate(nil, ours), true},
		{"kept, and still owned", keepCandidate(kept, ours), keepCandidate(nil, ours), false},
		{"not kept any more", keepCandidate(map[string]string{v1beta1.KeepAnnotation: "false"}), keepCandidate(nil, ours), false},
		{"its template keeps it: its hash decides", keepCandidate(kept, ours), keepCandidate(kept), true},
		{"of no Instance", keepCandidate(nil), keepCandidate(nil, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", UID: "n", Controller: ptr.To(true)}), true},
		{"an owner that does not control it", keepCandidate(nil), keepCandidate(nil, instanceOwner("ours", false)), true},
	} {
		if got := hasRightController(tc.live, tc.body); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestWasLeft shows P26: an object was left if a plan of the name has written it, and neither the inventory nor its owners name it.
func TestWasLeft(t *testing.T) {
	const manager = "kudo/ns/i"
	writtenBy := func(manager string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		out := keepCandidate(nil, owners...)
		out.SetUID("live")
		out.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
			FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)}})
		return out
	}
	inRun := func(run string, o *unstructured.Unstructured) *unstructured.Unstructured {
		o.SetAnnotations(map[string]string{v1beta1.PlanUIDAnnotation: run})
		return o
	}
	body := keepCandidate(nil, instanceOwner("ours", true))
	for _, tc := range []struct {
		reason     string
		live, body *unstructured.Unstructured
		record     Record
		want       bool
	}{
		{"kept", writtenBy(manager), body, Record{}, true},
		{"absent", nil, body, Record{}, false},
		{"another object of the name was written before", writtenBy(manager), body, Record{UID: "former"}, true},
		{"it is in the inventory", writtenBy(manager), body, Record{UID: "live"}, false},
		{"it was written before a crash", writtenBy(manager, instanceOwner("ours", true)), body, Record{}, false},
		{"it is adopted from another tool", writtenBy("helm"), body, Record{}, false},
		{"cluster-scoped, and left", writtenBy(manager), keepCandidate(nil), Record{}, true},
		{"cluster-scoped, and left by an earlier run", inRun("1", writtenBy(manager)), inRun("2", keepCandidate(nil)), Record{}, true},
		{"cluster-scoped, written by this run, whose commit has failed", inRun("1", writtenBy(manager)), inRun("1", keepCandidate(nil)), Record{}, false},
		{"cluster-scoped, without the uids of runs", inRun("", writtenBy(manager)), inRun("", keepCandidate(nil)), Record{}, true},
		{"cluster-scoped, of another Instance", writtenBy("kudo/other/i"), keepCandidate(nil), Record{}, false},
	} {
		e := &Engine{mirror: &Mirror{}}
		if got := e.wasLeft(tc.live, tc.body, Options{Manager: manager, Known: map[ID]Record{IDOf(body): tc.record}}); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
		}
	}
}

// TestWithoutController: the copy lacks the Instance among its owners, and nothing else. The object that was given does not change.
func TestWithoutController(t *testing.T) {
	node := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n"}
	for _, tc := range []struct {
		reason string
		owners []metav1.OwnerReference
		want   int
	}{
		{"none", nil, 0},
		{"the Instance", []metav1.OwnerReference{instanceOwner("ours", true)}, 0},
		{"the Instance and another", []metav1.OwnerReference{node, instanceOwner("ours", true)}, 1},
		{"another", []metav1.OwnerReference{node}, 1},
	} {
		body := keepCandidate(nil, tc.owners...)
		out := withoutController(body)
		if _, set, _ := unstructured.NestedFieldNoCopy(out.Object, "metadata", "ownerReferences"); len(out.GetOwnerReferences()) != tc.want || set != (tc.want > 0) {
			t.Errorf("%s: %v", tc.reason, out.Object)
		}
		if len(body.GetOwnerReferences()) != len(tc.owners) {
			t.Errorf("%s: the given object has changed to %v", tc.reason, body.Object)
		}
	}
}

// TestIsKeptByInstance is P25: an object that is kept must have no Instance as its owner; an Instance cannot be kept.
func TestIsKeptByInstance(t *testing.T) {
	kept, ours := map[string]string{v1beta1.HelmResourcePolicyAnnotation: "keep"}, instanceOwner("ours", true)
	child := keepCandidate(kept, ours)
	child.SetAPIVersion(v1beta1.GroupVersion.String())
	child.SetKind("Instance")
	for _, tc := range []struct {
		reason string
		live   *unstructured.Unstructured
		want   bool
	}{
		{"the Instance owns it", keepCandidate(kept, ours), true},
		{"no Instance owns it", keepCandidate(kept, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", UID: "n"}), false},
		{"it is not kept", keepCandidate(nil, ours), false},
		{"it is an Instance", child, false},
	} {
		if got := IsKeptByInstance(tc.live); got != tc.want {
			t.Errorf("%s: %t", tc.reason, got)
		}
	}
}

// TestAddDifference: a write of the manager changes the digest of the inventory by what the write has changed. Earlier changes of other
// clients stay visible.
func TestAddDifference(t *testing.T) {
	for _, tc := range []struct{ reason, digest, before, after, want string }{
		{"nothing else has changed", "1f", "1f", "1a", "1a"},
		{"another client had taken fields before", "2f", "1f", "1a", "2a"},
		{"a sum may overflow", "1", "2", "0", "ffffffffffffffff"},
		{"the digest is not known", "", "1f", "1a", ""},
		{"the one before is not known", "1f", "", "1a", "1f"},
		{"the one after is not known", "1f", "1f", "", "1f"},
	} {
		if got := addDifference(tc.digest, tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}
