package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestCleanStatus: entries of other namespaces leave the inventory, with one event each, and what they name is not touched.
func TestCleanStatus(t *testing.T) {
	f := newFixture(t)
	f.settle(t)
	f.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "theirs", UID: "theirs"}})
	own := f.instance().Status.Resources
	f.change(func(i *v1beta1.Instance) {
		i.Status.Resources = append([]v1beta1.ResourceStatus{
			{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "theirs", UID: "theirs"}, {APIVersion: "v1", Kind: "Secret", Namespace: "kube-system", Name: "token"},
		}, own...)
	})
	f.recorded()
	f.Requests()
	for range 2 {
		f.settle(t)
	}
	if diff := cmp.Diff(own, f.instance().Status.Resources); diff != "" {
		t.Errorf("inventory: -want +got: %s", diff)
	}
	want := []string{
		"Warning ResourceIgnored ignored ConfigMap other/theirs of status.resources: it is of another namespace",
		"Warning ResourceIgnored ignored Secret kube-system/token of status.resources: it is of another namespace",
	}
	if diff := cmp.Diff(want, f.recorded()); diff != "" {
		t.Errorf("events: -want +got: %s", diff)
	}
	for _, r := range f.Requests() {
		if strings.Contains(r, "other/") || strings.Contains(r, "kube-system/token") {
			t.Errorf("an object of another namespace is asked for: %s", r)
		}
	}
}

// TestDiscard: the Secret in which an earlier version of kudo kept values is deleted if it is the Instance's.
func TestDiscard(t *testing.T) {
	secret := func(owner string) *corev1.Secret {
		yes := true
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-kudo-parameters", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "web", UID: "uid", Controller: &yes},
		}, Labels: texts{"owner": owner}}}
	}
	forbidden := func(f *fixture) {
		f.Before(func(r apitest.Request) (any, error) {
			if r.Verb == "delete" {
				return nil, apierrors.NewForbidden(corev1.Resource("secrets"), r.Name, errSlow)
			}
			return nil, nil
		})
	}
	for _, tc := range []struct {
		reason  string
		prepare func(*fixture)
		kept    bool
		// unclean is set if the status still says that the Secret is to be deleted.
		unclean bool
		event   string
	}{
		{"it is there", func(*fixture) {}, false, false, ""},
		{"it does not exist", func(f *fixture) { f.Remove(secret("")) }, false, false, ""},
		{"it belongs to another object", func(f *fixture) {
			other := secret("")
			other.OwnerReferences[0].UID = "other"
			f.Put(other)
		}, true, false, ""},
		{"the deletion is forbidden", forbidden, true, false, "Warning SecretKept Secret ns/web-kudo-parameters is not used any more and could not be deleted: "},
		{"it cannot be read", func(f *fixture) { f.failSecret() }, true, true, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFixture(t)
			f.settle(t)
			own := secret("")
			own.OwnerReferences[0].UID = instanceUID
			f.Put(own)
			f.change(func(i *v1beta1.Instance) { i.Status.Baseline.Sensitive = true })
			f.recorded()
			tc.prepare(f)
			for range 2 {
				f.settle(t)
			}
			if got := f.Get(own) != nil; got != tc.kept {
				t.Errorf("the Secret exists: %t", got)
			}
			if got := f.instance().Status.Baseline.Sensitive; got != tc.unclean {
				t.Errorf("the status is unclean: %t", got)
			}
			events := f.recorded()
			if tc.event == "" && len(events) > 0 || tc.event != "" && (len(events) != 1 || !strings.HasPrefix(events[0], tc.event)) {
				t.Errorf("events %q, want %q once", events, tc.event)
			}
			if len(events) == 1 && !strings.HasSuffix(events[0], "; delete it with kubectl delete secret web-kudo-parameters -n ns") {
				t.Errorf("the event names no remedy: %s", events[0])
			}
		})
	}
}

// failSecret fails each read of the Secret of an earlier version of kudo.
func (f *fixture) failSecret() {
	f.Before(func(r apitest.Request) (any, error) {
		if r.Name == "web-kudo-parameters" {
			return nil, errSlow
		}
		return nil, nil
	})
}

// TestClearKeylessHashes: a hash of a Secret that no key protects leaves the status; all other hashes stay.
func TestClearKeylessHashes(t *testing.T) {
	i := gen.Instance("web", webVersion("web-1.0"), nil)
	for _, r := range [][3]string{{"v1", "Secret", "0123456789abcdef"}, {"v1", "Secret", "1.0123456789abcdef"}, {"v1", "Secret", ""}, {"v1", "ConfigMap", "0123456789abcdef"}, {"example.org/v1", "Secret", "0123456789abcdef"}} {
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: r[0], Kind: r[1], Hash: r[2], UID: "uid"})
	}
	a := pure(i)
	clearKeylessHashes(a.Next)
	var got []string
	for _, r := range a.Next.Status.Resources {
		got = append(got, r.Hash)
	}
	if diff := cmp.Diff([]string{"", "1.0123456789abcdef", "", "0123456789abcdef", "0123456789abcdef"}, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}
