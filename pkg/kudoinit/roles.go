package kudoinit

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/rights"
)

// right is one verb on one resource, or on one path that is no resource.
type right struct{ group, resource, name, url, verb string }

// rightsIn returns the rights of a rule.
func rightsIn(rule rbacv1.PolicyRule) []right {
	var out []right
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			out = append(out, right{url: url, verb: verb})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					out = append(out, right{group: group, resource: resource, name: name, verb: verb})
				}
			}
		}
	}
	return out
}

// rule returns the rule that gives a right.
func (r right) rule() rbacv1.PolicyRule {
	if r.url != "" {
		return rbacv1.PolicyRule{NonResourceURLs: []string{r.url}, Verbs: []string{r.verb}}
	}
	out := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: []string{r.resource}, Verbs: []string{r.verb}}
	if r.name != "" {
		out.ResourceNames = []string{r.name}
	}
	return out
}

func rightSet(rules []rbacv1.PolicyRule) map[right]bool {
	out := map[right]bool{}
	for _, rule := range rules {
		for _, r := range rightsIn(rule) {
			out[r] = true
		}
	}
	return out
}

// mergeRules returns the rules that a version wants, without the rights that an administrator has removed since the last write of init. A
// right does not count as removed if a broader right covers it. Rights that were added are removed, since a manager must not have more
// rights than its version needs.
func mergeRules(last, live, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	taken := rightSet(rights.Without(last, live))
	lost := func(r right) bool { return taken[r] }
	var out []rbacv1.PolicyRule
	for _, rule := range wanted {
		all := rightsIn(rule)
		if !slices.ContainsFunc(all, lost) {
			out = append(out, rule)
			continue
		}
		for _, r := range all {
			if !lost(r) {
				out = append(out, r.rule())
			}
		}
	}
	return out
}

// keepRules removes from a ClusterRole that is going to be applied the rights that an administrator has removed from the live one, and
// returns their number. It is 0 if the record of written rules lacks the role.
func keepRules(role, live *unstructured.Unstructured, record map[string][]rbacv1.PolicyRule) (int, error) {
	last, recorded := record[role.GetName()]
	if !recorded {
		return 0, nil
	}
	is, wanted := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
	for from, to := range map[*unstructured.Unstructured]*rbacv1.ClusterRole{live: is, role: wanted} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to); err != nil {
			return 0, err
		}
	}
	merged := mergeRules(last, is.Rules, wanted.Rules)
	lost := len(rightSet(wanted.Rules)) - len(rightSet(merged))
	if lost == 0 {
		return 0, nil
	}
	wanted.Rules = merged
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return 0, err
	}
	if role.Object["rules"] = fields["rules"]; role.Object["rules"] == nil {
		role.Object["rules"] = []any{}
	}
	return lost, nil
}

// parseRules reads the record of the rules. A record that cannot be read is none.
func parseRules(text string) map[string][]rbacv1.PolicyRule {
	var out map[string][]rbacv1.PolicyRule
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// rulesOf returns the record of the ClusterRoles among objects. The role of install plans has a record of its own.
func rulesOf(objs []*unstructured.Unstructured) (string, error) {
	record := map[string]any{}
	for _, obj := range objs {
		if obj.GetKind() == "ClusterRole" && obj.GetName() != installRole {
			record[obj.GetName()] = obj.Object["rules"]
		}
	}
	text, err := json.Marshal(record)
	return string(text), err
}
