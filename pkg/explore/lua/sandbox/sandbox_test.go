package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apijson "k8s.io/apimachinery/pkg/util/json"
)

func noon() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }

// limits are generous ones.
func limits() Limits {
	return Limits{Instructions: 1_000_000, Time: time.Second, Memory: 64 << 20, Output: 3 << 20, Depth: 100}
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lab"},"spec":{"replicas":2,"paused":false,
	"template":{"metadata":{"labels":{}},"spec":{"containers":[{"name":"a","image":"x","args":[],"resources":{"limits":{"cpu":"1500m"}}}]}}}}`

// pack, status, health and retain are entries of scripts.
var (
	pack   = Entry{Name: "Pack", Parameters: []string{"desiredObj"}}
	status = Entry{Name: "ReflectStatus", Parameters: []string{"observedObj"}}
	health = Entry{Name: "InterpretHealth", Parameters: []string{"observedObj"}}
	retain = Entry{Name: "Retain", Parameters: []string{"desiredObj", "runtimeObj"}, Aliases: map[string]string{"observedObj": "runtimeObj"}}
)

// own is a library beside those of Lua.
func own() Library {
	return Library{Name: "own", Functions: map[string]Function{
		"count":  func(a Arguments) (any, error) { return int64(a.Len()), nil },
		"isNil":  func(a Arguments) (any, error) { return a.IsNil(1), nil },
		"text":   func(a Arguments) (any, error) { return a.Text(1) },
		"table":  func(a Arguments) (any, error) { return a.Table(1) },
		"spend":  func(a Arguments) (any, error) { a.Spend(1000); return nil, nil },
		"double": func(a Arguments) (any, error) { text, err := a.Text(1); return text + text, err },
		"half":   func(Arguments) (any, error) { return 0.5, nil },
		"wrong":  func(Arguments) (any, error) { return nil, fmt.Errorf("call: %w", &ArgumentError{2, "is wrong"}) },
		"fail":   func(Arguments) (any, error) { return nil, errors.New("100% failed") },
		"strange": func(Arguments) (any, error) {
			return []string{"x"}, nil
		},
	}}
}

// object parses JSON, with int64 for integers.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var made map[string]any
	if err := apijson.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err, text)
	}
	return made
}

func compact(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run compiles and runs a script on a pool, with one argument, and returns its result. Empty tables are what the examples have.
func run(t testing.TB, p *Pool, entry Entry, source string, argument any, examples ...any) (made any, err error) {
	t.Helper()
	s, err := Compile(source, entry, own())
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.WithTimeout(t.Context())
	defer cancel()
	err = p.Run(ctx, Call{Script: s, Arguments: []any{argument}, Results: 1, Now: noon()}, func(results []Value) (err error) {
		made, err = results[0].JSON(examples...)
		return err
	})
	return made, err
}

// ask runs a script on a new pool. Empty tables are what its argument has.
func ask(t testing.TB, entry Entry, source string, argument any) (any, error) {
	t.Helper()
	return run(t, NewPool(limits(), own()), entry, source, argument, argument)
}

// listOf is the list that a script has put into its result. Without entries, the list is not in it.
func listOf(result any) []any {
	fields, _ := result.(map[string]any)
	if list, ok := fields["list"].([]any); ok {
		return list
	}
	return []any{}
}

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
	made, err := ask(t, status, script, object(t, deployment))
	var got, gotErr string
	if err != nil {
		gotErr, _, _ = strings.Cut(err.Error(), "\n")
	} else if fields, ok := made.(map[string]any); ok {
		got, _ = fields["text"].(string)
	}
	if got != want || gotErr != wantErr {
		t.Errorf("%s: got %q and error %q, want %q and %q", reason, got, gotErr, want, wantErr)
	}
}
