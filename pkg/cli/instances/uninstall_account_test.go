package instances

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// withAccount returns an Instance that names an account, and the objects that install makes for the account. The Instance owns the objects of the
// kinds for which owned returns true.
func withAccount(name, account string, owned func(kind string) bool) (*v1beta1.Instance, []client.Object) {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", name)}
	i.UID = "site-uid"
	i.Spec.ServiceAccountName = account
	objects := rights.NewAccount("lab", name, account, nil).Own()
	for _, o := range objects {
		if owned(o.GetObjectKind().GroupVersionKind().Kind) {
			ownedBy(o, i)
		}
	}
	return i, objects
}

func everyKind(string) bool { return true }

// forbidRoles refuses requests of some verbs for roles and their bindings.
func forbidRoles(verbs ...string) apitest.Hook {
	return func(r apitest.Request) (any, error) {
		if strings.HasPrefix(r.Kind, "Role") && slices.Contains(verbs, r.Verb) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: "roles"}, r.Name, errors.New("no"))
		}
		return nil, nil
	}
}

const deletedAccount = "to be deleted with instance lab/site: role site-kudo, rolebinding site-kudo, serviceaccount site-kudo\n"

// TestUninstallNamesAccount checks that uninstall names what a command has made for the account of the Instance, as the preview does, and not
// what others have made (P13, P24).
func TestUninstallNamesAccount(t *testing.T) {
	noKind := func(string) bool { return false }
	isRole := func(kind string) bool { return kind == "Role" }
	const deleted = "instance lab/site deleted\n"
	const unread = "Warning: what becomes of Role lab/site-kudo is not known: roles.rbac.authorization.k8s.io \"site-kudo\" is forbidden: no\n" +
		"Warning: what becomes of RoleBinding lab/site-kudo is not known: roles.rbac.authorization.k8s.io \"site-kudo\" is forbidden: no\n"
	for name, tc := range map[string]struct {
		reason, account string
		owned           func(string) bool
		change          func(objects []client.Object)
		forbidden       bool
		out, errs       string
	}{
		"Made":      {"a command has made it", "site-kudo", everyKind, nil, false, deletedAccount + deleted, ""},
		"Foreign":   {"others have made it, of the same names", "site-kudo", noKind, nil, false, deleted, ""},
		"Named":     {"it was named, and a command has made its Role", "robot", isRole, nil, false, "to be deleted with instance lab/site: role site-kudo\n" + deleted, ""},
		"Forbidden": {"roles cannot be read", "site-kudo", everyKind, nil, true, "to be deleted with instance lab/site: serviceaccount site-kudo\n" + deleted, unread},
		"NotAsked":  {"the account was named, and roles cannot be read", "robot", noKind, nil, true, deleted, ""},
		"None":      {"the spec names none, and roles cannot be read", "", noKind, nil, true, deleted, ""},
		"Shared": {"another object owns the account, too", "site-kudo", everyKind, func(objects []client.Object) {
			other := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "other")}
			other.UID = "other-uid"
			ownedBy(objects[0], other)
		}, false, "to be deleted with instance lab/site: role site-kudo, rolebinding site-kudo\nserviceaccount site-kudo stays, since Instance other holds it, too\n" + deleted, ""},
		"Kept": {"the account is annotated to be kept", "site-kudo", everyKind, func(objects []client.Object) {
			objects[0].SetAnnotations(map[string]string{v1beta1.KeepAnnotation: "true"})
		}, false, "to be deleted with instance lab/site: role site-kudo, rolebinding site-kudo\nserviceaccount site-kudo stays, since " + preview.StaysKept + "\n" + deleted +
			"delete what is not needed any more: kubectl delete -n lab serviceaccount/site-kudo\n", ""},
		"ForeignKept": {"others have made the account, and keep it", "site-kudo", noKind, func(objects []client.Object) {
			objects[0].SetAnnotations(map[string]string{v1beta1.KeepAnnotation: "true"})
		}, false, deleted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			i, objects := withAccount("site", tc.account, tc.owned)
			if tc.change != nil {
				tc.change(objects)
			}
			server := onServer(t, append(objects, i)...)
			if tc.forbidden {
				server.Before(forbidRoles("get", "list", "watch"))
			}
			out, errs := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "site")
			if diff := cmp.Diff(tc.out+tc.errs, out+errs); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			requests := server.Requests()
			for _, kind := range []string{"ServiceAccount ", "Role ", "RoleBinding "} {
				isRead := func(r string) bool { return !strings.HasPrefix(r, "get "+kind) && !strings.HasPrefix(r, "list "+kind) }
				if n := len(slices.DeleteFunc(slices.Clone(requests), isRead)); n != 1 {
					t.Errorf("%s: there are %d reads of %sobjects: %q", tc.reason, n, kind, requests)
				}
			}
		})
	}
}

// TestUninstallAccountInInventory checks that objects of the account which the plans have made are read and named once.
func TestUninstallAccountInInventory(t *testing.T) {
	i, objects := withAccount("site", "site-kudo", everyKind)
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "lab", Name: "site-kudo"}}
	server := onServer(t, append(objects, i)...)
	if out, _ := commandtest.Expect(t, NewUninstall, 0, "", "uninstall", "site"); !strings.HasPrefix(out, deletedAccount) {
		t.Error(out)
	}
	isOther := func(r string) bool { return r != "get ServiceAccount lab/site-kudo" }
	if reads := slices.DeleteFunc(server.Requests(), isOther); len(reads) != 1 {
		t.Errorf("it is read %d times", len(reads))
	}
}

// TestUninstallWaitsForAccount checks that --wait ends when the objects of the account are deleted, by uid, names the finalizer that keeps one,
// and waits for none that others have made (P24).
func TestUninstallWaitsForAccount(t *testing.T) {
	const complete = "all objects of instance lab/site are deleted\n"
	const notListed = "Warning: whether Role site-kudo of the instance is deleted is not known: "
	hold := func(objects []client.Object) { objects[1].SetFinalizers([]string{"example.com/hold"}) }
	foreign := func(objects []client.Object) {
		for _, o := range objects {
			o.SetOwnerReferences(nil)
			o.SetFinalizers([]string{"example.com/hold"})
		}
	}
	replace := func(server *apitest.Server, objects []client.Object) {
		role := objects[1].DeepCopyObject().(client.Object)
		role.SetUID("another")
		server.Put(role)
	}
	for name, tc := range map[string]struct {
		reason    string
		change    func(objects []client.Object)
		forbidden []string
		meanwhile func(server *apitest.Server, objects []client.Object)
		code      int
		want, not string
		stays     bool // the Role
	}{
		"Deleted": {"the garbage collector deletes all", nil, nil, nil, 0, deletedAccount + "instance lab/site deleted\n" + complete, "Warning", false},
		"Held": {"a finalizer keeps the Role", hold, nil, nil, 4,
			"instance lab/site is deleted, and after 1s some of its objects are not: Role lab/site-kudo (finalizer example.com/hold). ", complete, true},
		"Foreign":   {"others have made all, with a finalizer", foreign, nil, nil, 0, complete, "site-kudo", true},
		"Replaced":  {"another Role has the name now", nil, nil, replace, 0, complete, "finalizer", true},
		"Forbidden": {"roles cannot be read: the ServiceAccount is awaited", hold, []string{"get", "list", "watch"}, nil, 0, "what becomes of Role lab/site-kudo is not known", complete, true},
		"Unlisted":  {"roles can be read, and not listed", hold, []string{"list"}, nil, 0, notListed, complete, true},
		"Unwatched": {"roles can be listed, and not watched", hold, []string{"watch"}, nil, 0, notListed, complete, true},
	} {
		t.Run(name, func(t *testing.T) {
			i, objects := withAccount("site", "site-kudo", everyKind)
			if tc.change != nil {
				tc.change(objects)
			}
			server := onServer(t, append(objects, i)...)
			refuse := forbidRoles(tc.forbidden...)
			server.Before(func(r apitest.Request) (any, error) {
				if r.Verb == "delete" && r.Kind == "Instance" { // the garbage collector comes later
					time.AfterFunc(300*time.Millisecond, func() { collect(server, objects, tc.meanwhile) })
				}
				return refuse(r)
			})
			limit := "60s"
			if tc.code != 0 {
				limit = "1s"
			}
			out, errs := commandtest.Expect(t, NewUninstall, tc.code, "", "uninstall", "site", "--wait", "--wait-time", limit)
			if !strings.Contains(out+errs, tc.want) || strings.Contains(out+errs, tc.not) {
				t.Errorf("%s: no %q, or %q in\n%s%s", tc.reason, tc.want, tc.not, out, errs)
			}
			isForeign := len(objects[0].GetOwnerReferences()) == 0
			if account := server.Get(objects[0]); (account != nil) != isForeign {
				t.Errorf("%s: after the command, the ServiceAccount is %v", tc.reason, account)
			}
			if role := server.Get(objects[1]); (role != nil) != tc.stays {
				t.Errorf("%s: after the command, the Role is %v", tc.reason, role)
			}
		})
	}
}

// collect deletes owned objects without finalizers as the garbage collector does, after which others may act.
func collect(server *apitest.Server, objects []client.Object, then func(*apitest.Server, []client.Object)) {
	for _, o := range objects {
		if len(o.GetOwnerReferences()) > 0 && len(o.GetFinalizers()) == 0 {
			server.Remove(o)
		}
	}
	if then != nil {
		then(server, objects)
	}
}

// TestQueries checks how kinds and objects of accounts are named while they are awaited, and that the objects of accounts come last.
func TestQueries(t *testing.T) {
	i := &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}
	i.Status.Resources = []v1beta1.ResourceStatus{{APIVersion: "v1", Kind: "Service", Namespace: "lab", Name: "web"}}
	role := act.AccountObject{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("Role"), Name: "site-kudo", UID: "role-uid"}
	d := newDependents(nil, nil, []*v1beta1.Instance{i}, &act.Effects{Accounts: []act.AccountObject{role}})
	var got []string
	for _, q := range d.queries() {
		got = append(got, q.String(), q.deletion(), d.arguments(q))
	}
	want := []string{"the Service objects", "the Service objects of the instance are deleted", "service -n lab -l 'heritage=kudo,kudo.dev/instance in (site)'",
		"Role site-kudo", "Role site-kudo of the instance is deleted", "role.rbac.authorization.k8s.io/site-kudo -n lab"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
