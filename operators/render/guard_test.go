package render

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

// A function that is called directly is bounded as one that is called by reflection, whatever its type is.
func TestLimit(t *testing.T) {
	long := strings.Repeat("a", MaxValue/2+1)
	all := sprig.TxtFuncMap()
	maps.Copy(all, bounded)
	maps.Copy(all, formats)
	// One of each type that is called directly, and some of others.
	for _, name := range []string{"trim", "toString", "first", "toYaml", "fromYaml", "trunc", "trimPrefix", "join", "get", "indent",
		"required", "replace", "ternary", "quote", "list", "coalesce", "dict", "default", "printf", "keys", "append", "set"} {
		fn := all[name]
		for _, e := range []extent{top, whole} {
			direct, other := limit(fn, e, free), reflected(reflect.ValueOf(fn), e, free)
			if got, want := fmt.Sprintf("%T", direct), fmt.Sprintf("%T", fn); got != want {
				t.Errorf("%s: a function keeps its type %s, but is %s", name, want, got)
				continue
			}
			for reason, sample := range map[string]sample{
				"small":                     {text: "a", any: "b", number: 3},
				"nothing":                   {},
				"together too long":         {text: long, any: long, number: 3},
				"too long as a whole only":  {text: "a", any: map[string]any{"a": []any{long, long}}, number: 3},
				"a list that is too long":   {text: "a", any: make([]any, MaxList+1), number: 3},
				"a type that nothing makes": {text: "a", any: struct{ A string }{long}, number: 3},
				"nested without end":        {text: "a", any: endless(), number: 3},
			} {
				if reason == "nested without end" && e == top {
					continue // nothing would end it
				}
				if diff := cmp.Diff(sample.outcome(other), sample.outcome(direct)); diff != "" {
					t.Errorf("%s of %s (all: %v): %s", name, reason, e, diff)
				}
			}
		}
	}
}

func free(int) {}

func endless() any {
	m := map[string]any{}
	m["a"] = m
	return m
}

// sample are arguments for a function, by type.
type sample struct {
	text   string
	any    any
	number int
}

// outcome is how a call ends: whether it fails, and with which bound.
func (s sample) outcome(fn any) (end string) {
	defer func() {
		if caught := recover(); caught != nil {
			end = fmt.Sprint(caught)
		}
	}()
	f := reflect.ValueOf(fn)
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		in := f.Type().In(i)
		if f.Type().IsVariadic() && i == f.Type().NumIn()-1 {
			in = in.Elem()
		}
		arg := reflect.New(in).Elem()
		switch in.Kind() {
		case reflect.String:
			arg.SetString(s.text)
		case reflect.Int:
			arg.SetInt(int64(s.number))
		case reflect.Interface:
			if s.any != nil {
				arg.Set(reflect.ValueOf(s.any))
			}
		}
		args = append(args, arg)
	}
	results := f.Call(args)
	return fmt.Sprintf("%s of %d", results[0].Type(), results[0].Kind())
}
