package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/goutils"
)

// bounded are functions whose result can be many times as large as what they are given: they do as their namesakes in
// sprig 2.22 and text/template do, but compute first how much that would be.
var bounded = template.FuncMap{
	"repeat": func(count int, text string) (string, error) {
		if count < 0 {
			return "", fmt.Errorf("repeat accepts no negative count (%d)", count)
		}
		product(count, len(text))
		return strings.Repeat(text, count), nil
	},
	"indent":  indent,
	"nindent": func(spaces int, text string) (string, error) { s, err := indent(spaces, text); return "\n" + s, err },
	"replace": func(old, with, text string) string {
		product(strings.Count(text, old), len(with))
		return strings.ReplaceAll(text, old, with)
	},
	"until":     until,
	"untilStep": untilStep,
	"seq":       seq,
	"split": func(sep, text string) map[string]string {
		parts := splitList(sep, text)
		result := make(map[string]string, len(parts))
		for i, part := range parts {
			result["_"+strconv.Itoa(i)] = part
		}
		return result
	},
	"splitList": splitList,
	"wrap": func(width int, text string) string {
		return goutils.Wrap(text, width)
	},
	"wrapWith": func(width int, sep, text string) string {
		product(len(text)/max(1, width)+1, len(sep))
		return goutils.WrapCustom(text, width, sep, true)
	},
	"printf":   printf,
	"print":    func(args ...any) string { return fmt.Sprint(args...) },
	"println":  func(args ...any) string { return fmt.Sprintln(args...) },
	"html":     func(args ...any) string { return template.HTMLEscaper(args...) },
	"js":       func(args ...any) string { return template.JSEscaper(args...) },
	"urlquery": func(args ...any) string { return template.URLQueryEscaper(args...) },
}

// product panics if a times b is beyond the bound on values.
func product(a, b int) {
	if a > 0 && b > MaxValue/a {
		check(MaxValue + 1)
	}
}

func indent(spaces int, text string) (string, error) {
	if spaces < 0 {
		return "", fmt.Errorf("indent accepts no negative number of spaces (%d)", spaces)
	}
	product(strings.Count(text, "\n")+1, spaces)
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
}

func until(count int) ([]int, error) {
	if count < 0 {
		return untilStep(0, count, -1)
	}
	return untilStep(0, count, 1)
}

// untilStep counts from start to before stop.
func untilStep(start, stop, step int) ([]int, error) {
	list := []int{}
	if step == 0 || (step > 0) != (stop > start) {
		return list, nil
	}
	for i := start; (step > 0 && i < stop) || (step < 0 && i > stop); i += step {
		if len(list) == MaxList {
			return nil, bound("a list of numbers from %d to %d by %d would have more than %d entries", start, stop, step, MaxList)
		}
		list = append(list, i)
		if (step > 0 && i > i+step) || (step < 0 && i < i+step) {
			break // the next would overflow
		}
	}
	return list, nil
}

// seq counts like the command of this name: last, or first and last, or first, step and last.
func seq(params ...int) (string, error) {
	first, step, last := 1, 1, 0
	switch len(params) {
	case 1:
		last = params[0]
	case 2:
		first, last = params[0], params[1]
	case 3:
		first, step, last = params[0], params[1], params[2]
	default:
		return "", nil
	}
	end := last + 1
	if last < first {
		if len(params) < 3 {
			step = -1
		} else if step > 0 {
			return "", nil
		}
		end = last - 1
	}
	list, err := untilStep(first, end, step)
	if err != nil {
		return "", err
	}
	words := make([]string, len(list))
	for i, n := range list {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " "), nil
}

func splitList(sep, text string) []string {
	if parts := strings.Count(text, sep) + 1; parts > MaxList {
		panic(bound("a text would be split into %d parts, more than %d", parts, MaxList))
	}
	return strings.Split(text, sep)
}

var width = regexp.MustCompile(`[0-9]+|\*`)

// printf refuses a format whose widths or repetitions make much of little.
func printf(format string, args ...any) string {
	longest := 0
	for _, arg := range args {
		longest = max(longest, size(arg, 0))
	}
	product(strings.Count(format, "%"), longest)
	total := len(format)
	for _, number := range width.FindAllString(format, -1) {
		n, err := strconv.Atoi(number)
		if err != nil {
			// A star, or beyond what fmt takes: the largest width that fmt takes if any argument is that large.
			n = min(largest(args), 1_000_000)
		}
		total += min(n, 1_000_000)
	}
	check(total)
	return fmt.Sprintf(format, args...)
}

// largest is the greatest width that an argument of printf could ask for.
func largest(args []any) int {
	most := 0
	for _, arg := range args {
		switch n := arg.(type) {
		case int:
			most = max(most, n, -n)
		case int64:
			most = max(most, int(n), int(-n))
		}
	}
	return most
}
