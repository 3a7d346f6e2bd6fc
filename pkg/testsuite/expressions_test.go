package testsuite

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asserts builds a TestAssert with references to a Deployment web, a ConfigMap other, and a Secret token.
func asserts(all, any []string) *testAssert {
	t := &testAssert{ResourceRefs: []ResourceRef{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Ref: "web"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "other", Ref: "other"},
		{APIVersion: "v1", Kind: "Secret", Name: "token", Ref: "token"},
	}}
	for _, text := range all {
		t.AssertAll = append(t.AssertAll, Assertion{text})
	}
	for _, text := range any {
		t.AssertAny = append(t.AssertAny, Assertion{text})
	}
	return t
}

// objectsOf returns the objects of references by their names; the ConfigMap other does not exist.
func objectsOf(want *unstructured.Unstructured) (*unstructured.Unstructured, string) {
	switch want.GetName() {
	case "web":
		return &unstructured.Unstructured{Object: map[string]any{
			"spec":     map[string]any{"replicas": int64(3), "paused": false},
			"status":   map[string]any{"readyReplicas": int64(1), "conditions": []any{map[string]any{"type": "Available", "status": "False"}}},
			"metadata": map[string]any{"labels": map[string]any{"app.io/x": "one"}},
			"memory":   "1Gi",
		}}, ""
	case "token":
		return &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "aHVudGVyMg=="}}}, ""
	}
	return nil, "ConfigMap other does not exist"
}

func TestP30Expressions(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		all, any []string
		want     []string
	}{
		{"all are true", []string{"web.spec.replicas == 3", "has(web.status)"}, nil, nil},
		{"one of any suffices", nil, []string{"web.spec.replicas == 4", "web.spec.replicas == 3"}, nil},
		{"the values of the parts are shown", []string{"web.spec.replicas == web.status.readyReplicas && !web.spec.paused"}, nil, []string{
			"assertAll[0] `web.spec.replicas == web.status.readyReplicas && !web.spec.paused` is false:", "  web.spec.replicas is 3", "  web.status.readyReplicas is 1"}},
		{"of macros, what they run over is shown", []string{"web.status.conditions.all(c, c.status == 'True')"}, nil, []string{
			"assertAll[0] `web.status.conditions.all(c, c.status == 'True')` is false:", `  web.status.conditions is [{"status":"False","type":"Available"}]`}},
		{"of calls and items, too", []string{"size(web.status.conditions) > 1 || web.metadata.labels['app.io/x'] == 'two'"}, nil, []string{
			"assertAll[0] `size(web.status.conditions) > 1 || web.metadata.labels['app.io/x'] == 'two'` is false:", "  size(web.status.conditions) is 1",
			`  web.status.conditions is [{"status":"False","type":"Available"}]`, `  web.metadata.labels["app.io/x"] is "one"`}},
		{"none of any", nil, []string{"web.spec.replicas == 4", "web.spec.replicas == 5"}, []string{
			"no expression of assertAny is true:", "    assertAny[0] `web.spec.replicas == 4` is false:", "      web.spec.replicas is 3",
			"    assertAny[1] `web.spec.replicas == 5` is false:", "      web.spec.replicas is 3"}},
		{"an absent object, also where another operand would do", []string{"web.spec.replicas == 3 || other.data.x == 'y'"}, nil, []string{
			"assertAll[0] `web.spec.replicas == 3 || other.data.x == 'y'` cannot be evaluated: ConfigMap other does not exist"}},
		{"an absent object does not matter to others", nil, []string{"other.data.x == 'y'", "web.spec.replicas == 3"}, nil},
		{"an absent field", []string{"web.status.phase == 'Running'"}, nil, []string{
			"assertAll[0] `web.status.phase == 'Running'` cannot be evaluated: no such key: phase"}},
		{"no truth", []string{"web.spec.replicas"}, nil, []string{"assertAll[0] `web.spec.replicas` is of type int: must be bool"}},
		{"no end", []string{"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, " +
			"[1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, [1,2,3,4,5,6,7,8,9,10].all(g, a + b + c + d + e + f + g > 0)))))))"}, nil, []string{
			"costs too much: make it simpler"}},
		{"a Secret's value", []string{"token.data.key == 'x' && size(token.data.key) > 0"}, nil, []string{
			"assertAll[0] `token.data.key == 'x' && size(token.data.key) > 0` is false:", "  token.data.key is (masked: of a Secret)"}},
		{"a Secret's value in an error", []string{"{'a': 1}[token.data.key] == 1"}, nil, []string{
			"assertAll[0] `{'a': 1}[token.data.key] == 1` cannot be evaluated. The error is not shown, since the expression uses a Secret", "  token.data.key is (masked: of a Secret)"}},
		{"quantities", []string{"quantity(web.memory).isGreaterThan(quantity('900Mi'))"}, nil, nil},
	} {
		e, _, err := compileExpressions(asserts(tc.all, tc.any))
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		got := e.unmet(objectsOf)
		if len(tc.want) == 1 && len(got) == 1 && strings.HasSuffix(got[0], tc.want[0]) {
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

// TestP30ExpressionMistakes loads cases whose TestAsserts are wrong: the error has the file and the line.
func TestP30ExpressionMistakes(t *testing.T) {
	const refs = "resourceRefs:\n- {apiVersion: apps/v1, kind: Deployment, name: web, ref: web}\n"
	ref := func(text string) string { return "resourceRefs:\n- " + text + "\nassertAll:\n- celExpr: 'true'\n" }
	for _, tc := range []struct{ reason, assert, want string }{
		{"an unknown variable", refs + "assertAll:\n- celExpr: wob.spec.replicas == 1\n", "00-assert.yaml:7: TestAssert: assertAll[0].celExpr: column 1: undeclared reference to 'wob'"},
		{"the second expression", refs + "assertAny:\n- celExpr: 'true'\n- celExpr: web.spec.\n", "00-assert.yaml:8: TestAssert: assertAny[1].celExpr: column 10: Syntax error"},
		{"a line of a block", refs + "assertAll:\n- celExpr: |\n    web.spec.replicas == 1 &&\n    absent.spec\n", "00-assert.yaml:9: TestAssert: assertAll[0].celExpr: column 1: undeclared"},
		{"a folded block", refs + "assertAll:\n- celExpr: >-\n    absent.spec\n    == 1\n", "00-assert.yaml:8: TestAssert"},
		{"no text", refs + "assertAll:\n- {}\n", "TestAssert: assertAll[0]: celExpr is missing"},
		{"no truth", refs + "assertAll:\n- celExpr: '1 + 1'\n", "00-assert.yaml:7: TestAssert: assertAll[0].celExpr: is of type int: must be bool"},
		{"too long", refs + "assertAll:\n- celExpr: \"" + strings.Repeat(" ", maxExpression) + "true\"\n", "celExpr: is longer than 16384 bytes"},
		{"too many", "assertAll:\n" + strings.Repeat("- celExpr: 'true'\n", maxExpressions+1), "use several TestAsserts"},
		{"no version", ref("{kind: Pod, name: a, ref: a}"), `00-assert.yaml:5: TestAssert: resourceRefs[0].apiVersion "": must be a version such as apps/v1`},
		{"a wrong version", ref("{apiVersion: a/b/c, kind: Pod, name: a, ref: a}"), `resourceRefs[0].apiVersion "a/b/c"`},
		{"no kind", ref("{apiVersion: v1, name: a, ref: a}"), "resourceRefs[0].kind: is missing"},
		{"no name", ref("{apiVersion: v1, kind: Pod, ref: a}"), "resourceRefs[0].name: is missing"},
		{"no variable", ref("{apiVersion: v1, kind: Pod, name: my-pod, ref: my-pod}"), `resourceRefs[0].ref "my-pod": must be a name that CEL takes for a variable, such as myPod`},
		{"a word of CEL", ref("{apiVersion: v1, kind: Pod, name: a, ref: in}"), `resourceRefs[0].ref "in": must be a name`},
		{"a type of CEL", ref("{apiVersion: v1, kind: Pod, name: a, ref: string}"), `resourceRefs[0].ref "string": must be a name`},
		{"a name twice", ref("{apiVersion: v1, kind: Pod, name: a, ref: a}\n- {apiVersion: v1, kind: Pod, name: b, ref: a}"), `00-assert.yaml:6: TestAssert: resourceRefs[1].ref "a": another reference has this name`},
	} {
		_, err := Load(folder(t, map[string]string{"00-assert.yaml": "---\n" + head + "TestAssert\n" + tc.assert}), nil)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
		}
	}
}

func TestP30UnusedReference(t *testing.T) {
	c, err := Load(folder(t, map[string]string{"00-assert.yaml": head + "TestAssert\nresourceRefs: [{apiVersion: v1, kind: Pod, name: a, ref: a}]\nassertAll: [{celExpr: 'true'}]\n"}), nil)
	if err != nil || len(c.Notes) != 1 || c.Notes[0] != "TestAssert: no expression uses resourceRefs[0], a, which has no effect" {
		t.Errorf("%v, %+v", err, c)
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"true", "web.spec.replicas == 3", "[1].all(x, x > 0)", "has(web.a.b)", "{'a': web}['a'].spec", "web.memory.matches('(a*)*b')", "\"\\x00\" + web.memory", "other"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, _, err := compileExpressions(asserts([]string{source}, nil))
		if err != nil {
			return
		}
		for _, line := range e.unmet(objectsOf) {
			if len(line) > 8*maxShown || strings.ContainsAny(line, "\n\x00\x1b") {
				t.Errorf("a line is not bounded or not plain: %q", line)
			}
			if strings.Contains(line, "aHVudGVyMg==") && !strings.Contains(source, "aHVudGVyMg==") {
				t.Errorf("the value of a Secret is shown: %q", line)
			}
		}
	})
}
