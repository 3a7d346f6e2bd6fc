package preview

import (
	"encoding/json"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"kudo.dev/kudo/pkg/rights"
	"kudo.dev/kudo/test/env"
)

// account is the name of the ServiceAccount that a command makes for Instance i, and of its Role and RoleBinding.
const account = "i-kudo"

// compareGiven compares the rights that the preview of an install names with the Role that the command has made, and takes the objects of the
// account out of those that the preview must name one by one.
func (o outcome) compareGiven(t *testing.T) {
	t.Helper()
	said := o.preview.Rights
	if said == nil || !said.Given {
		return
	}
	role := rbacv1.Role{}
	text, err := json.Marshal(o.after["Role "+o.ns+"/"+account])
	env.Must(t, err)
	env.Must(t, json.Unmarshal(text, &role))
	for list, rules := range map[string][]rbacv1.PolicyRule{"needed": said.Needed, "added": said.Added} {
		more, fewer := rights.Without(role.Rules, rules), rights.Without(rules, role.Rules)
		if said.Account != o.ns+"/"+account || len(more) > 0 || len(fewer) > 0 || len(role.Rules) == 0 {
			t.Errorf("of the rights of %s that are %s, the Role has more: %v, and fewer: %v\n%s", said.Account, list, more, fewer, o.texts)
		}
	}
	for _, kind := range []string{"ServiceAccount", "Role", "RoleBinding"} {
		delete(o.after, kind+" "+o.ns+"/"+account)
	}
}
