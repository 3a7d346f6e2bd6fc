package rights

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestAccount checks the names of the objects that an account consists of, and that the RoleBinding gives the Role to that account.
func TestAccount(t *testing.T) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	for name, tc := range map[string]struct {
		reason  string
		account string
		want    string
	}{
		"Default": {"an account without a name has the name of the Role", "", "site-kudo"},
		"Named":   {"an account with a name keeps it", "robot", "robot"},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAccount("lab", "site", tc.account, rules)
			a.Manager = types.NamespacedName{Namespace: "kudo-system", Name: "kudo-manager"}
			var got []string
			for _, object := range a.Objects() {
				got = append(got, object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetNamespace()+"/"+object.GetName())
			}
			want := []string{"ServiceAccount lab/" + tc.want, "Role lab/site-kudo", "RoleBinding lab/site-kudo", "RoleBinding lab/kudo-run-as"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "lab", Name: tc.want}}, a.RoleBinding().Subjects); diff != "" {
				t.Errorf("the Role is bound to the account: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "kudo-system", Name: "kudo-manager"}}, a.RunAsBinding().Subjects); diff != "" {
				t.Errorf("only the manager may act as the account: -want +got:\n%s", diff)
			}
		})
	}
}

// TestClusterObjects checks that rights for the whole cluster are bound to the account, and that there are none without rules.
func TestClusterObjects(t *testing.T) {
	a := NewAccount("lab", "site", "", nil)
	if objects := a.ClusterObjects(nil); len(objects) != 0 {
		t.Errorf("without rules there are %d objects", len(objects))
	}
	objects := a.ClusterObjects([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}})
	if len(objects) != 2 || objects[0].GetName() != "lab-site-kudo" || objects[1].GetName() != "lab-site-kudo" {
		t.Fatalf("a ClusterRole and its binding have the name of namespace and Role: %v", objects)
	}
	if subjects := objects[1].(*rbacv1.ClusterRoleBinding).Subjects; len(subjects) != 1 || subjects[0].Name != "site-kudo" || subjects[0].Namespace != "lab" {
		t.Errorf("the binding names the account: %v", subjects)
	}
}

// TestIsDeletedWith checks which objects of an account are deleted with the Instance: those that it owns, and perhaps what cannot be read of the
// account that commands make.
func TestIsDeletedWith(t *testing.T) {
	owned := func(uid types.UID) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Instance", Name: "site", UID: uid}}}}
	}
	for reason, tc := range map[string]struct {
		account string
		live    *metav1.PartialObjectMetadata
		unread  error
		want    bool
	}{
		"a command has made it":                       {"site-kudo", owned("uid"), nil, true},
		"it is named, and owned":                      {"robot", owned("uid"), nil, true},
		"an earlier Instance of the name owned it":    {"site-kudo", owned("earlier"), nil, false},
		"others have made it":                         {"site-kudo", &metav1.PartialObjectMetadata{}, nil, false},
		"it cannot be read, and a command makes such": {"site-kudo", nil, errors.New("forbidden"), true},
		"another is named, and it cannot be read":     {"robot", nil, errors.New("forbidden"), false},
		"none is named, and it cannot be read":        {"", nil, errors.New("forbidden"), false},
	} {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "site", UID: "uid"}}
		i.Spec.ServiceAccountName = tc.account
		if got := AccountOf(i).IsDeletedWith(i, tc.live, tc.unread); got != tc.want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}
