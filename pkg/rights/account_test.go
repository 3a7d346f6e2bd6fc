package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
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
