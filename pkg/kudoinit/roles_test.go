package kudoinit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clusterRole builds a ClusterRole with rules.
func clusterRole(name string, rules ...any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": rules}}
	obj.SetName(name)
	return obj
}

// podRule is a rule about pods.
func podRule(verbs ...any) any {
	return map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": verbs}
}

// TestKeepRules checks which rights stay removed: only those that the record has and that an administrator has removed since then.
func TestKeepRules(t *testing.T) {
	const record = `{"r":[{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}]}`
	for name, tc := range map[string]struct {
		reason, record string
		live           []any
		lost           int
		want           []any
	}{
		"Same":     {"nothing was taken away", record, []any{podRule("get", "list")}, 0, []any{podRule("get", "list", "watch")}},
		"Lost":     {"one right was, and a new one comes", record, []any{podRule("get")}, 1, []any{podRule("get"), podRule("watch")}},
		"Split":    {"rights in rules of their own are the same", record, []any{podRule("list"), podRule("get")}, 0, []any{podRule("get", "list", "watch")}},
		"Added":    {"one more is reset", record, []any{podRule("get", "list", "delete")}, 0, []any{podRule("get", "list", "watch")}},
		"Empty":    {"the role has no rules any more", record, nil, 2, []any{podRule("watch")}},
		"None":     {"there is no record", "", nil, 0, []any{podRule("get", "list", "watch")}},
		"Other":    {"the record is of another role", `{"s":[]}`, nil, 0, []any{podRule("get", "list", "watch")}},
		"Broken":   {"the record cannot be read", record[:20], nil, 0, []any{podRule("get", "list", "watch")}},
		"Type":     {"the record is no object", `["r"]`, nil, 0, []any{podRule("get", "list", "watch")}},
		"NoRules":  {"init wrote a role without rules", `{"r":null}`, nil, 0, []any{podRule("get", "list", "watch")}},
		"Withheld": {"a right that the record lacks is new", `{"r":[]}`, nil, 0, []any{podRule("get", "list", "watch")}},
	} {
		role, live := clusterRole("r", podRule("get", "list", "watch")), clusterRole("r", tc.live...)
		before := live.DeepCopy()
		lost, err := keepRules(role, live, parseRules(tc.record))
		if diff := cmp.Diff(tc.want, role.Object["rules"]); diff != "" || lost != tc.lost || err != nil {
			t.Errorf("%s: %s: %d rights, error %v (-want +got):\n%s", name, tc.reason, lost, err, diff)
		}
		if diff := cmp.Diff(before, live); diff != "" {
			t.Errorf("%s: the live role was changed:\n%s", name, diff)
		}
	}
	role := clusterRole("r", podRule("get", "list"))
	if lost, err := keepRules(role, clusterRole("r"), parseRules(record)); lost != 2 || err != nil || !cmp.Equal(role.Object["rules"], any([]any{})) {
		t.Errorf("all rights were taken away: %d, %v, rules %v", lost, err, role.Object["rules"])
	}
	broken := clusterRole("r")
	broken.Object["rules"] = "none"
	if _, err := keepRules(clusterRole("r", podRule("get")), broken, parseRules(record)); err == nil {
		t.Error("a role that cannot be read is taken for one without rules")
	}
}

// TestRulesOf checks that a record keeps the rules of each ClusterRole but that of install plans, and that it can be read.
func TestRulesOf(t *testing.T) {
	role := clusterRole("no-cluster-role", podRule("get"))
	role.SetKind("Role")
	text, err := rulesOf([]*unstructured.Unstructured{clusterRole("a", podRule("get")), clusterRole(installRole, podRule("get")), role, clusterRole("b")})
	if err != nil {
		t.Fatal(err)
	}
	record := parseRules(text)
	if _, has := record["b"]; !has || len(record) != 2 || len(record["a"]) != 1 || record["a"][0].Verbs[0] != "get" {
		t.Errorf("the record is %s", text)
	}
}
