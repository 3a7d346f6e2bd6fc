package act

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// ownedBy makes Instances the owners of an object.
func ownedBy[T client.Object](o T, owners ...*v1beta1.Instance) T {
	var references []metav1.OwnerReference
	for _, owner := range owners {
		references = append(references, metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Instance", Name: owner.Name, UID: owner.UID})
	}
	o.SetOwnerReferences(references)
	return o
}

// owners are the names of the owners of an object as the server has it.
func owners(server *apitest.Server, o client.Object) string {
	var out []string
	for _, owner := range server.Get(o).GetOwnerReferences() {
		out = append(out, owner.Name)
	}
	return strings.Join(out, " ")
}

// world has an Instance with an object of each kind of end.
type world struct {
	*apitest.Server
	db, other         *v1beta1.Instance
	plain, kept, both *corev1.ConfigMap
	data, unowned     *corev1.PersistentVolumeClaim
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{db: &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "db")}, other: &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "other")}}
	w.db.UID, w.other.UID = "db-uid", "other-uid"
	add := func(kind, name string) {
		w.db.Status.Resources = append(w.db.Status.Resources, v1beta1.ResourceStatus{APIVersion: "v1", Kind: kind, Namespace: "lab", Name: name})
	}
	add("ConfigMap", "plain")
	add("ConfigMap", "kept")
	add("ConfigMap", "both")
	add("ConfigMap", "absent")
	w.db.Status.Resources = append(w.db.Status.Resources, v1beta1.ResourceStatus{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader"})
	w.plain = ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "plain")}, w.db)
	w.kept = ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "kept")}, w.db)
	w.kept.Annotations = map[string]string{v1beta1.KeepAnnotation: "true"}
	w.both = ownedBy(&corev1.ConfigMap{ObjectMeta: gen.Meta("lab", "both")}, w.db, w.other)
	claim := func(name string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: gen.Meta("lab", name)}
		c.Labels = map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: "db"}
		return c
	}
	w.data, w.unowned = ownedBy(claim("data"), w.db), claim("unowned")
	w.Server = apitest.Start(t, w.db, w.other, w.plain, w.kept, w.both, w.data, w.unowned, &rbacv1.ClusterRole{ObjectMeta: gen.Meta("", "reader")})
	w.Read(w.db)
	return w
}

func namesOf(kept []KeptObject) []string {
	var out []string
	for _, k := range kept {
		out = append(out, strings.ToLower(k.Kind.Kind)+" "+k.Name)
	}
	slices.Sort(out)
	return out
}

// TestEffects shows P24: what a deletion does is known before anything is written, with and without the claims.
func TestEffects(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		keeps    bool
		stays    []string
		warnings int
	}{
		{"claims are deleted with their Instance", false, []string{"clusterrole reader", "configmap kept", "persistentvolumeclaim unowned"}, 1},
		{"claims are kept", true, []string{"clusterrole reader", "configmap kept", "persistentvolumeclaim data", "persistentvolumeclaim unowned"}, 0},
	} {
		w := newWorld(t)
		e, err := Uninstall{w.db, tc.keeps}.Effects(t.Context(), w.Client(), w.Config(), []*v1beta1.Instance{w.db})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"configmap plain"}, e.Deleted); diff != "" {
			t.Errorf("%s: deleted: %s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.stays, namesOf(e.Stays)); diff != "" {
			t.Errorf("%s: stays: %s", tc.reason, diff)
		}
		if diff := cmp.Diff([]string{"configmap both"}, namesOf(e.Shared)); diff != "" || len(e.Warnings) != tc.warnings {
			t.Errorf("%s: shared: %s; warnings %q", tc.reason, diff, e.Warnings)
		}
		for _, request := range w.Requests() {
			if verb, _, _ := strings.Cut(request, " "); slices.Contains([]string{"patch", "update", "delete"}, verb) {
				t.Errorf("%s: it writes: %s", tc.reason, request)
			}
		}
	}
}

// uninstall does what commands and the page do.
func (w *world) uninstall(t *testing.T, i *v1beta1.Instance, keepClaims bool) error {
	t.Helper()
	u := Uninstall{i, keepClaims}
	effects, err := u.Effects(t.Context(), w.Client(), w.Config(), []*v1beta1.Instance{i})
	if err != nil {
		t.Fatal(err)
	}
	return u.Delete(t.Context(), w.Client(), effects, true)
}

// TestUninstallDelete checks that the Instance is deleted after what is to be kept is kept, and that a deletion that is refused, or that is for an
// Instance that has changed, keeps nothing and deletes nothing.
func TestUninstallDelete(t *testing.T) {
	w := newWorld(t)
	if err := w.uninstall(t, w.db, true); err != nil {
		t.Fatal(err)
	}
	if w.Get(w.db) != nil || owners(w.Server, w.kept) != "" || owners(w.Server, w.data) != "" || owners(w.Server, w.plain) != "db" || owners(w.Server, w.both) != "db other" {
		t.Errorf("the Instance exists: %t; the owners are %q, %q, %q, %q", w.Get(w.db) != nil, owners(w.Server, w.kept), owners(w.Server, w.data), owners(w.Server, w.plain), owners(w.Server, w.both))
	}
	if !v1beta1.IsKept(w.Get(w.data).GetAnnotations()) {
		t.Error("the claim is not annotated to be kept: the Instance of the same name would not take it over")
	}

	w = newWorld(t)
	w.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" {
			return nil, apierrors.NewForbidden(v1beta1.Resource("instances"), "db", errors.New("no"))
		}
		return nil, nil
	})
	if err := w.uninstall(t, w.db, true); !apierrors.IsForbidden(err) || owners(w.Server, w.kept) != "db" || owners(w.Server, w.data) != "db" {
		t.Errorf("a deletion that is refused: %v, and the owners are %q and %q", err, owners(w.Server, w.kept), owners(w.Server, w.data))
	}

	w = newWorld(t)
	read := w.db.DeepCopy()
	w.db.Labels = map[string]string{"changed": "meanwhile"}
	w.Put(w.db)
	if err := w.uninstall(t, read, false); !apierrors.IsConflict(err) || w.Get(w.db) == nil || owners(w.Server, w.kept) != "db" {
		t.Errorf("an Instance that has changed: %v, and the owner is %q", err, owners(w.Server, w.kept))
	}
}

// TestFind checks that the errors of an Instance and of an OperatorVersion that do not exist have the remedy.
func TestFind(t *testing.T) {
	w := newWorld(t)
	w.db.Spec.OperatorVersion.Name = "db-1"
	if _, err := FindInstance(t.Context(), w.Client(), "lab", "none"); err == nil || !strings.Contains(err.Error(), "kubectl kudo get instances -n lab") {
		t.Errorf("an Instance: %v", err)
	}
	if _, err := FindVersion(t.Context(), w.Client(), w.db); err == nil || !strings.Contains(err.Error(), "kubectl kudo upgrade PACKAGE --instance db -n lab") {
		t.Errorf("an OperatorVersion: %v", err)
	}
	if ov, err := ReadVersion(t.Context(), w.Client(), w.db); ov != nil || err != nil {
		t.Errorf("an OperatorVersion that need not exist: %v, %v", ov, err)
	}
	w.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "OperatorVersion" {
			return nil, apierrors.NewForbidden(v1beta1.Resource("operatorversions"), "db-1", errors.New("no"))
		}
		return nil, nil
	})
	if _, err := FindVersion(t.Context(), w.Client(), w.db); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "of instance lab/db") {
		t.Errorf("an OperatorVersion that may not be read: %v", err)
	}
}

// TestWrite checks that a locked edit is refused if the Instance has changed since it was read, and that another one is not.
func TestWrite(t *testing.T) {
	for _, locked := range []bool{false, true} {
		w := newWorld(t)
		read := w.db.DeepCopy()
		w.db.Labels = map[string]string{"changed": "meanwhile"}
		w.Put(w.db)
		err := Write(t.Context(), w.Client(), read, locked, func(i *v1beta1.Instance) { i.Spec.Suspend = true })
		live := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "db")}
		w.Read(live)
		if apierrors.IsConflict(err) != locked || live.Spec.Suspend == locked || live.Labels["changed"] != "meanwhile" {
			t.Errorf("locked %t: %v, suspended %t, labels %v", locked, err, live.Spec.Suspend, live.Labels)
		}
		if err == nil && read.Labels["changed"] != "meanwhile" {
			t.Error("the Instance is not as the API server has it")
		}
	}
}
