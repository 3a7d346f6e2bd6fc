package render

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestToInt64 checks the whole number that each type becomes, as in sprig 2.22.
func TestToInt64(t *testing.T) {
	five := 5
	for _, tc := range []struct {
		reason string
		value  any
		want   int64
	}{
		{"text in base 10", "42", 42}, {"a sign", "-42", -42}, {"a plus sign", "+42", 42}, {"zeros in front are no octal", "010", 10},
		{"a hexadecimal number is none", "0x10", 0}, {"an underscore is no digit", "1_0", 0}, {"a fraction is none", "1.5", 0},
		{"a word is none", "abc", 0},
		{"nothing", "", 0}, {"white space is no digit", " 1", 0}, {"the largest int64", "9223372036854775807", math.MaxInt64},
		{"text beyond int64", "9223372036854775808", 0}, {"an int", 7, 7}, {"an int8", int8(-7), -7}, {"a uint8", uint8(255), 255},
		{"a uint32", uint32(7), 7},
		{"the largest uint64 is bounded", uint64(math.MaxUint64), math.MaxInt64}, {"a float is cut", 1.9, 1},
		{"a negative float is cut", -1.9, -1},
		{"a float32", float32(2.5), 2}, {"true", true, 1}, {"false", false, 0}, {"nil", nil, 0}, {"a list", []any{1}, 0},
		{"a map", map[string]any{}, 0},
		{"a pointer is followed", &five, 5}, {"a number of JSON", json.Number("12"), 12}, {"a fraction of JSON", json.Number("1.5"), 0},
		{"a number of JSON beyond int64", json.Number("18446744073709551615"), 0},
	} {
		if got := toInt64(tc.value); got != tc.want {
			t.Errorf("%s: %#v is %d, want %d", tc.reason, tc.value, got, tc.want)
		}
	}
}

// TestToFloat64 checks the number that each type becomes.
func TestToFloat64(t *testing.T) {
	half := 0.5
	for _, tc := range []struct {
		reason string
		value  any
		want   float64
	}{
		{"text", "1.5", 1.5}, {"text with an exponent", "1e3", 1000}, {"a negative text", "-0.25", -0.25}, {"a word is none", "abc", 0},
		{"nothing", "", 0},
		{"text beyond float64", "1e999", 0}, {"an int", 7, 7}, {"an int32", int32(-7), -7}, {"a uint16", uint16(7), 7},
		{"a uint64", uint64(1 << 63), 1 << 63},
		{"a float", 1.25, 1.25}, {"a float32", float32(0.5), 0.5}, {"true", true, 1}, {"false", false, 0}, {"nil", nil, 0},
		{"a list", []any{}, 0},
		{"a pointer is followed", &half, 0.5}, {"a number of JSON", json.Number("1.75"), 1.75},
	} {
		if got := toFloat64(tc.value); got != tc.want {
			t.Errorf("%s: %#v is %v, want %v", tc.reason, tc.value, got, tc.want)
		}
	}
}

// rendered is what a template renders to, or its error.
func rendered(text string) string {
	got, err := New(map[string]string{"t.yaml": text}).Text("t.yaml", vars())
	if err != nil {
		return "error: " + err.Error()
	}
	return got
}

// checkRendered renders templates of one action. What begins with ! is the reason why the function of the action fails.
func checkRendered(t *testing.T, cases map[string]string) {
	t.Helper()
	for text, want := range cases {
		if reason, fails := strings.CutPrefix(want, "!"); fails {
			call := strings.TrimSuffix(strings.TrimPrefix(text, "{{ "), " }}")
			function, _, _ := strings.Cut(call, " ")
			want = fmt.Sprintf("error: template t.yaml:1:4: at <%s>: error calling %s: %s (in %q)", call, function, reason, text)
		}
		if got := rendered(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestArithmetic checks functions of numbers at their edges, in templates.
func TestArithmetic(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ add }}`: "0", `{{ add "a" 1 }}`: "1", `{{ add 9223372036854775807 1 }}`: "-9223372036854775808", `{{ add1 "x" }}`: "1",
		`{{ sub 1 "3" }}`: "-2",
		`{{ mul 3 }}`:     "3", `{{ mul 2 "x" }}`: "0", `{{ mul 2 3 4 }}`: "24", `{{ div 7 2 }}`: "3", `{{ div -7 2 }}`: "-3",
		`{{ div 7 1.9 }}`: "7", `{{ mod 7 3 }}`: "1",
		`{{ mod -7 3 }}`: "-1", `{{ max 1 }}`: "1", `{{ max -5 "-3" -9 }}`: "-3", `{{ min -5 "-3" -9 }}`: "-9", `{{ max 1.9 1.2 }}`: "1",
		`{{ biggest 3 9 5 }}`: "9",
		`{{ ceil 1.1 }}`:      "2", `{{ ceil -1.1 }}`: "-1", `{{ ceil "1.1" }}`: "2", `{{ floor 1.9 }}`: "1", `{{ floor -1.1 }}`: "-2",
		`{{ floor "x" }}`:     "0",
		`{{ float64 "1.5" }}`: "1.5", `{{ int64 "12" }}`: "12", `{{ int "9999999999" }}`: "9999999999", `{{ round 1.25 1 }}`: "1.3",
		`{{ printf "%T" (int "1") }}`: "int",
		`{{ printf "%T" (add 1) }}`:   "int64",
		`{{ div 1 0 }}`:               `!division by zero (0 is 0 as a whole number)`,
		`{{ mod 1 0.5 }}`:             `!division by zero (0.5 is 0 as a whole number)`,
		`{{ div 1 "x" }}`:             `!division by zero (x is 0 as a whole number)`,
	})
}
