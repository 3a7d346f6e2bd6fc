package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"kudo.dev/kudo/operators/params"
)

// MaxWork is how much work one rendering may do, in units of about the time that a function takes for a byte: all of it
// takes a second or two, at worst some seconds. It counts what functions are given and what they return, the nodes of the
// template that are executed, and more for functions whose time grows faster than their values. Time itself would not
// do: the same template must fail on no machine, or on all.
const MaxWork = 256 << 20

const (
	nodeWork   = 32   // of a node of a template
	callWork   = 64   // of a call of a function
	renderWork = 4096 // of a rendering with a Budget, besides what it does
	valueWork  = 4    // of a byte of the values, which each rendering goes through several times
	parseWork  = 16   // of a byte of YAML
	// maxRegex is the size of a regular expression in bytes.
	maxRegex = 4096
)

// MaxBudget is how much work renderings of one Budget may do together, unless the Budget has another limit.
const MaxBudget = 8 * MaxWork

// Budget counts the work of several renderings, such as those of one reconcile: a plan may use thousands of templates, or one
// thousands of times. The work of parsing what they render to counts, too. Renderings may share it at the same time. The zero value
// is a whole budget.
type Budget struct {
	limit int64 // 0 is MaxBudget
	spent atomic.Int64
}

// NewBudget returns a budget with a limit of its own.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Spend adds work that is done for renderings. The error is an *Error of the kind BudgetError.
func (b *Budget) Spend(units int) error {
	if b == nil {
		return nil
	}
	if limit := cmp.Or(b.limit, MaxBudget); b.spent.Add(int64(units)) > limit {
		return &Error{Kind: BudgetError, Reason: fmt.Sprintf("it and the templates that were rendered with it take too much work: their loops "+
			"and functions go through more than %d MiB", limit>>20)}
	}
	return nil
}

// begin spends what a rendering costs before it does anything.
func (b *Budget) begin(name string, v Variables) error {
	if b == nil {
		return nil
	}
	return of(name, b.Spend(renderWork+valueWork*sizeOfTexts(v.Params)))
}

// parse spends what it takes to parse a text.
func (b *Budget) parse(name, text string) error { return of(name, b.Spend(parseWork*len(text))) }

// of names the template of an error of Spend.
func of(name string, err error) error {
	var beyond *Error
	if errors.As(err, &beyond) {
		beyond.Template = name
	}
	return err
}

// sizeOfTexts is the size of all texts of a value, with something for each item.
func sizeOfTexts(value any) int {
	const item = 16
	switch v := value.(type) {
	case string:
		return item + len(v)
	case []any:
		total := item
		for _, part := range v {
			total += sizeOfTexts(part)
		}
		return total
	case map[string]any:
		total := item
		for key, part := range v {
			total += len(key) + sizeOfTexts(part)
		}
		return total
	}
	return item
}

// settleEvery is how much work a rendering does before it adds that to its budget. Renderings at the same time would wait for
// one another's processor at each node of a template.
const settleEvery = 1 << 20

// charge adds to the work of a rendering, and panics beyond the bound.
type charge func(units int)

// dear makes a function that charges for more than what it is given and returns.
type dear func(c charge) any

// spend adds to the work of a rendering.
func (r *run) spend(units int) error {
	if r.work += units; r.work > MaxWork {
		return bound("it takes too much work: its loops and functions go through more than %d MiB", MaxWork>>20)
	}
	if r.owed += units; r.owed < settleEvery {
		return nil
	}
	return r.settle()
}

// settle adds the work that the budget does not know yet.
func (r *run) settle() error {
	owed := r.owed
	r.owed = 0
	return r.budget.Spend(owed)
}

// charge is spend for functions, whose panics text/template makes errors of.
func (e *executor) charge(units int) {
	if err := e.run.spend(units + callWork); err != nil {
		panic(err)
	}
}

// dearFunctions are those of sprig whose time grows faster than their values: comparisons of each item with each other,
// and regular expressions, whose patterns come from templates, too.
func dearFunctions() template.FuncMap {
	of := sprig.TxtFuncMap()
	funcs := template.FuncMap{}
	for _, name := range []string{"uniq", "mustUniq", "without", "mustWithout", "has", "mustHas", "deepEqual"} {
		funcs[name] = comparing(of[name])
	}
	maps.Copy(funcs, regexFunctions())
	return funcs
}

// comparing charges for a comparison of all items of each list with all others.
func comparing(fn any) dear {
	return func(c charge) any {
		f := reflect.ValueOf(fn)
		call := f.Call
		if f.Type().IsVariadic() {
			call = f.CallSlice
		}
		return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
			bytes, items := 0, 1
			for _, arg := range args {
				value := arg.Interface()
				bytes += size(value, 0)
				if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
					items = max(items, list.Len())
				}
			}
			check(bytes)
			c(bytes)
			if f.Type().Out(0).Kind() != reflect.Bool { // has and deepEqual go through them once
				c(product64(bytes, items))
			}
			return call(args)
		}).Interface()
	}
}

// product64 is a times b, or more than the bound on work.
func product64(a, b int) int {
	if a > 0 && b > MaxWork/a {
		return MaxWork + 1
	}
	return a * b
}

// expression is a regular expression that charges for its use.
type expression struct {
	*regexp.Regexp
	size   int // instructions
	charge charge
}

func newExpression(text string, c charge) (*expression, error) {
	if len(text) > maxRegex {
		return nil, bound("a regular expression has %d bytes, more than the %d allowed", len(text), maxRegex)
	}
	size, err := params.CountInstructions(text)
	if err != nil {
		return nil, err
	}
	c(64 * size) // to compile it
	compiled, err := regexp.Compile(text)
	return &expression{Regexp: compiled, size: size, charge: c}, err
}

// search charges for one search in a text.
func (e *expression) search(text string) { e.charge(product64(e.size, len(text))) }

// findAll returns the places of the first most matches, or of all if most is negative. Each of them may have been found
// after a look at all of the text, so they are searched for some at a time, and paid before; that such a look is rare is
// what the division is for.
func (e *expression) findAll(text string, most int) [][]int {
	for try := 8; ; try *= 8 {
		e.charge(product64(product64(e.size, len(text)), 1+try/8))
		if most >= 0 && try >= most {
			return e.FindAllStringIndex(text, most)
		}
		if found := e.FindAllStringIndex(text, try); len(found) < try {
			return found
		}
	}
}

// regexFunctions are sprig's functions with regular expressions.
func regexFunctions() template.FuncMap {
	match := func(e *expression, text string, _ int) bool { e.search(text); return e.MatchString(text) }
	find := func(e *expression, text string, _ int) string { e.search(text); return e.FindString(text) }
	split := func(e *expression, text string, most int) []string { e.findAll(text, most); return e.Split(text, most) }
	return template.FuncMap{
		"regexMatch": dear(func(c charge) any {
			return func(regex, text string) bool {
				matches, err := use(c, match, regex, text, 0)
				var beyond *Error
				if errors.As(err, &beyond) {
					panic(err)
				}
				return matches // a wrong expression matches nothing, as in sprig
			}
		}),
		"mustRegexMatch":   regexOf(match),
		"regexFind":        regexOf(find),
		"mustRegexFind":    regexOf(find),
		"regexFindAll":     regexSome((*expression).texts),
		"mustRegexFindAll": regexSome((*expression).texts),
		"regexSplit":       regexSome(split),
		"mustRegexSplit":   regexSome(split),

		"regexReplaceAll":            regexReplace((*regexp.Regexp).ReplaceAllString),
		"mustRegexReplaceAll":        regexReplace((*regexp.Regexp).ReplaceAllString),
		"regexReplaceAllLiteral":     regexReplace((*regexp.Regexp).ReplaceAllLiteralString),
		"mustRegexReplaceAllLiteral": regexReplace((*regexp.Regexp).ReplaceAllLiteralString),
	}
}

// use compiles an expression and does something with it and a text.
func use[T any](c charge, do func(*expression, string, int) T, regex, text string, most int) (result T, err error) {
	e, err := newExpression(regex, c)
	if err != nil {
		return result, err
	}
	return do(e, text, most), nil
}

func regexOf[T any](do func(*expression, string, int) T) dear {
	return func(c charge) any {
		return func(regex, text string) (T, error) { return use(c, do, regex, text, 0) }
	}
}

func regexSome[T any](do func(*expression, string, int) T) dear {
	return func(c charge) any {
		return func(regex, text string, most int) (T, error) { return use(c, do, regex, text, most) }
	}
}

func regexReplace(replace func(*regexp.Regexp, string, string) string) dear {
	return func(c charge) any {
		return func(regex, text, with string) (string, error) {
			return use(c, func(e *expression, text string, _ int) string {
				// $1 may stand for all that was found, but all that is found together is at most the text.
				product(len(e.findAll(text, -1)), len(with))
				product(strings.Count(with, "$")+1, len(text))
				return replace(e.Regexp, text, with)
			}, regex, text, 0)
		}
	}
}

// texts are the first most matches, or all.
func (e *expression) texts(text string, most int) []string {
	var found []string
	for _, place := range e.findAll(text, most) {
		found = append(found, text[place[0]:place[1]])
	}
	return found
}
