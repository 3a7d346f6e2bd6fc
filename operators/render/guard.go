package render

import "reflect"

// extent is how much of a value is measured.
type extent bool

const (
	top   extent = false // its top level
	whole extent = true  // all that it holds, to the last leaf
)

// boundArguments wraps a function whose arguments and result are measured whole, as extent whole says.
type boundArguments struct{ fn any }

// guard bounds what goes into a function and what comes out, and charges the rendering for both. Without it a loop that
// doubles a text would fill the memory long before any output is counted.
func guard(fn any, c charge) any {
	switch f := fn.(type) {
	case dear:
		return limit(f(c), top, c)
	case boundArguments:
		return limit(f.fn, whole, c)
	}
	return limit(fn, top, c)
}

// limit bounds a function. Those of the types that templates use most are called directly: a call by reflection takes
// longer than most of them do themselves.
func limit(fn any, e extent, c charge) any {
	if direct := limitOne(fn, e, c); direct != nil {
		return direct
	}
	if direct := limitSeveral(fn, e, c); direct != nil {
		return direct
	}
	if direct := limitVariadic(fn, e, c); direct != nil {
		return direct
	}
	return reflected(reflect.ValueOf(fn), e, c)
}

// limitOne bounds a function of one argument. The result for any other type is nil.
func limitOne(fn any, e extent, c charge) any {
	switch f := fn.(type) {
	case func(string) string:
		return one(f, e, c)
	case func(any) string:
		return one(f, e, c)
	case func(any) any:
		return one(f, e, c)
	case func(any) bool:
		return one(f, e, c)
	case func(any) int:
		return one(f, e, c)
	case func(any) int64:
		return one(f, e, c)
	case func(any) (string, error):
		return oneOrError(f, e, c)
	case func(string) (any, error):
		return oneOrError(f, e, c)
	}
	return nil
}

// limitSeveral bounds a function of two or three arguments. The result for any other type is nil.
func limitSeveral(fn any, e extent, c charge) any {
	switch f := fn.(type) {
	case func(int, string) string:
		return two(f, e, c)
	case func(string, string) string:
		return two(f, e, c)
	case func(string, any) string:
		return two(f, e, c)
	case func(string, string) bool:
		return two(f, e, c)
	case func(map[string]any, string) bool:
		return two(f, e, c)
	case func(map[string]any, string) any:
		return two(f, e, c)
	case func(int, string) (string, error):
		return twoOrError(f, e, c)
	case func(string, any) (any, error):
		return twoOrError(f, e, c)
	case func(string, string, string) string:
		return three(f, e, c)
	case func(any, any, bool) any:
		return three(f, e, c)
	}
	return nil
}

// limitVariadic bounds a function whose last argument is a list. The result for any other type is nil.
func limitVariadic(fn any, e extent, c charge) any {
	switch f := fn.(type) {
	case func(...any) string:
		return many(f, e, c)
	case func(...any) any:
		return many(f, e, c)
	case func(...any) []any:
		return many(f, e, c)
	case func(...any) map[string]any:
		return many(f, e, c)
	case func(any, ...any) any:
		return oneAndMany(f, e, c)
	case func(string, ...any) string:
		return oneAndMany(f, e, c)
	}
	return nil
}

func one[A, R any](f func(A) R, e extent, c charge) func(A) R {
	return func(a A) R {
		c(add(0, a, e))
		return checked(f(a), e, c)
	}
}

func oneOrError[A, R any](f func(A) (R, error), e extent, c charge) func(A) (R, error) {
	return func(a A) (R, error) {
		c(add(0, a, e))
		result, err := f(a)
		return checked(result, e, c), err
	}
}

func two[A, B, R any](f func(A, B) R, e extent, c charge) func(A, B) R {
	return func(a A, b B) R {
		c(add(add(0, a, e), b, e))
		return checked(f(a, b), e, c)
	}
}

func twoOrError[A, B, R any](f func(A, B) (R, error), e extent, c charge) func(A, B) (R, error) {
	return func(a A, b B) (R, error) {
		c(add(add(0, a, e), b, e))
		result, err := f(a, b)
		return checked(result, e, c), err
	}
}

func three[A, B, C, R any](f func(A, B, C) R, e extent, c charge) func(A, B, C) R {
	return func(a A, b B, third C) R {
		c(add(add(add(0, a, e), b, e), third, e))
		return checked(f(a, b, third), e, c)
	}
}

func many[A, R any](f func(...A) R, e extent, c charge) func(...A) R {
	return func(list ...A) R {
		c(add(0, list, e))
		return checked(f(list...), e, c)
	}
}

func oneAndMany[A, B, R any](f func(A, ...B) R, e extent, c charge) func(A, ...B) R {
	return func(a A, list ...B) R {
		c(add(add(0, a, e), list, e))
		return checked(f(a, list...), e, c)
	}
}

// reflected is limit for functions of any type.
func reflected(f reflect.Value, e extent, c charge) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
		total := 0
		for _, arg := range args {
			total = add(total, arg.Interface(), e)
		}
		c(total)
		results := call(args)
		checked(results[0].Interface(), e, c)
		return results
	}).Interface()
}

// add measures one more argument.
func add[T any](total int, arg T, e extent) int {
	total += measure(arg, e)
	check(total)
	return total
}

func checked[T any](result T, e extent, c charge) T {
	size := measure(result, e)
	check(size)
	c(size)
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
