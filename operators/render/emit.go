package render

import (
	"fmt"
	"reflect"
	"strings"
	"text/template"
)

// markFunctions are the functions of the marker. quiet reports whether a bare include is being rendered, which gets no
// marks.
func markFunctions(quiet func() bool) template.FuncMap {
	funcs := template.FuncMap{
		unmarkFunction: func(text any) (any, error) {
			if t, ok := text.(string); ok {
				return unmarked(t)
			}
			return text, nil
		},
		emitFunction: func(origin int, value any) (string, error) {
			text, err := printed(value)
			if err != nil || quiet() || strings.ContainsAny(text, markRunes) {
				return text, err // no rendering in which a value prints marks of its own passes
			}
			return marked(origin, text, ""), nil
		},
	}
	for name := range writers {
		funcs[writerPrefix+name] = markedWriter(name, quiet)
	}
	for name, trim := range trimmers {
		if name == "trim" {
			funcs[trimmerPrefix+name] = func(text string) (string, error) { return trim("", text) }
		} else {
			funcs[trimmerPrefix+name] = trim
		}
	}
	return funcs
}

// printed is a value as text/template prints it.
func printed(value any) (string, error) {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return "", nil
	case v.Kind() == reflect.Func, v.Kind() == reflect.Chan:
		return "", fmt.Errorf("can't print %s", v.Type())
	}
	return fmt.Sprint(value), nil
}
