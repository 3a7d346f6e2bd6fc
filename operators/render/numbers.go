package render

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"text/template"
)

// numbers are the arithmetic functions as sprig 2.22 has them, the version that KUDO used. Newer ones read text in
// another way: "010" is 8 there and 10 here, "1.5" is 1 there and 0 here.
var numbers = template.FuncMap{
	"int":     func(v any) int { return int(toInt64(v)) },
	"int64":   toInt64,
	"float64": toFloat64,
	"add1":    func(v any) int64 { return toInt64(v) + 1 },
	"add": func(vs ...any) int64 {
		var sum int64
		for _, v := range vs {
			sum += toInt64(v)
		}
		return sum
	},
	"sub": func(a, b any) int64 { return toInt64(a) - toInt64(b) },
	"mul": func(a any, vs ...any) int64 {
		product := toInt64(a)
		for _, v := range vs {
			product *= toInt64(v)
		}
		return product
	},
	"div": func(a, b any) (int64, error) {
		if toInt64(b) == 0 {
			return 0, divisionByZero(b)
		}
		return toInt64(a) / toInt64(b), nil
	},
	"mod": func(a, b any) (int64, error) {
		if toInt64(b) == 0 {
			return 0, divisionByZero(b)
		}
		return toInt64(a) % toInt64(b), nil
	},
	"max":     func(a any, vs ...any) int64 { return extreme(a, vs, func(x, y int64) bool { return x > y }) },
	"biggest": func(a any, vs ...any) int64 { return extreme(a, vs, func(x, y int64) bool { return x > y }) },
	"min":     func(a any, vs ...any) int64 { return extreme(a, vs, func(x, y int64) bool { return x < y }) },
	"ceil":    func(a any) float64 { return math.Ceil(toFloat64(a)) },
	"floor":   func(a any) float64 { return math.Floor(toFloat64(a)) },
}

func divisionByZero(v any) error {
	return fmt.Errorf("division by zero (%v is 0 as a whole number)", v)
}

func extreme(a any, vs []any, better func(x, y int64) bool) int64 {
	best := toInt64(a)
	for _, v := range vs {
		if n := toInt64(v); better(n, best) {
			best = n
		}
	}
	return best
}

// toInt64 makes an integer of anything; what is none is 0.
func toInt64(v any) int64 {
	switch s := v.(type) {
	case string:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return 0
		}
		return n
	case json.Number:
		return toInt64(s.String())
	}
	switch val := reflect.Indirect(reflect.ValueOf(v)); val.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return val.Int()
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64:
		return int64(min(val.Uint(), math.MaxInt64))
	case reflect.Float32, reflect.Float64:
		return int64(val.Float())
	case reflect.Bool:
		if val.Bool() {
			return 1
		}
	}
	return 0
}

// toFloat64 makes a number of anything; what is none is 0.
func toFloat64(v any) float64 {
	switch s := v.(type) {
	case string:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return 0
		}
		return f
	case json.Number:
		return toFloat64(s.String())
	}
	switch val := reflect.Indirect(reflect.ValueOf(v)); val.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return float64(val.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint, reflect.Uint64:
		return float64(val.Uint())
	case reflect.Float32, reflect.Float64:
		return val.Float()
	case reflect.Bool:
		if val.Bool() {
			return 1
		}
	}
	return 0
}
