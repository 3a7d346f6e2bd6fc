package lua

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// expression is a list of Lua expressions, and their values as tostring writes them, joined by |; or the error of evaluating them.
type expression struct{ reason, lua, want, err string }

// joined defines the function that makes one text of the values of expressions.
const joined = `local function joined(...)
local texts = {}
for i = 1, select('#', ...) do texts[i] = tostring((select(i, ...))) end
return {text = table.concat(texts, '|')}
end
`

func checkExpressions(t *testing.T, rows map[string]expression) {
	t.Helper()
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			checkScript(t, row.reason, joined+"return joined("+row.lua+")", row.want, row.err)
		})
	}
}

// checkScript runs a script that returns a table with a text.
func checkScript(t *testing.T, reason, script, want, wantErr string) {
	t.Helper()
	answer, err := ask(t, explore.Status, script, explore.Request{Object: exploretest.Object(t, deployment)})
	var got, gotErr string
	if err != nil {
		gotErr = err.Error()
	} else if fields, ok := answer.Status.(map[string]any); ok {
		got, _ = fields["text"].(string)
	}
	if diff := cmp.Diff([]string{want, wantErr}, []string{got, gotErr}); diff != "" {
		t.Errorf("%s: value and error (-want +got):\n%s", reason, diff)
	}
}
