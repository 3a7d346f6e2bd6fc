package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// covers is how RBAC compares two grants.
func covers(g, other grant) bool {
	_, subresource, below := strings.Cut(other.resource, "/")
	return (g.group == other.group || g.group == "*") &&
		(g.resource == other.resource || g.resource == "*" || below && g.resource == "*/"+subresource) &&
		(g.verb == other.verb || g.verb == "*") &&
		(g.name == other.name || g.name == "")
}

// TestWider compares each pair of grants of a few groups, resources, verbs and names.
func TestWider(t *testing.T) {
	var all []grant
	for _, group := range []string{"", "apps", "*"} {
		for _, resource := range []string{"pods", "pods/log", "*/log", "*", "nodes/log"} {
			for _, verb := range []string{"get", "*"} {
				for _, name := range []string{"", "a"} {
					all = append(all, grant{group, resource, verb, name})
				}
			}
		}
	}
	for _, one := range all {
		wider := one.wider()
		for _, other := range all {
			if got, want := slices.Contains(wider, other), other != one && covers(other, one); got != want {
				t.Errorf("%v is wider than %v: got %v, want %v", other, one, got, want)
			}
		}
	}
}

// TestMergeMany checks that Merge takes the largest number of grants in seconds. A comparison of each grant with each other one
// would take minutes.
func TestMergeMany(t *testing.T) {
	var wide rbacv1.PolicyRule
	wide.APIGroups = []string{"x"}
	for i := range 200 {
		wide.Resources = append(wide.Resources, fmt.Sprintf("r%03d", i))
		wide.Verbs = append(wide.Verbs, fmt.Sprintf("v%03d", i))
	}
	got := Merge([]rbacv1.PolicyRule{wide, rule("x", "r000", "v000", "a")})
	if diff := cmp.Diff([]rbacv1.PolicyRule{wide}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := Without([]rbacv1.PolicyRule{wide}, got); left != nil {
		t.Errorf("%d rules are left", len(left))
	}
}

// TestWithoutRules has what others allow in another form.
func TestWithoutRules(t *testing.T) {
	path := func(verbs string, paths ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{NonResourceURLs: paths, Verbs: strings.Split(verbs, ",")}
	}
	for name, tc := range map[string]struct {
		reason        string
		rules, others []rbacv1.PolicyRule
		want          []string
	}{
		"AllVerbs":  {"all verbs", []rbacv1.PolicyRule{rule("", "pods", "get,odd", "a")}, []rbacv1.PolicyRule{rule("", "pods", "*")}, nil},
		"AllGroups": {"all groups", []rbacv1.PolicyRule{rule("apps,x.io", "pods", "get")}, []rbacv1.PolicyRule{rule("*", "pods", "get")}, nil},
		"Subresource": {
			"a resource does not allow what is below it",
			[]rbacv1.PolicyRule{rule("", "pods/log,pods", "get")},
			[]rbacv1.PolicyRule{rule("", "pods", "get")},
			[]string{"/pods/log: get"},
		},
		"Subresources": {
			"*/log allows it",
			[]rbacv1.PolicyRule{rule("", "pods/log,pods/exec", "get")},
			[]rbacv1.PolicyRule{rule("", "*/log", "get")},
			[]string{"/pods/exec: get"},
		},
		"Named": {
			"a name does not allow all objects",
			[]rbacv1.PolicyRule{rule("", "pods", "get")},
			[]rbacv1.PolicyRule{rule("", "pods", "*", "a")},
			[]string{"/pods: get"},
		},
		"Star": {
			"the sum of all verbs is not *",
			[]rbacv1.PolicyRule{rule("", "pods", "*")},
			[]rbacv1.PolicyRule{rule("", "pods", "create,get,list,watch,update,patch,delete")},
			[]string{"/pods: *"},
		},
		"Paths": {
			"paths with all their verbs",
			[]rbacv1.PolicyRule{path("get", "/a", "/b"), path("post", "/a")},
			[]rbacv1.PolicyRule{path("get", "/a", "/b")},
			[]string{"/a: get,post"},
		},
		"PathsKnown": {
			"paths that others have",
			[]rbacv1.PolicyRule{path("get", "/a")},
			[]rbacv1.PolicyRule{path("post,get", "/a", "/b")},
			nil,
		},
		"PathPattern": {
			"a star at the end of a path stands for all that follows",
			[]rbacv1.PolicyRule{path("get", "/metrics/a", "/metrics", "/metric", "/metrics/*")},
			[]rbacv1.PolicyRule{path("get", "/metrics/*")},
			[]string{"/metric: get", "/metrics: get"},
		},
		"PathsAll": {
			"all paths with all verbs",
			[]rbacv1.PolicyRule{path("get,odd", "/a"), path("*", "*")},
			[]rbacv1.PolicyRule{path("*", "*")},
			nil,
		},
		"PathStar": {
			"a path does not allow those that follow, nor a verb all verbs",
			[]rbacv1.PolicyRule{path("get", "/a/*"), path("*", "/a")},
			[]rbacv1.PolicyRule{path("get", "/a")},
			[]string{"/a: *", "/a/*: get"},
		},
		"PathVerbs": {"verbs of paths in their order", []rbacv1.PolicyRule{path("put,delete,get", "/a")}, nil, []string{"/a: get,delete,put"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lines(Without(tc.rules, tc.others))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTooManyGrants bounds what a rule multiplies to.
func TestTooManyGrants(t *testing.T) {
	wide := rbacv1.PolicyRule{APIGroups: []string{"x"}}
	for i := range 1 << 9 {
		wide.Resources = append(wide.Resources, fmt.Sprint(i))
	}
	for i := range 1 << 8 {
		wide.Verbs = append(wide.Verbs, fmt.Sprint(i))
	}
	g := newGrants()
	if g.rules([]rbacv1.PolicyRule{wide}); g.full || len(g.resources) != maxGrants {
		t.Errorf("%d grants: full %v", len(g.resources), g.full)
	}
	if g.rules([]rbacv1.PolicyRule{rule("y", "r", "get")}); !g.full || len(g.resources) != maxGrants {
		t.Errorf("one more: %d grants, full %v", len(g.resources), g.full)
	}
	names := rule("", "r", "get")
	for i := range maxGrants + 1 {
		names.ResourceNames = append(names.ResourceNames, fmt.Sprint(i))
	}
	g = newGrants()
	if g.rules([]rbacv1.PolicyRule{names}); !g.full || len(g.resources) != 0 {
		t.Errorf("more names than grants: %d grants, full %v", len(g.resources), g.full)
	}
}
