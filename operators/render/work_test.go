package render

import (
	"errors"
	"strings"
	"testing"
)

// TestRegexFunctions checks that functions with regular expressions do as those of sprig.
func TestRegexFunctions(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ regexMatch "^a+$" "aaa" }}`: "true", `{{ regexMatch "(" "a" }}`: "false", `{{ mustRegexMatch "b" "abc" }}`: "true",
		`{{ mustRegexMatch "(" "a" }}`: "!error parsing regexp: missing closing ): `(`", `{{ regexFind "b+" "abbc" }}`: "bb",
		`{{ regexFind "x" "abc" }}`:                         "",
		`{{ mustRegexFind "[" "a" }}`:                       "!error parsing regexp: missing closing ]: `[`",
		`{{ regexFindAll "[a-c]" "abcabc" -1 | join "," }}`: "a,b,c,a,b,c",
		`{{ regexFindAll "[a-c]" "abcabc" 2 | join "," }}`:  "a,b", `{{ regexFindAll "x" "abc" -1 | len }}`: "0",
		`{{ regexFindAll "a" "aaa" 0 | len }}`:                             "0",
		`{{ regexFindAll "a" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" -1 | len }}`: "30", `{{ mustRegexFindAll "" "ab" -1 | len }}`: "3",
		`{{ regexSplit "-" "a-b-c" -1 | join "," }}`: "a,b,c", `{{ regexSplit "-" "a-b-c" 2 | join "," }}`: "a,b-c",
		`{{ mustRegexSplit "-" "abc" -1 | len }}`:    "1",
		`{{ regexReplaceAll "a(.)" "abac" "<$1>" }}`: "<b><c>", `{{ regexReplaceAllLiteral "a(.)" "abac" "<$1>" }}`: "<$1><$1>",
		`{{ mustRegexReplaceAll "x*" "ab" "-" }}`: "-a-b-", `{{ mustRegexReplaceAllLiteral "b" "abc" "" }}`: "ac",
	})
}

// TestComparingFunctions checks that functions that compare items do as those of sprig.
func TestComparingFunctions(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ uniq (list 1 2 1 "a" "a") | toJson }}`: `[1,2,"a"]`, `{{ mustUniq (list) | len }}`: "0",
		`{{ without (list 1 2 3 2) 2 4 | toJson }}`: "[1,3]",
		`{{ mustWithout (list 1) 1 | len }}`:        "0", `{{ has 4 (list 1 2) }}`: "false", `{{ mustHas "a" (list "b" "a") }}`: "true",
		`{{ deepEqual (dict "a" 1) (dict "a" 1) }}`: "true",
		`{{ deepEqual (list 1) (list 2) }}`:         "false", `{{ has 1 nil }}`: "false",
	})
}

// TestPatternBound checks the bound on the size of a regular expression at its edge.
func TestPatternBound(t *testing.T) {
	if _, err := newExpression(strings.Repeat("a", maxRegex), free); err != nil {
		t.Errorf("the bound itself is allowed: %v", err)
	}
	_, err := newExpression(strings.Repeat("a", maxRegex+1), free)
	var beyond *Error
	if !errors.As(err, &beyond) || beyond.Reason != "a regular expression has 4097 bytes, more than the 4096 allowed" {
		t.Errorf("one byte more: %v", err)
	}
	if got := rendered(`{{ regexMatch (repeat 4097 "a") "a" }}`); !strings.Contains(got, "a regular expression has 4097 bytes") {
		t.Errorf("regexMatch does not hide the bound: %.200s", got)
	}
}

// TestWorkOfExpressions checks that larger expressions and longer texts are charged for more.
func TestWorkOfExpressions(t *testing.T) {
	work := func(pattern, text string) (sum int) {
		e, err := newExpression(pattern, func(units int) { sum += units })
		if err != nil {
			t.Fatal(err)
		}
		e.findAll(text, -1)
		return sum
	}
	base := work("ab", "xx")
	for name, more := range map[string]int{"Pattern": work("(ab|cd){50}", "xx"), "Text": work("ab", strings.Repeat("x", 1000)),
		"Matches": work("x", strings.Repeat("x", 1000))} {
		if more <= base {
			t.Errorf("%s: %d is no more than %d", name, more, base)
		}
	}
	if none, many := work("y", strings.Repeat("x", 1000)), work("x", strings.Repeat("x", 1000)); many <= none {
		t.Errorf("%d for many matches is no more than %d for none", many, none)
	}
}

// TestProduct64 checks that a product that would overflow is beyond the bound.
func TestProduct64(t *testing.T) {
	const huge = int(^uint(0) >> 1)
	for _, tc := range [][3]int{{0, huge, 0}, {3, 4, 12}, {1, MaxWork, MaxWork}, {2, MaxWork, MaxWork + 1}, {huge, huge, MaxWork + 1},
		{MaxWork, 1, MaxWork}} {
		if got := product64(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%d times %d is %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

// TestBudgetEdges checks a budget at its edge, the message, and that no budget is no bound.
func TestBudgetEdges(t *testing.T) {
	b := NewBudget(2 << 20)
	if err := errors.Join(b.Spend(1<<20), b.Spend(1<<20), b.Spend(0)); err != nil {
		t.Errorf("the limit itself is allowed: %v", err)
	}
	err := b.Spend(1)
	var beyond *Error
	if !errors.As(err, &beyond) || beyond.Kind != BudgetError || beyond.Template != "" ||
		beyond.Reason != "it and the templates that were rendered with it take too much work: "+
			"their loops and functions go through more than 2 MiB" {
		t.Errorf("one unit more: %v", err)
	}
	var none *Budget
	if err := none.Spend(1 << 60); err != nil {
		t.Errorf("no budget: %v", err)
	}
	if err := (&Budget{}).Spend(MaxBudget); err != nil {
		t.Errorf("a budget without a limit has the standard one: %v", err)
	}
	if err := (&Budget{}).Spend(MaxBudget + 1); err == nil {
		t.Error("a budget without a limit has the standard one")
	}
}

// TestBudgetOfRenderings checks that each way to render spends, and that an error names the template.
func TestBudgetOfRenderings(t *testing.T) {
	set := New(map[string]string{"t.yaml": head + "data: {a: {{ .Params.V | quote }}}\n", "p.yaml": "A: {{ .Params.V | quote }}\n"})
	const want = "template t.yaml: it and the templates that were rendered with it take too much work: " +
		"their loops and functions go through more than 0 MiB"
	for name, tc := range map[string]struct {
		limit int64
		do    func(v Variables) error
		want  string
	}{
		"Begin": {1, func(v Variables) error { return second(set.Text("t.yaml", v)) }, want},
		"Text":  {renderWork + 200, func(v Variables) error { return second(set.Text("t.yaml", v)) }, "template t.yaml: it"},
		"Parse": {renderWork + 1500, func(v Variables) error { return second(set.Objects("t.yaml", v)) }, want},
		"Check": {renderWork + 3500, func(v Variables) error { return second(set.Objects("t.yaml", v)) }, want},
		"Parameters": {renderWork + 700, func(v Variables) error { return second(set.Parameters("p.yaml", v)) },
			strings.Replace(want, "t.yaml", "p.yaml", 1)},
	} {
		v := Variables{Params: map[string]any{"V": "a b"}, Budget: NewBudget(tc.limit)}
		err := tc.do(v)
		var beyond *Error
		if !errors.As(err, &beyond) || beyond.Kind != BudgetError || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: error %v", name, err)
		}
		v.Budget = NewBudget(1 << 20)
		if err := tc.do(v); err != nil {
			t.Errorf("%s: enough: %v", name, err)
		}
	}
}

// TestSizeOfTexts checks that larger values count for more, keys as well.
func TestSizeOfTexts(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  int
	}{{nil, 16}, {int64(5), 16}, {"", 16}, {"abc", 19}, {[]any{}, 16}, {[]any{"a", "b"}, 50}, {map[string]any{"key": "v"},
		36}, {map[string]any{"a": []any{"b"}}, 50}} {
		if got := sizeOfTexts(tc.value); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.value, got, tc.want)
		}
	}
}
