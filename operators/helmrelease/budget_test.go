package helmrelease

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// nested is a document whose aliases stand for a thousand values each.
func nested(name string) string {
	row := strings.TrimSuffix(strings.Repeat("x, ", 100), ", ")
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\na: &a [%s]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n"+
		"c: [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n---\n", name, row)
}

// TestBudget (P31): a release is bounded in all, whatever it is made of.
func TestBudget(t *testing.T) {
	many := func(n int, one func(int) string) string {
		var out strings.Builder
		for i := range n {
			out.WriteString(one(i))
		}
		return out.String()
	}
	object := func(i int) string {
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}}\n---\n", i)
	}
	long := strings.Repeat("y", 100_000)
	for _, tc := range []struct{ reason, first, second, want string }{
		{"aliases of many documents", many(300, func(i int) string { return nested(fmt.Sprintf("c%d", i)) }), "", "values once aliases are expanded"},
		{"objects of several files", many(maxObjects/2, object), many(maxObjects/2+1, object), "more than 2000 objects"},
		{"a long text that aliases repeat", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\na: &a " + long + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a, ", 1000), ", ") + "]\n", "",
			"bytes once aliases are expanded"},
		{"what is within the bounds", many(maxObjects, object), "", ""},
	} {
		b := &budget{}
		_, err := b.parseObjects("a", tc.first)
		if err == nil && tc.second != "" {
			_, err = b.parseObjects("b", tc.second)
		}
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
}

// TestDecodeList (P31): no more entries are decoded than there may be.
func TestDecodeList(t *testing.T) {
	for _, tc := range []struct{ reason, text, want string }{
		{"as many as there may be", `[{}, {}]`, ""},
		{"none", `null`, ""},
		{"one more, before what follows is looked at", `[{}, {}, {}` + strings.Repeat(", {}", 100), "more than 2 hooks"},
		{"no list", `{}`, "hooks are no list"},
		{"an entry of another type", `[1]`, "cannot unmarshal"},
	} {
		_, err := decodeList[Hook]([]byte(tc.text), 2, "hooks")
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
		}
	}
	var hooks Hooks
	if err := json.Unmarshal([]byte("["+strings.TrimSuffix(strings.Repeat("{},", maxHooks+1), ",")+"]"), &hooks); err == nil {
		t.Error("the bound counts where a release is read")
	}
}
