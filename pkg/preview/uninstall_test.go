package preview

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestHoldersOfWhatStays checks that the preview of an uninstall names the other holders of each cluster-scoped or shared object that
// stays, or says that they are not known (P13).
func TestHoldersOfWhatStays(t *testing.T) {
	l := newLab(t)
	i := l.running(web(), "i-a")
	child := gen.Instance("child", web(), nil)
	child.UID, child.OwnerReferences = "child", []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "i", UID: i.UID}}
	l.Put(child)
	list := func(apiVersion, kind, namespace, name string) {
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name})
	}
	list(v1beta1.GroupVersion.String(), "Instance", "ns", "child")
	put := func(name string, managers ...string) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, manager := range managers {
			role.ManagedFields = append(role.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager})
		}
		l.Put(role)
		list(rbacv1.SchemeGroupVersion.String(), "ClusterRole", "", name)
	}
	put("a-own", "kudo/ns/i", "kudo/ns/child")
	put("b-common", "kudo/ns/i", "kudo/team-b/site", "kudo/team-c/site")
	put("c-secret")
	list(rbacv1.SchemeGroupVersion.String(), "ClusterRole", "", "d-absent")
	list("gone.example.com/v1", "Thing", "", "e-not-served")
	shared := func(name string, owners ...types.UID) {
		object := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", name)}
		for _, uid := range append(owners, i.UID) {
			object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: string(uid), UID: uid})
		}
		l.Put(object)
		list("v1", "ConfigMap", "ns", name)
	}
	shared("i-shared", "other")
	shared("i-of-both", child.UID)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Name == "c-secret" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, r.Name, errors.New("no"))
		}
		return nil, nil
	})
	p, err := Uninstall(t.Context(), l.options(), i, web(), false)
	if err != nil {
		t.Fatal(err)
	}
	want := []Stay{
		{"ClusterRole a-own", "it is cluster-scoped and others may use it", nil},
		{"ClusterRole b-common", "it is cluster-scoped and others may use it; Instance team-b/site, Instance team-c/site hold it, too", []string{"Instance team-b/site", "Instance team-c/site"}},
		{"ClusterRole c-secret", `it is cluster-scoped and others may use it; who else holds it is not known: clusterroles "c-secret" is forbidden: no`, nil},
		{"ConfigMap ns/i-shared", "Instance other holds it, too", []string{"Instance other"}},
	}
	if diff := cmp.Diff(want, p.Stays); diff != "" {
		t.Error(diff)
	}
	if want := []string{"delete ConfigMap ns/i-a", "delete Instance ns/child", "delete ConfigMap ns/i-of-both"}; !cmp.Equal(want, brief(p)) {
		t.Errorf("what only Instances own that are deleted is deleted with them: %s", cmp.Diff(want, brief(p)))
	}
}

// TestHeldByNephews checks that what an Instance holds together with a child of another one is deleted with all of them, although the child
// is met later (P13).
func TestHeldByNephews(t *testing.T) {
	l := newLab(t)
	owner := func(of *v1beta1.Instance) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: of.Name, UID: of.UID}
	}
	child := func(name string, of *v1beta1.Instance) *v1beta1.Instance {
		out := gen.Instance(name, web(), nil)
		out.UID, out.OwnerReferences = types.UID(name), []metav1.OwnerReference{owner(of)}
		of.Status.Resources = append(of.Status.Resources, v1beta1.ResourceStatus{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Namespace: "ns", Name: name})
		return out
	}
	i := l.running(web(), "i-a")
	first, second := child("first", i), child("second", i)
	nephew := child("nephew", second)
	shared := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "shared")}
	shared.OwnerReferences = []metav1.OwnerReference{owner(first), owner(nephew)}
	first.Status.Resources = append(first.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "shared"})
	for _, o := range []client.Object{i, first, second, nephew, shared} {
		l.Put(o)
	}
	p, err := Uninstall(t.Context(), l.options(), i, web(), false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, child := range p.withChildren() {
		got = append(got, child.Subject)
		for _, o := range child.Objects {
			got = append(got, string(o.Effect)+" "+o.ID())
		}
		for _, s := range child.Stays {
			got = append(got, "stays "+s.Object)
		}
	}
	want := []string{"Instance ns/i", "delete ConfigMap ns/i-a", "delete Instance ns/first", "delete Instance ns/second",
		"Instance ns/first", "delete ConfigMap ns/shared", "Instance ns/second", "delete Instance ns/nephew", "Instance ns/nephew"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestHeldInstance checks that an Instance which two deleted Instances own is deleted once, with its own objects, and with what it holds
// together with others (P13).
func TestHeldInstance(t *testing.T) {
	l := newLab(t)
	owner := func(of *v1beta1.Instance) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: of.Name, UID: of.UID}
	}
	holds := func(i *v1beta1.Instance, apiVersion, kind, name string) {
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: apiVersion, Kind: kind, Namespace: "ns", Name: name})
	}
	child := func(name string, owners ...*v1beta1.Instance) *v1beta1.Instance {
		out := gen.Instance(name, web(), nil)
		out.UID = types.UID(name)
		for _, of := range owners {
			out.OwnerReferences = append(out.OwnerReferences, owner(of))
			holds(of, v1beta1.GroupVersion.String(), "Instance", name)
		}
		return out
	}
	i := l.running(web(), "i-a")
	first, second := child("first", i), child("second", i)
	both := child("both", first, second)
	shared := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "shared")}
	shared.OwnerReferences = []metav1.OwnerReference{owner(i), owner(both)}
	holds(i, "v1", "ConfigMap", "shared")
	own := &corev1.ConfigMap{ObjectMeta: gen.Meta("ns", "own")}
	own.OwnerReferences = []metav1.OwnerReference{owner(both)}
	holds(both, "v1", "ConfigMap", "own")
	for _, o := range []client.Object{i, first, second, both, shared, own} {
		l.Put(o)
	}
	p, err := Uninstall(t.Context(), l.options(), i, web(), false)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, child := range p.withChildren() {
		got[child.Subject]++
		for _, o := range child.Objects {
			got[string(o.Effect)+" "+o.ID()]++
		}
		for _, s := range child.Stays {
			got["stays "+s.Object]++
		}
	}
	want := map[string]int{"Instance ns/i": 1, "Instance ns/first": 1, "Instance ns/second": 1, "Instance ns/both": 1, "delete ConfigMap ns/i-a": 1, "delete Instance ns/first": 1,
		"delete Instance ns/second": 1, "delete Instance ns/both": 1, "delete ConfigMap ns/shared": 1, "delete ConfigMap ns/own": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUninstallAccount checks that the preview names what a command has made for the account of the Instance, and what is not known of it to a
// user who may not read roles (P13).
func TestUninstallAccount(t *testing.T) {
	for _, tc := range []struct {
		reason, account string
		owned, refused  bool
		want            []string
	}{
		{"a command has made it", "i-kudo", true, false, []string{"delete ServiceAccount ns/i-kudo", "delete Role ns/i-kudo"}},
		{"others have made it", "i-kudo", false, false, nil},
		{"it was named, and a command has made its Role", "robot", true, false, []string{"delete Role ns/i-kudo"}},
		{"roles cannot be read", "i-kudo", true, true, []string{"delete ServiceAccount ns/i-kudo", "unknown Role ns/i-kudo", "unknown RoleBinding ns/i-kudo"}},
		{"it was named, and roles cannot be read", "robot", false, true, nil},
		{"the spec names none, and roles cannot be read", "", false, true, nil},
	} {
		l, version := newLab(t), web()
		i := l.running(version)
		i.Spec.ServiceAccountName = tc.account
		account, role := &corev1.ServiceAccount{ObjectMeta: gen.Meta("ns", "i-kudo")}, &rbacv1.Role{ObjectMeta: gen.Meta("ns", "i-kudo")}
		account.Annotations = map[string]string{v1beta1.KeepAnnotation: fmt.Sprint(!tc.owned)}
		if tc.owned {
			owner := []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: "i", UID: i.UID}}
			account.OwnerReferences, role.OwnerReferences = owner, owner
		}
		l.Put(account)
		l.Put(role)
		l.Put(&rbacv1.RoleBinding{ObjectMeta: gen.Meta("ns", "other")})
		l.watchWrites(func(r apitest.Request) (any, error) {
			if tc.refused && strings.HasPrefix(r.Kind, "Role") {
				return nil, apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}, r.Name, errors.New("no"))
			}
			return nil, nil
		})
		p, err := Uninstall(t.Context(), l.options(), i, version, false)
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, brief(p)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}
