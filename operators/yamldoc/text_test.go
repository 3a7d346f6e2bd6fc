package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// root is the first document of a text.
func root(t testing.TB, text string) *yaml.Node {
	t.Helper()
	node, err := First([]byte(text))
	if err != nil || node == nil {
		t.Fatalf("%q: %v, %v", text, node, err)
	}
	return node
}

// second is the value of the second key of a map.
func second(t testing.TB, text string) *yaml.Node {
	t.Helper()
	return root(t, text).Content[3]
}

// TestTextOfNumbers checks which notations of numbers stay as they are written, and what becomes of all others.
func TestTextOfNumbers(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Zero":          {"a decimal stays", "0", "0"},
		"Negative":      {"a decimal stays", "-5", "-5"},
		"NegativeZero":  {"a decimal stays", "-0", "-0"},
		"ZeroFraction":  {"zeros behind the dot stay", "1.00", "1.00"},
		"LongFraction":  {"digits beyond float64 stay", "0.12345678901234567890", "0.12345678901234567890"},
		"Plus":          {"a plus sign goes", "+5", "5"},
		"PlusHuge":      {"a plus sign goes, digits stay", "+123456789012345678901234567890", "123456789012345678901234567890"},
		"LeadingZero":   {"zeros in front are an octal", "007", "7"},
		"LeadingZeros":  {"zeros in front of a fraction are no part of the number", "00.5", "0.5"},
		"DotEnd":        {"a dot at the end goes", "5.", "5"},
		"UnderFraction": {"underscores go", "1_000.50", "1000.5"},
		"ExpNegative":   {"small exponents are written out", "1e-3", "0.001"},
		"ExpBoundary":   {"below 1e21 the digits are written out", "1e20", "100000000000000000000"},
		"ExpLarge":      {"from 1e21 on the exponent stays", "1e21", "1e+21"},
		"ExpSmall":      {"1e-7 is written out", "1e-7", "0.0000001"},
		"ExpSmaller":    {"below 1e-7 the exponent stays", "1e-8", "1e-08"},
		"ZeroExp":       {"zero with a sign and an exponent is zero", "-0e0", "0"},
		"Inf":           {"infinity has one spelling", ".INF", ".inf"},
		"NegativeInf":   {"infinity has one spelling", "-.Inf", "-.inf"},
		"NaN":           {"not a number has one spelling", ".NAN", ".nan"},
		"Tagged":        {"a tag makes a number of text", "!!int '0x1F'", "31"},
		"TaggedText":    {"a tag makes text of a number", "!!str 0x1F", "0x1F"},
	} {
		t.Run(name, func(t *testing.T) {
			got, null, err := Text(root(t, tc.text))
			if err != nil || null || got != tc.want {
				t.Errorf("%s: got %q, null %v, %v, want %q", tc.reason, got, null, err, tc.want)
			}
		})
	}
}

// TestTextOfNothing checks that Text reports whether a value is null or the empty text.
func TestTextOfNothing(t *testing.T) {
	for text, want := range map[string]bool{"a: 1\nb: ~": true, "a: 1\nb:": true, "a: 1\nb: null": true, "a: 1\nb: ''": false,
		"a: 1\nb: !!null": true} {
		got, null, err := Text(second(t, text))
		if got != "" || null != want || err != nil {
			t.Errorf("%q: got %q, null %v, %v, want null %v", text, got, null, err, want)
		}
	}
}

// TestTextOfAliases checks that an alias has the text of what it refers to.
func TestTextOfAliases(t *testing.T) {
	for text, want := range map[string]string{
		"a: &x 1.10\nb: *x":         "1.10",
		"a: &x [1, 2]\nb: *x":       "- 1\n- 2\n",
		"a: &x {c: 010}\nb: *x":     "c: 8\n",
		"a: &x 'yes'\nb: [*x]":      "- \"yes\"\n",
		"a: &x {d: 1}\nb: {<<: *x}": "d: 1\n",
	} {
		got, null, err := Text(second(t, text))
		if got != want || null || err != nil {
			t.Errorf("%q: got %q, null %v, %v, want %q", text, got, null, err, want)
		}
	}
}

// TestTextRefuses checks that errors of values are passed on, with their line.
func TestTextRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: !!int x":              `line 2: "x" is no value of type !!int`,
		"a: 1\nb:\n- {[c]: d}":          "line 3: a key must be a single value, not a map or list",
		"a: 1\nb:\n  c: {<<: d}":        "line 3: << needs a map or a list of maps",
		"a: 1\nb: !!binary '?'":         "line 2: !!binary value is not base64: illegal base64 data at input byte 0",
		"a: 1\nb: [" + self + "]":       "line 2: nested deeper than 200 levels once aliases are expanded",
		"a: 1\nb:\n- x\n- {~: y, z: w}": "line 4: a key must not be empty or null",
	} {
		if _, _, err := Text(second(t, text)); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

const self = "&s [*s]"

// TestLiteral checks that a scalar keeps the text that is written, whatever its type is.
func TestLiteral(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
		scalar             bool
	}{
		"Version":  {"digits stay", "a: 1\nb: 1.10", "1.10", true},
		"Hex":      {"the notation stays", "a: 1\nb: 0x1F", "0x1F", true},
		"Bool":     {"the spelling stays", "a: 1\nb: Yes", "Yes", true},
		"Null":     {"a null is empty", "a: 1\nb: ~", "", true},
		"NullText": {"the word in quotes stays", "a: 1\nb: 'null'", "null", true},
		"Alias":    {"an alias has the text of its anchor", "a: &x 0777\nb: *x", "0777", true},
		"Block":    {"a block has its lines", "a: 1\nb: |\n  x\n", "x\n", true},
		"Map":      {"a map is no scalar", "a: 1\nb: {}", "", false},
		"List":     {"a list is no scalar", "a: 1\nb: [x]", "", false},
		"Wrong":    {"a tag that does not fit does not matter", "a: 1\nb: !!int x", "x", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, scalar := Literal(second(t, tc.text)); got != tc.want || scalar != tc.scalar {
				t.Errorf("%s: got %q, %v, want %q, %v", tc.reason, got, scalar, tc.want, tc.scalar)
			}
		})
	}
}

// TestValueText checks the text of each Go type that decoders make.
func TestValueText(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  any
		want   string
	}{
		"Nil":         {"nothing", nil, ""},
		"String":      {"text has no quotes", "yes", "yes"},
		"StringLines": {"text keeps its line breaks", "a\nb\n", "a\nb\n"},
		"Bool":        {"a boolean", false, "false"},
		"Int":         {"an int", -7, "-7"},
		"Int64":       {"the smallest int64", int64(math.MinInt64), "-9223372036854775808"},
		"Uint64":      {"the largest uint64", uint64(math.MaxUint64), "18446744073709551615"},
		"Float":       {"a float without exponent", 1e6, "1000000"},
		"FloatTiny":   {"a float of few digits", 5e-324, "5e-324"},
		"Number":      {"a number of JSON", json.Number("123456789012345678901234567890"), "123456789012345678901234567890"},
		"NumberExp":   {"a number of JSON with an exponent", json.Number("1E3"), "1000"},
		"NumberFloat": {"a number of JSON with a fraction", json.Number("1.50"), "1.5"},
		"List":        {"a list is YAML", []any{int64(1), "on"}, "- 1\n- \"on\"\n"},
		"Map":         {"a map is YAML with sorted keys", map[string]any{"b": nil, "a": true}, "a: true\nb: null\n"},
		"Strings":     {"a list of texts is YAML", []string{"a", "1"}, "- a\n- \"1\"\n"},
		"Struct": {"a struct is written by its JSON tags", struct {
			B int `json:"b"`
			A string
		}{1, "x"}, "A: x\nb: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ValueText(tc.value)
			if err != nil || got != tc.want {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestValueTextRefuses checks that what has no text is an error, and no panic.
func TestValueTextRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"TooLarge": {json.Number("1e999"), `the number "1e999" is too large`},
		"InAList":  {[]any{json.Number("-1e999")}, `the number "-1e999" is too large`},
		"InAMap":   {map[string]any{"a": json.Number("1e999")}, `the number "1e999" is too large`},
		"Channel":  {make(chan int), "writing YAML: json: unsupported type: chan int"},
		"NoNumber": {json.Number("x"), `the number "x" is too large`},
		"Deep":     {deep(MaxDepth + 1), "nested deeper than 200 levels"},
		"DeepMap":  {map[string]any{"a": deep(MaxDepth)}, "nested deeper than 200 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ValueText(tc.value); err == nil || err.Error() != tc.want {
				t.Errorf("got %.40q, error %v, want %s", got, err, tc.want)
			}
		})
	}
	if _, err := ValueText(deep(MaxDepth)); err != nil {
		t.Errorf("the bound itself is allowed: %v", err)
	}
}

// deep is a list in a list in a list, so many levels with the last value.
func deep(levels int) any {
	var value any = "x"
	for range levels - 1 {
		value = []any{value}
	}
	return value
}

// TestValueTextIsLinear checks that the digits of a long number are not converted, which takes very long.
func TestValueTextIsLinear(t *testing.T) {
	digits := strings.Repeat("9", 1<<21)
	begin := time.Now()
	got, err := ValueText([]any{json.Number(digits)})
	if err != nil || got != "- "+digits+"\n" {
		t.Errorf("got %.40q, %v", got, err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("a number of 2 MiB took %v", took)
	}
}

// TestMarshalQuotes checks that text that YAML reads as something else is quoted, and that no other text is.
func TestMarshalQuotes(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a\n", "a b": "a b\n", "1": "\"1\"\n", "1.5": "\"1.5\"\n", "0x1": "\"0x1\"\n", "1_0": "\"1_0\"\n", "yes": "\"yes\"\n",
		"N": "\"N\"\n", "null": "\"null\"\n", "~": "\"~\"\n", "": "\"\"\n", ".inf": "\".inf\"\n", "<<": "\"<<\"\n", "0b+1": "\"0b+1\"\n",
		"a: b": "'a: b'\n", "a #b": "'a #b'\n", "*a": "'*a'\n", "- a": "'- a'\n", "{": "'{'\n",
		"99999999999999999999": "\"99999999999999999999\"\n",
		"a\nb":                 "|-\n  a\n  b\n", "a\nb\n": "|\n  a\n  b\n",
	} {
		if got, err := Marshal(text); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// TestMarshalReads checks the law that what is written reads as the same value, for texts that YAML has a meaning for.
func TestMarshalReads(t *testing.T) {
	texts := []string{"", " ", "\n", "\t", "a\tb", "a\r\nb", "\u0085", "\u2028", "\ufeff", "\x00", "\x7f", "a ", " a", "a:", ":a", "a: b",
		"#a", "a #b", "&a", "*a",
		"!a", "!!int 1", "|", ">", "-", "- a", "---", "...", "--- a", "%a", "@a", "`a", "{a}", "[a", "a, b",
		"'", `"`, `\`, "? a", "?", "<<", "=", "yes", "No", "on",
		"~", "null", "0", "-0", "010", "0x1F", "0o7", "0b1", "0b+1", "-0b1", "1_000", "1e3", ".5", "1.", "+1", ".inf",
		"-.inf", ".nan", "2001-01-01",
		"2001-01-01T00:00:00Z", "1:30", "12345678901234567890123", "a\nb", "a\n\nb\n\n", "\na", "  a\nb", "a\n  b\n", "ü",
		"日本", "\U0001f600", "{{ .x }}"}
	for _, text := range texts {
		for _, value := range []any{text, []any{text}, map[string]any{"k": text}, map[string]any{"k": []any{map[string]any{"l": text, "m": text}}}} {
			written, err := Marshal(value)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			read, duplicates, err := Parse([]byte(written))
			if err != nil || len(duplicates) > 0 {
				t.Errorf("%q is written as %q: %v, %v", text, written, err, duplicates)
			}
			if diff := cmp.Diff(value, read); diff != "" {
				t.Errorf("%q is written as %q: -want +got:\n%s", text, written, diff)
			}
		}
		if text == "" {
			continue
		}
		keyed := map[string]any{text: "v"}
		written, err := Marshal(keyed)
		if err != nil {
			t.Errorf("key %q: %v", text, err)
			continue
		}
		if read, _, err := Parse([]byte(written)); err != nil || !cmp.Equal(any(keyed), read) {
			t.Errorf("key %q is written as %q and read as %v, %v", text, written, read, err)
		}
	}
}

// TestMarshalNumbers checks that numbers are read as the same numbers.
func TestMarshalNumbers(t *testing.T) {
	for _, number := range []any{
		int64(0), int64(-1), int64(math.MaxInt64), json.Number("18446744073709551615"), 1.5, 0.1, -2.5e-9, 1.5e300, math.Inf(1), math.Inf(-1),
	} {
		written, err := Marshal(map[string]any{"n": number})
		if err != nil {
			t.Fatal(err)
		}
		read, _, err := Parse([]byte(written))
		if diff := cmp.Diff(any(map[string]any{"n": number}), read); diff != "" || err != nil {
			t.Errorf("%v is written as %q: %v, -want +got:\n%s", number, written, err, diff)
		}
	}
}

// TestMarshalOrder checks that the same value gives the same bytes, with the keys of all levels sorted.
func TestMarshalOrder(t *testing.T) {
	value := map[string]any{}
	for i := range 50 {
		value[fmt.Sprintf("k%02d", 49-i)] = map[string]any{"b": int64(i), "a": []any{map[string]any{"z": nil, "e": false}}}
	}
	first, err := Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if again, err := Marshal(value); again != first || err != nil {
			t.Fatalf("the bytes differ: %v", err)
		}
	}
	const want = "k00:\n  a:\n  - e: false\n    z: null\n  b: 49\nk01:\n"
	if !strings.HasPrefix(first, want) {
		t.Errorf("got %.60q, want %q", first, want)
	}
}
