package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// grant allows one verb on one resource. Without a name it allows the verb on all objects of the resource.
type grant struct{ group, resource, verb, name string }

// grants are what an account needs in one place: its namespace, or the whole cluster.
type grants struct {
	resources map[grant]bool
	// paths are rules about paths of the API server, which only ClusterRoles have.
	paths []rbacv1.PolicyRule
	// full is set if there are too many to be listed.
	full bool
}

// maxGrants bounds what the roles of a package may blow up to: four lists of a rule multiply.
const maxGrants = 1 << 17

func newGrants() *grants { return &grants{resources: map[grant]bool{}} }

// allow adds verbs on objects of a resource; no names are all objects.
func (g *grants) allow(group, resource string, names []string, verbs ...string) {
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		for _, verb := range verbs {
			g.resources[grant{group, resource, verb, name}] = true
		}
	}
}

// rules adds the rules of a role: the API server lets a user write only roles that allow no more than that user may do.
func (g *grants) rules(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if len(rule.NonResourceURLs) > 0 {
			g.paths = append(g.paths, rbacv1.PolicyRule{NonResourceURLs: rule.NonResourceURLs, Verbs: rule.Verbs})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if len(g.resources)+max(1, len(rule.ResourceNames))*len(rule.Verbs) > maxGrants {
					g.full = true
					return
				}
				g.allow(group, resource, rule.ResourceNames, rule.Verbs...)
			}
		}
	}
}

// wider returns the other grants that allow all that a grant does, as RBAC reads them. They are few, whatever the number of
// grants that a package asks for.
func (g grant) wider() []grant {
	resources := []string{g.resource, rbacv1.ResourceAll}
	if _, subresource, below := strings.Cut(g.resource, "/"); below {
		resources = append(resources, "*/"+subresource)
	}
	var out []grant
	for _, group := range []string{g.group, rbacv1.APIGroupAll} {
		for _, resource := range resources {
			for _, verb := range []string{g.verb, rbacv1.VerbAll} {
				for _, name := range []string{g.name, ""} {
					if other := (grant{group, resource, verb, name}); other != g {
						out = append(out, other)
					}
				}
			}
		}
	}
	return out
}

// covers reports whether one of the grants is wider than a grant.
func (g *grants) covers(one grant) bool {
	return slices.ContainsFunc(one.wider(), func(other grant) bool { return g.resources[other] })
}

// needed are the grants that no other grant covers.
func (g *grants) needed() []grant {
	var out []grant
	for one := range g.resources {
		if !g.covers(one) {
			out = append(out, one)
		}
	}
	return out
}

// Verbs in the order in which rules list them; others follow by name.
var order = []string{"create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"}

func compareVerbs(a, b string) int {
	rank := func(verb string) int {
		if at := slices.Index(order, verb); at >= 0 {
			return at
		}
		return len(order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// list returns the fewest rules that allow what is needed, and nothing else: verbs of an object, then objects of a
// resource, then resources of a group are put together, where the others are the same.
func (g *grants) list() []rbacv1.PolicyRule {
	var single []rbacv1.PolicyRule
	for _, one := range g.needed() {
		rule := rbacv1.PolicyRule{APIGroups: []string{one.group}, Resources: []string{one.resource}, Verbs: []string{one.verb}}
		if one.name != "" {
			rule.ResourceNames = []string{one.name}
		}
		single = append(single, rule)
	}
	rules := fold(single, func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs }, compareVerbs)
	rules = fold(rules, func(r *rbacv1.PolicyRule) *[]string {
		if len(r.ResourceNames) == 0 {
			return nil
		}
		return &r.ResourceNames
	}, strings.Compare)
	rules = fold(rules, func(r *rbacv1.PolicyRule) *[]string { return &r.Resources }, strings.Compare)
	slices.SortFunc(rules, compareRules)
	return append(rules, g.pathRules()...)
}

// fold puts rules together that differ in one list only. Rules for which field returns nil stay as they are.
func fold(rules []rbacv1.PolicyRule, field func(*rbacv1.PolicyRule) *[]string, compare func(a, b string) int) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	at := map[string]int{}
	for _, rule := range rules {
		list := field(&rule)
		if list == nil {
			out = append(out, rule)
			continue
		}
		values := *list
		*list = nil
		key := fmt.Sprintf("%q", [][]string{rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs})
		*list = values
		if i, known := at[key]; known {
			into := field(&out[i])
			*into = append(*into, values...)
			continue
		}
		at[key] = len(out)
		out = append(out, rule)
	}
	for i := range out {
		if list := field(&out[i]); list != nil {
			slices.SortFunc(*list, compare)
		}
	}
	return out
}

// pathRules are the rules about paths: one for each path.
func (g *grants) pathRules() []rbacv1.PolicyRule {
	verbs := map[string]map[string]bool{}
	for _, rule := range g.paths {
		for _, path := range rule.NonResourceURLs {
			for _, verb := range rule.Verbs {
				if verbs[path] == nil {
					verbs[path] = map[string]bool{}
				}
				verbs[path][verb] = true
			}
		}
	}
	var out []rbacv1.PolicyRule
	for _, path := range slices.Sorted(maps.Keys(verbs)) {
		out = append(out, rbacv1.PolicyRule{NonResourceURLs: []string{path}, Verbs: slices.SortedFunc(maps.Keys(verbs[path]), compareVerbs)})
	}
	return out
}

// coversPath reports whether the rules about paths allow a verb on a path, as RBAC reads them: a star at the end of a path stands
// for all that follows.
func (g *grants) coversPath(path, verb string) bool {
	return slices.ContainsFunc(g.paths, func(rule rbacv1.PolicyRule) bool {
		return (slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Verbs, rbacv1.VerbAll)) &&
			slices.ContainsFunc(rule.NonResourceURLs, func(known string) bool {
				beginning, isPattern := strings.CutSuffix(known, "*")
				return known == path || isPattern && strings.HasPrefix(path, beginning)
			})
	})
}

// compareRules orders rules by group; in a group, those about all objects come first.
func compareRules(a, b rbacv1.PolicyRule) int {
	return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), cmp.Compare(min(len(a.ResourceNames), 1), min(len(b.ResourceNames), 1)),
		slices.Compare(a.Resources, b.Resources), slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs))
}

// Merge returns the fewest rules that allow what several lists of rules do, sorted.
func Merge(lists ...[]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	all := newGrants()
	for _, rules := range lists {
		all.rules(rules)
	}
	return all.list()
}

// Without returns what rules allow and others do not, sorted.
func Without(rules, others []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	have, all := newGrants(), newGrants()
	have.rules(others)
	all.rules(rules)
	left := newGrants()
	for one := range all.resources {
		if !have.resources[one] && !have.covers(one) {
			left.resources[one] = true
		}
	}
	for _, rule := range all.pathRules() {
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !have.coversPath(rule.NonResourceURLs[0], verb) }) {
			left.paths = append(left.paths, rule)
		}
	}
	return left.list()
}
