package instances

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// ownedBy adds owners to an object.
func ownedBy[T client.Object](o T, owners ...client.Object) T {
	references := o.GetOwnerReferences()
	for _, owner := range owners {
		kind := "Instance"
		if _, isInstallation := owner.(*v1beta1.Installation); isInstallation {
			kind = "Installation"
		}
		references = append(references, metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: kind, Name: owner.GetName(), UID: owner.GetUID()})
	}
	o.SetOwnerReferences(references)
	return o
}

// definition is a CustomResourceDefinition that kudo has made.
func definition(name string, holders ...client.Object) *unstructured.Unstructured {
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": strings.Split(name, ".")[0], "kind": "Thing"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
	}}}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(name)
	crd.SetUID(types.UID("crd-" + name))
	crd.SetAnnotations(map[string]string{v1beta1.ManagedAnnotation: "true"})
	return ownedBy(crd, holders...)
}

// uninstalled returns a server with an Instance that has one object for each effect, and a child.
func uninstalled(t *testing.T) *apitest.Server {
	t.Helper()
	i, child := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "child")}
	i.UID, child.UID = "site-uid", "child-uid"
	other := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "other")}
	other.UID = "other-uid"
	add := func(i *v1beta1.Instance, kind, namespace, name string) {
		version := "v1"
		if kind == "ClusterRole" {
			version = "rbac.authorization.k8s.io/v1"
		}
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: version, Kind: kind, Namespace: namespace, Name: name})
	}
	for _, name := range []string{"web", "kept", "both", "absent", "of-another"} {
		add(i, "ConfigMap", "lab", name)
	}
	add(i, "Service", "lab", "svc")
	add(i, "PersistentVolumeClaim", "lab", "data")
	add(i, "ClusterRole", "", "reader")
	add(child, "Secret", "lab", "of-child")
	i.Status.CRDs = &v1beta1.CRDTarballStatus{}
	holder := &v1beta1.Installation{ObjectMeta: gen.Meta("", v1beta1.InstallationName("lab", "site", i.UID))}
	holder.UID = "holder-uid"
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: "lab", Name: "site", UID: i.UID}
	joint := &v1beta1.Installation{ObjectMeta: gen.Meta("", "joint")}
	joint.UID = "joint-uid"
	joint.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: "lab", Name: "other", UID: other.UID}
	for _, name := range []string{"alone.example.com", "joint.example.com", "former.example.com"} {
		r := v1beta1.HeldResource{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: name, UID: types.UID("crd-" + name), State: v1beta1.HoldCreated}
		if name == "former.example.com" {
			r.State = v1beta1.HoldExisting
		}
		holder.Status.Resources = append(holder.Status.Resources, r)
	}
	kept := ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "kept")}, i)
	kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
	claim := func(name, size string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("lab", name)}
		c.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "site"}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		if size != "" {
			c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		}
		return c
	}
	return onServer(t, i, ownedBy(child, i), other, kept, holder, joint, claim("own-site-0", ""),
		ownedBy(claim("data", "5Gi"), i), ownedBy(claim("asked", ""), i),
		ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "web")}, i), ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "both")}, i, other),
		ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "of-another")}, other), ownedBy(&corev1.Service{ObjectMeta: gen.Meta("lab", "svc")}, i),
		ownedBy(&corev1.Secret{ObjectMeta: gen.Meta("lab", "of-child")}, child),
		&rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "reader")}, definition("alone.example.com", holder), definition("joint.example.com", holder, joint), definition("former.example.com"))
}

const effectsBefore = `to be deleted with instance lab/site: configmap web, customresourcedefinition alone.example.com, instance child, secret of-child, service svc
persistentvolumeclaim own-site-0 stays, since it holds data, and no Instance owns it: an Instance of the same name uses it again
configmap kept stays, since it is annotated to be kept: an Instance of the same name takes it over
clusterrole reader stays, since it is cluster-scoped and others may use it
configmap both stays, since Instance other holds it, too
customresourcedefinition former.example.com stays, since kudo did not create it
customresourcedefinition joint.example.com stays, since Instance lab/other holds it too
`

const effectsRemedy = "delete what is not needed any more: kubectl delete -n lab persistentvolumeclaim/own-site-0 configmap/kept " +
	"clusterrole.rbac.authorization.k8s.io/reader\n"

// TestUninstallPrintsBefore shows P24: uninstall prints what is deleted and what stays (P13), claims that are deleted on stderr, before it
// deletes, and asks for no object twice.
func TestUninstallPrintsBefore(t *testing.T) {
	const claims = "Warning: persistentvolumeclaim lab/asked (1Gi) is deleted with its data: --keep-claims would keep it\n" +
		"Warning: persistentvolumeclaim lab/data (5Gi) is deleted with its data: --keep-claims would keep it\n"
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "instances"}, "site", errors.New("no"))
	for reason, tc := range map[string]struct {
		refuses   string
		code      int
		out, errs string
	}{
		"it is deleted, and the remedy comes last": {"", 0, effectsBefore + "instance lab/site deleted\n" + effectsRemedy, claims},
		"the deletion is refused: all was printed": {"delete", 1, effectsBefore, claims + "Error: instance lab/site: " + refused.Error() + "\n"},
	} {
		server := uninstalled(t)
		server.Before(func(r apitest.Request) (any, error) {
			if r.Verb == tc.refuses && r.Kind == "Instance" {
				return nil, refused
			}
			return nil, nil
		})
		out, errs := commandtest.Expect(t, NewUninstall, tc.code, "", "uninstall", "--instance", "site")
		if diff := cmp.Diff(tc.out, out); diff != "" {
			t.Errorf("%s: stdout -want +got:\n%s", reason, diff)
		}
		if diff := cmp.Diff(tc.errs, errs); diff != "" {
			t.Errorf("%s: stderr -want +got:\n%s", reason, diff)
		}
		asked := map[string]bool{}
		requests := server.Requests()
		for _, r := range requests {
			isRead := strings.HasPrefix(r, "get ConfigMap") || strings.HasPrefix(r, "get Service ") || strings.HasPrefix(r, "list ")
			if isRead && asked[r] {
				t.Errorf("%s: %s is asked twice", reason, r)
			}
			asked[r] = true
		}
		kept, deleted := slices.Index(requests, "patch ConfigMap lab/kept"), slices.Index(requests, "delete Instance lab/site")
		switch {
		case tc.refuses == "" && (kept < 0 || deleted < kept):
			t.Errorf("%s: what is kept is annotated before the deletion: %q", reason, requests)
		case tc.refuses != "" && kept >= 0:
			t.Errorf("%s: an object is kept for a deletion that is refused: %q", reason, requests)
		}
	}
}

// TestUninstallKeepsOrNothing: if a claim cannot be kept, nothing was written before that is known.
func TestUninstallKeepsOrNothing(t *testing.T) {
	server := uninstalled(t)
	set := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("lab", "own-site-1")}
	set.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "site"}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "site", UID: "set"}}
	server.Put(set)
	_, errs := commandtest.Expect(t, NewUninstall, 1, "", "uninstall", "--instance", "site", "--keep-claims")
	if !strings.Contains(errs, "PersistentVolumeClaim lab/own-site-1 would be deleted with StatefulSet site, instance site is not deleted") {
		t.Error(errs)
	}
	for _, r := range server.Requests() {
		if strings.HasPrefix(r, "patch ") || strings.HasPrefix(r, "delete ") {
			t.Errorf("it has written: %s", r)
		}
	}
}

// TestUninstallWithoutRights: what becomes of definitions that the user may not read is said, and the Instance is deleted.
func TestUninstallWithoutRights(t *testing.T) {
	server := uninstalled(t)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Installation" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "installations"}, r.Name, errors.New("no"))
		}
		return nil, nil
	})
	out, errs := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "--instance", "site")
	if !strings.Contains(errs, "Warning: what becomes of the CustomResourceDefinitions of instance lab/site is not known: ") ||
		strings.Contains(out, "customresourcedefinition") {
		t.Errorf("%s%s", out, errs)
	}
}

// TestUninstallReadsAtOnce: objects are read several at a time, and printed in the order of the inventory.
func TestUninstallReadsAtOnce(t *testing.T) {
	const readers = 8 // of pkg/act
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	i.UID = "site-uid"
	objects, want := []client.Object{i}, ""
	for n := range 3 * readers {
		kept := ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", fmt.Sprintf("kept-%02d", n))}, i)
		kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
		i.Status.Resources = append(i.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "lab", Name: kept.Name})
		objects = append(objects, kept)
		want += "configmap " + kept.Name + " stays, since " + preview.StaysKept + "\n"
	}
	server := onServer(t, objects...)
	together := make(chan struct{}) // each of the first reads waits for the others
	var count atomic.Int32
	bound, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb != "get" || r.Kind != "ConfigMap" {
			return nil, nil
		}
		if count.Add(1) == readers {
			close(together)
		}
		select {
		case <-together:
			return nil, nil
		case <-bound.Done():
			return nil, errors.New("the objects are read one after the other")
		}
	})
	out, errs := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "--instance", "site")
	if !strings.HasPrefix(out, want) || errs != "" {
		t.Errorf("%s%s", out, errs)
	}
}

// TestUninstallKeepsAfterConflict: what others write meanwhile keeps no object from being kept, unless it stays no more as was printed.
func TestUninstallKeepsAfterConflict(t *testing.T) {
	label := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"version": o.GetResourceVersion()}) }
	own := func(o *unstructured.Unstructured) {
		owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "set", UID: "set"}
		o.SetOwnerReferences(append(o.GetOwnerReferences(), owner))
	}
	for name, tc := range map[string]struct {
		reason, kind, object string
		change               func(*unstructured.Unstructured)
		times                int32 // how many writes of the command come after a change
		err                  string
	}{
		"Claim":  {"a controller writes a claim", "PersistentVolumeClaim", "data", label, 1, ""},
		"Object": {"a controller writes an annotated object, twice", "ConfigMap", "kept", label, 2, ""},
		"Always": {"others write it all the time", "ConfigMap", "kept", label, 100, `Operation cannot be fulfilled on configmaps "kept"`},
		"Done":   {"the manager has kept it", "ConfigMap", "kept", func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) }, 1, ""},
		"Owner":  {"an annotated object stays with its other owner", "ConfigMap", "kept", own, 1, ""},
		"OwnerOfClaim": {"a claim would be deleted with its other owner", "PersistentVolumeClaim", "data", own, 1,
			"StatefulSet set owns it now, too: try again"},
		"Another": {"an object of the same name is another one", "ConfigMap", "kept", func(o *unstructured.Unstructured) { o.SetUID("another") }, 1,
			"another object has its name now: try again"},
		"NotAnnotated": {"the annotation was removed", "ConfigMap", "kept", func(o *unstructured.Unstructured) { o.SetAnnotations(nil) }, 1,
			"its annotation kudo.dev/keep was removed: try again"},
	} {
		t.Run(name, func(t *testing.T) {
			server := uninstalled(t)
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": tc.kind,
				"metadata": map[string]any{"namespace": "lab", "name": tc.object}}}
			var writes atomic.Int32
			server.Before(func(r apitest.Request) (any, error) {
				if r.Verb == "patch" && r.Kind == tc.kind && r.Name == tc.object && writes.Add(1) <= tc.times {
					live := server.Get(object)
					tc.change(live)
					server.Put(live)
				}
				return nil, nil
			})
			code, message := 0, ""
			if tc.err != "" {
				code, message = 1, "keep "+tc.kind+" lab/"+tc.object+", instance site is not deleted: "+tc.err
			}
			_, errs := commandtest.Expect(t, NewUninstall, code, "", "uninstall", "--instance", "site", "--keep-claims")
			live := server.Get(object)
			kept := v1beta1.IsKept(live.GetAnnotations()) && !v1beta1.HasOwner(live, "site-uid")
			deleted := slices.Contains(server.Requests(), "delete Instance lab/site")
			if !strings.Contains(errs, message) || kept != (code == 0) || deleted != (code == 0) {
				t.Errorf("%s: kept is %t, deleted is %t: %s", tc.reason, kept, deleted, errs)
			}
		})
	}
}
