package render

import "reflect"

// extent is how much of a value is measured.
type extent bool

const (
	top   extent = false // its top level
	whole extent = true  // all that it holds, to the last leaf
)

// guard bounds what goes into a function and what comes out. Without it a loop that doubles a text would fill the
// memory long before any output is counted.
func guard(fn any) any {
	if t := reflect.TypeOf(fn); t.NumOut() == 0 || !grows(t.Out(0)) {
		return fn
	}
	return limit(fn, top)
}

// sized bounds all that a function is given and all that it returns, to the last leaf.
func sized(fn any) any { return limit(fn, whole) }

// grows tells whether values of a type can be large.
func grows(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

// limit bounds a function. Those of the types that templates use most are called directly: a call by reflection takes
// longer than most of them do themselves.
func limit(fn any, e extent) any {
	switch f := fn.(type) {
	case func(string) string:
		return one(f, e)
	case func(any) string:
		return one(f, e)
	case func(any) any:
		return one(f, e)
	case func(any) (string, error):
		return oneOrError(f, e)
	case func(string) (any, error):
		return oneOrError(f, e)
	case func(int, string) string:
		return two(f, e)
	case func(string, string) string:
		return two(f, e)
	case func(string, any) string:
		return two(f, e)
	case func(map[string]any, string) any:
		return two(f, e)
	case func(int, string) (string, error):
		return twoOrError(f, e)
	case func(string, any) (any, error):
		return twoOrError(f, e)
	case func(string, string, string) string:
		return three(f, e)
	case func(any, any, bool) any:
		return three(f, e)
	case func(...any) string:
		return many(f, e)
	case func(...any) any:
		return many(f, e)
	case func(...any) []any:
		return many(f, e)
	case func(...any) map[string]any:
		return many(f, e)
	case func(any, ...any) any:
		return oneAndMany(f, e)
	case func(string, ...any) string:
		return oneAndMany(f, e)
	}
	return reflected(reflect.ValueOf(fn), e)
}

func one[A, R any](f func(A) R, e extent) func(A) R {
	return func(a A) R {
		add(0, a, e)
		return checked(f(a), e)
	}
}

func oneOrError[A, R any](f func(A) (R, error), e extent) func(A) (R, error) {
	return func(a A) (R, error) {
		add(0, a, e)
		result, err := f(a)
		return checked(result, e), err
	}
}

func two[A, B, R any](f func(A, B) R, e extent) func(A, B) R {
	return func(a A, b B) R {
		add(add(0, a, e), b, e)
		return checked(f(a, b), e)
	}
}

func twoOrError[A, B, R any](f func(A, B) (R, error), e extent) func(A, B) (R, error) {
	return func(a A, b B) (R, error) {
		add(add(0, a, e), b, e)
		result, err := f(a, b)
		return checked(result, e), err
	}
}

func three[A, B, C, R any](f func(A, B, C) R, e extent) func(A, B, C) R {
	return func(a A, b B, c C) R {
		add(add(add(0, a, e), b, e), c, e)
		return checked(f(a, b, c), e)
	}
}

func many[A, R any](f func(...A) R, e extent) func(...A) R {
	return func(list ...A) R {
		add(0, list, e)
		return checked(f(list...), e)
	}
}

func oneAndMany[A, B, R any](f func(A, ...B) R, e extent) func(A, ...B) R {
	return func(a A, list ...B) R {
		add(add(0, a, e), list, e)
		return checked(f(a, list...), e)
	}
}

// reflected is limit for functions of any type.
func reflected(f reflect.Value, e extent) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		total := 0
		for _, arg := range args {
			total = add(total, arg.Interface(), e)
		}
		results := call(args)
		checked(results[0].Interface(), e)
		return results
	}).Interface()
}

// add measures one more argument.
func add[T any](total int, arg T, e extent) int {
	total += measure(arg, e)
	check(total)
	return total
}

func checked[T any](result T, e extent) T {
	check(measure(result, e))
	return result
}

func measure[T any](value T, e extent) int {
	if e == whole {
		return size(value, 0)
	}
	if text, ok := any(value).(string); ok {
		return len(text)
	}
	return weight(reflect.ValueOf(value))
}

// check panics beyond the bound on values; text/template makes an error of it.
func check(bytes int) {
	if bytes > MaxValue {
		panic(bound("a value grows beyond %d bytes", MaxValue))
	}
}

// weight is about the size in bytes of a value's top level.
func weight(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Map:
		return 16 * v.Len()
	case reflect.Slice:
		total := MaxValue / MaxList * v.Len()
		if v.Len() <= MaxList {
			for i := range v.Len() {
				item := v.Index(i)
				if item.Kind() == reflect.Interface {
					item = item.Elem()
				}
				if item.Kind() == reflect.String {
					total += item.Len()
				}
			}
		}
		return total
	}
	return 0
}
