package operatorversion

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/test/gen"
)

// TestRecordMatch: what has changed since before it was compared does not count as right, since it was not compared.
func TestRecordMatch(t *testing.T) {
	f := newFixture(t, &v1beta1.OperatorVersion{}, &v1beta1.Installation{})
	objects, errObjects := dynamic.NewForConfig(f.Config())
	lists, errLists := metadata.NewForConfig(f.Config())
	served, errServed := discovery.NewDiscoveryClientForConfig(f.Config())
	if err := errors.Join(errObjects, errLists, errServed); err != nil {
		t.Fatal(err)
	}
	kinds := apply.NewKinds(f.Mapper(), served, objects)
	mirror := apply.NewMirror(t.Context(), objects, f.Mapper(), logr.Discard(), func(*unstructured.Unstructured) {})
	f.Share = share.New(share.Options{Objects: apply.New(objects, lists, kinds, mirror, nil), Kinds: kinds, Mirror: mirror, Reader: f.Client(), Clock: f.clock})
	live := f.Put(&corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "a"), Data: map[string]string{"key": "compared"}})
	held := v1beta1.HeldResource{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "a", UID: live.GetUID(), State: v1beta1.HoldCreated, ContentHash: "former"}
	id := share.IDOf(held)
	rendered := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	rendered.SetNamespace("ns")
	rendered.SetName("a")
	for _, tc := range []struct {
		reason, before string
		want           string
		again          bool
	}{
		{"it has changed since", "other", "former", true},
		{"it is what was compared", f.Share.Fingerprint(live), f.Share.Fingerprint(live), false},
	} {
		f.contents[id], f.result.RequeueAfter = tc.before, 0
		for known := false; !known; { // the mirror has synced
			_, known, _ = f.Share.Observe(t.Context(), held)
		}
		r := held
		if err := f.recordMatch(t.Context(), &r, []*unstructured.Unstructured{rendered}); err != nil {
			t.Fatal(err)
		}
		if r.ContentHash != tc.want || (f.result.RequeueAfter == settleAfter) != tc.again {
			t.Errorf("%s: the content is %s, and it is requeued after %s", tc.reason, r.ContentHash, f.result.RequeueAfter)
		}
	}
}
