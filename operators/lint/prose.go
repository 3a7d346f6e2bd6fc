package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"kudo.dev/kudo/operators"
)

// prose are the checks of what people read about parameters, by the names under which they can be asked for.
var prose = []struct {
	name   string
	linter Linter
}{
	{"display", eachParameter("displayName", func(p operators.Parameter) []string { return displayed(p.DisplayName) })},
	{"hint", eachParameter("hint", func(p operators.Parameter) []string { return hinted(p.Hint) })},
	{"desc", eachParameter("description", func(p operators.Parameter) []string { return described(p.Description) })},
	{"type", eachParameter("type", func(p operators.Parameter) []string { return given("type", string(p.Type)) })},
	{"hasgroup", eachParameter("group", func(p operators.Parameter) []string { return given("group", p.Group) })},
	{"groups", groupProse},
}

// ParamCheckNames lists what ParamChecks takes.
func ParamCheckNames() []string {
	var names []string
	for _, p := range prose {
		names = append(names, p.name)
	}
	return append(names, "all")
}

// ParamChecks are linters of what people read about parameters; "all" is all of them.
func ParamChecks(names ...string) (Chain, error) {
	for _, name := range names {
		if !slices.Contains(ParamCheckNames(), name) {
			return nil, fmt.Errorf("there is no parameter check %q: use %s", name, strings.Join(ParamCheckNames(), ", "))
		}
	}
	var chain Chain
	for _, p := range prose {
		if slices.Contains(names, p.name) || slices.Contains(names, "all") {
			chain = append(chain, p.linter)
		}
	}
	return chain, nil
}

// eachParameter makes a linter of a check of one field.
func eachParameter(field string, check func(operators.Parameter) []string) Linter {
	return func(s *Subject) (found Findings) {
		for i, p := range s.Params.Parameters {
			for _, problem := range check(p) {
				found.Warnings = append(found.Warnings, s.parameterFinding(i, field, "parameter %q %s", p.Name, problem))
			}
		}
		return found
	}
}

func groupProse(s *Subject) (found Findings) {
	for i, g := range s.Params.Groups {
		at := fmt.Sprintf("groups[%d]", i)
		for _, field := range []struct {
			name     string
			problems []string
		}{{"displayName", displayed(g.DisplayName)}, {"description", described(g.Description)}} {
			for _, problem := range field.problems {
				found.Warnings = append(found.Warnings, s.finding(operators.ParamsFileName, []string{at + "." + field.name, at},
					"parameter group %q %s", g.Name, problem))
			}
		}
	}
	return found
}

func given(what, text string) []string {
	if text == "" {
		return []string{"has no " + what}
	}
	return nil
}

func displayed(text string) []string {
	if text == "" {
		return given("displayName", text)
	}
	var problems []string
	if strings.HasSuffix(text, ":") {
		problems = append(problems, "has a displayName that ends with ':'")
	}
	if !capitalised(text) {
		problems = append(problems, "has a displayName that does not begin with a capital letter")
	}
	return problems
}

func hinted(text string) []string {
	if text != "" && !strings.HasSuffix(text, ".") {
		return []string{"has a hint that does not end with '.'"}
	}
	return given("hint", text)
}

func described(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return given("description", text)
	}
	var problems []string
	if !strings.ContainsRune(".!?)", rune(text[len(text)-1])) {
		problems = append(problems, "has a description that does not end with one of '.!?)'")
	}
	if !capitalised(text) {
		problems = append(problems, "has a description that does not begin with a capital letter")
	}
	return problems
}

// capitalised takes what has no letter case, such as a digit, as right.
func capitalised(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsLower(first)
}
