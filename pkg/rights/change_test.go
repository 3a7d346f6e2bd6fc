package rights

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// TestConcurrentAccounts checks that commands which make accounts for Instances of one namespace at the same time do not fail, since they
// share the binding that lets the manager act as the accounts. A binding to another role is left as it is.
func TestConcurrentAccounts(t *testing.T) {
	other := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "else", Name: "manager"}
	manager := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kudo-system", Name: "kudo-manager"}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kudo-run-as"}
	for name, tc := range map[string]struct {
		reason   string
		role     rbacv1.RoleRef
		subjects []rbacv1.Subject
		dry      bool // the other command writes between the review and the dry run
		want     []rbacv1.Subject
		err      string
	}{
		"Same":   {"the other command has written the same", role, []rbacv1.Subject{manager}, false, []rbacv1.Subject{manager}, ""},
		"Before": {"the other command has written it before the dry run", role, []rbacv1.Subject{manager}, true, []rbacv1.Subject{manager}, ""},
		"Other":  {"the other command has written another subject, which stays", role, []rbacv1.Subject{other}, false, []rbacv1.Subject{other, manager}, ""},
		"Role": {"a binding of another role is not changed", rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}, []rbacv1.Subject{other}, false, []rbacv1.Subject{other},
			"RoleBinding lab/kudo-run-as is there already, and binds ClusterRole admin: it is not changed"},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "kudo-run-as"}, RoleRef: tc.role, Subjects: tc.subjects}
			server.Before(func(r apitest.Request) (any, error) {
				if r.Verb == "create" && r.Kind == "RoleBinding" && bytes.Contains(r.Body, []byte("kudo-run-as")) && tc.dry == (len(r.Query["dryRun"]) > 0) {
					server.Put(binding)
				}
				if r.Kind == "SelfSubjectAccessReview" {
					return &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
				}
				return nil, nil
			})
			instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "a"}}
			change, err := CompareAccount(t.Context(), server.Client(), instance, &Rights{}, types.NamespacedName{Namespace: "kudo-system", Name: "kudo-manager"})
			if err == nil {
				err = change.Try(t.Context(), server.Client())
			}
			if err == nil {
				err = change.Write(t.Context(), server.Client(), func(Step) {})
			}
			if got := fmt.Sprint(err); tc.err == "" && err != nil || tc.err != "" && !strings.Contains(got, tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			live := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "kudo-run-as"}}
			server.Read(live)
			if diff := cmp.Diff(tc.want, live.Subjects); diff != "" || live.RoleRef != tc.role {
				t.Errorf("%s: the binding of %v: -want +got: %s", tc.reason, live.RoleRef, diff)
			}
		})
	}
}

// lab is the Instance of the tests, and labManager the account of the manager.
func lab(mods ...func(*v1beta1.Instance)) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "a", UID: "u"}}
	for _, mod := range mods {
		mod(i)
	}
	return i
}

var labManager = types.NamespacedName{Namespace: "kudo-system", Name: "kudo-manager"}

// labAccount returns the objects of an account with rules, as a command has made them.
func labAccount(rules ...rbacv1.PolicyRule) []client.Object {
	a := NewAccount("lab", "a", "", rules)
	a.Manager = labManager
	return a.Objects()
}

// at returns objects with one of them edited.
func at[T client.Object](objects []client.Object, n int, edit func(T)) []client.Object {
	edit(objects[n].(T))
	return objects
}

// TestCompareAccount checks what is to be done for an account, what is refused, and that nothing is written.
func TestCompareAccount(t *testing.T) {
	read := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}
	write := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}
	other := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "lab", Name: "other"}
	running := func(i *v1beta1.Instance) {
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.InProgress}}
	}
	created := []string{"create ServiceAccount lab/a-kudo", "create Role lab/a-kudo", "create RoleBinding lab/a-kudo", "create RoleBinding lab/kudo-run-as"}
	for name, tc := range map[string]struct {
		reason   string
		live     []client.Object
		instance *v1beta1.Instance
		want     []string
		err      string
	}{
		"New":      {"all is created", nil, lab(), created, ""},
		"Named":    {"the Instance names another account; the Role is its own", nil, lab(func(i *v1beta1.Instance) { i.Spec.ServiceAccountName = "robot" }), append([]string{"create ServiceAccount lab/robot"}, created[1:]...), ""},
		"Same":     {"nothing is to be done", labAccount(read), lab(), nil, ""},
		"Rules":    {"the rules of the Role change", labAccount(write), lab(), []string{"patch Role lab/a-kudo"}, ""},
		"Running":  {"a plan that runs keeps its rights, and gets the new ones", labAccount(write), lab(running), []string{"patch Role lab/a-kudo"}, ""},
		"NoRemove": {"a plan that runs keeps its rights", labAccount(read, write), lab(running), nil, ""},
		"Role": {"a Role that no command has made is not changed", at(labAccount(), 1, func(r *rbacv1.Role) { r.Labels = nil }), lab(), nil,
			"Role lab/a-kudo is there already, without the label kudo.dev/instance=a: it is not changed. Delete it, or choose another name for the Instance"},
		"Binding": {"a binding that no command has made is not changed", at(labAccount(), 2, func(b *rbacv1.RoleBinding) { b.Labels = nil }), lab(), nil, "RoleBinding lab/a-kudo is there already, and binds Role a-kudo: it is not changed"},
		"RoleRef": {"nor is one of another role", at(labAccount(), 2, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "admin" }), lab(), nil, "RoleBinding lab/a-kudo is there already, and binds Role admin"},
		"Subject": {"the rights of an Instance are no other account's", at(labAccount(read), 2, func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, other) }), lab(), []string{"patch RoleBinding lab/a-kudo"}, ""},
		"RunAs":   {"other subjects of the shared binding stay", at(labAccount(read), 3, func(b *rbacv1.RoleBinding) { b.Subjects = []rbacv1.Subject{other} }), lab(), []string{"patch RoleBinding lab/kudo-run-as"}, ""},
		"Stale": {"an owner of the same name that was deleted would take the Role with it", at(labAccount(read), 1, func(r *rbacv1.Role) {
			r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "a", UID: "old"}}
		}), lab(), []string{"patch Role lab/a-kudo"}, ""},
		"Deleted": {"an object that is being deleted is awaited", at(labAccount(read), 1, func(r *rbacv1.Role) {
			r.Finalizers, r.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: time.Unix(1, 0)}
		}), lab(), nil, "Role lab/a-kudo is being deleted: run the same command again after its deletion"},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t, tc.live...)
			change, err := CompareAccount(t.Context(), server.Client(), tc.instance, &Rights{Rules: []rbacv1.PolicyRule{read}}, labManager)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []string
			for _, step := range change.Steps {
				got = append(got, map[bool]string{false: "create ", true: "patch "}[step.IsPatch()]+step.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got: %s", tc.reason, diff)
			}
			if name == "Running" && (len(change.Added) != 1 || len(change.Removed) != 0) || name == "Rules" && len(change.Removed) != 1 {
				t.Errorf("%s: added %v, removed %v", tc.reason, change.Added, change.Removed)
			}
			if name == "Same" && (change.IsNew || change.IsForeign) || name == "New" && !change.IsNew {
				t.Errorf("%s: %+v", tc.reason, change)
			}
			for _, request := range server.Requests() {
				if !strings.HasPrefix(request, "get ") {
					t.Errorf("%s: %s", tc.reason, request)
				}
			}
		})
	}
}

// TestForbiddenChange checks that a change which the user may not do writes nothing, and that one which fails says what was written.
func TestForbiddenChange(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, request string
		want            []string
	}{
		"Try":   {"the dry run is refused", "create Role lab/ (dry run)", []string{"Role lab/a-kudo", "you cannot give what you may not do yourself"}},
		"Write": {"the write fails", "create Role lab/", []string{"Role lab/a-kudo", "written before: ServiceAccount lab/a-kudo", Continue}},
		"First": {"the first write fails", "create ServiceAccount lab/", []string{"ServiceAccount lab/a-kudo", "nothing was written", Continue}},
	} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			server.Before(func(r apitest.Request) (any, error) {
				switch {
				case r.String() == tc.request:
					return nil, apierrors.NewForbidden(rbacv1.Resource("roles"), "a-kudo", errors.New("more than you have"))
				case r.Kind == "SelfSubjectAccessReview":
					return &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}, nil
				}
				return nil, nil
			})
			change, err := CompareAccount(t.Context(), server.Client(), lab(), &Rights{}, labManager)
			if err != nil {
				t.Fatal(err)
			}
			if err = change.Try(t.Context(), server.Client()); err == nil {
				err = change.Write(t.Context(), server.Client(), func(Step) {})
			}
			for _, text := range tc.want {
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: error %v, want %q", tc.reason, err, text)
				}
			}
			if name == "Try" && slices.Contains(server.Requests(), "create ServiceAccount lab/") {
				t.Errorf("%s: an object was written", tc.reason)
			}
		})
	}
}

// TestOwnAccount checks that the objects of an account get their Instance as owner, and lose one of the same name that was deleted.
func TestOwnAccount(t *testing.T) {
	old := metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Instance", Name: "a", UID: "old"}
	live := at(labAccount(), 1, func(r *rbacv1.Role) { r.OwnerReferences = []metav1.OwnerReference{old} })
	server := apitest.Start(t, live...)
	change, err := CompareAccount(t.Context(), server.Client(), lab(), &Rights{}, labManager)
	if err != nil {
		t.Fatal(err)
	}
	deleted := lab(func(i *v1beta1.Instance) { i.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	if failures := change.Own(t.Context(), server.Client(), deleted); failures != nil || len(server.Get(live[0]).GetOwnerReferences()) != 0 {
		t.Errorf("an Instance that is being deleted becomes an owner: %v", failures)
	}
	server.Remove(live[2])
	failures := change.Own(t.Context(), server.Client(), lab())
	if len(failures) != 1 || !strings.Contains(failures[0].Error(), "RoleBinding lab/a-kudo will stay when instance lab/a is deleted") {
		t.Errorf("the failures are %v", failures)
	}
	for n, want := range []types.UID{"u", "u"} {
		if owners := server.Get(live[n]).GetOwnerReferences(); len(owners) != 1 || owners[0].UID != want {
			t.Errorf("%s has the owners %v", live[n].GetName(), owners)
		}
	}
	if owners := server.Get(live[3]).GetOwnerReferences(); len(owners) != 0 {
		t.Errorf("the binding that all Instances share has the owners %v", owners)
	}
}
