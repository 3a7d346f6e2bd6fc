package yamldoc

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestScalars checks the type and the value of plain scalars, by the rules of YAML 1.1 as go-yaml v2 has them.
func TestScalars(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         any
	}{
		"BoolY":            {"one letter is a boolean", "y", true},
		"BoolN":            {"one letter is a boolean", "N", false},
		"BoolYES":          {"upper case is a boolean", "YES", true},
		"BoolOff":          {"a capital letter in front is a boolean", "Off", false},
		"BoolMixed":        {"any other letter case is text", "yEs", "yEs"},
		"BoolTrueMixed":    {"any other letter case is text", "tRUE", "tRUE"},
		"BoolPrefix":       {"a word that begins like a boolean is text", "yesterday", "yesterday"},
		"BoolOnly":         {"a word that begins like a boolean is text", "only", "only"},
		"NullTilde":        {"a tilde is null", "~", nil},
		"NullUpper":        {"upper case is null", "NULL", nil},
		"NullMixed":        {"any other letter case is text", "nULL", "nULL"},
		"TildePath":        {"a path of a home folder is text", "~/x", "~/x"},
		"Zero":             {"zero", "0", int64(0)},
		"MinusZero":        {"a negative zero of an integer is zero", "-0", int64(0)},
		"Plus":             {"a plus sign is no part of the value", "+12", int64(12)},
		"PlusAlone":        {"a sign alone is text", "+", "+"},
		"MinInt":           {"the smallest int64", "-9223372036854775808", int64(math.MinInt64)},
		"BelowMinInt":      {"an integer below int64 keeps its digits", "-9223372036854775809", json.Number("-9223372036854775809")},
		"AboveMaxInt":      {"an integer above int64 keeps its digits", "9223372036854775808", json.Number("9223372036854775808")},
		"MaxUint":          {"the largest uint64 keeps its digits", "18446744073709551615", json.Number("18446744073709551615")},
		"PlusHuge":         {"the digits of a huge integer have no plus sign", "+18446744073709551616", json.Number("18446744073709551616")},
		"UnderscoreHuge":   {"the digits of a huge integer have no underscores", "18_446744073709551616", json.Number("18446744073709551616")},
		"HexHuge":          {"a hexadecimal number beyond int64 becomes decimal", "0xFFFFFFFFFFFFFFFF", json.Number("18446744073709551615")},
		"HexTooLarge":      {"a hexadecimal number beyond uint64 is text", "0x1FFFFFFFFFFFFFFFF", "0x1FFFFFFFFFFFFFFFF"},
		"HexNegative":      {"a negative hexadecimal number", "-0x10", int64(-16)},
		"HexEmpty":         {"a prefix alone is text", "0x", "0x"},
		"Octal":            {"a zero in front makes an octal number", "010", int64(8)},
		"OctalNew":         {"YAML 1.2 octals", "0o17", int64(15)},
		"OctalWrong":       {"an eight is no octal digit: go-yaml reads a float", "08", 8.0},
		"Binary":           {"binary numbers", "0b101", int64(5)},
		"BinaryNegative":   {"negative binary numbers", "-0b101", int64(-5)},
		"BinarySign":       {"a sign behind the prefix, as go-yaml takes it", "0b+1", int64(1)},
		"BinaryWrong":      {"a two is no binary digit", "0b12", "0b12"},
		"UnderscoreEnd":    {"an underscore at the end does not count", "1_", int64(1)},
		"UnderscoreOnly":   {"an underscore in front makes text", "_1", "_1"},
		"Float":            {"a float", "1.5", 1.5},
		"FloatNegative":    {"a negative float", "-1.5", -1.5},
		"FloatDot":         {"a dot at the end makes a float", "1.", 1.0},
		"FloatLeadingDot":  {"a dot in front makes a float", ".5", 0.5},
		"FloatPlusDot":     {"a sign and a dot", "+.5", 0.5},
		"FloatExponent":    {"an exponent makes a float", "1e3", 1000.0},
		"FloatExponentNeg": {"a negative exponent", "1E-2", 0.01},
		"FloatUnderscore":  {"underscores in floats", "1_0.5", 10.5},
		"FloatHuge":        {"a float beyond float64 is text", "1e999", "1e999"},
		"FloatHex":         {"a hexadecimal float is text", "0x1p4", "0x1p4"},
		"FloatWord":        {"what Go alone takes for infinite is text", "+Inf", "+Inf"},
		"DotAlone":         {"a dot is text", ".", "."},
		"Dots":             {"dots are text", ".5.5", ".5.5"},
		"Hidden":           {"the name of a hidden file is text", ".bashrc", ".bashrc"},
		"Inf":              {"infinity", ".inf", math.Inf(1)},
		"InfUpper":         {"infinity in upper case", ".INF", math.Inf(1)},
		"InfPlus":          {"infinity with a sign", "+.Inf", math.Inf(1)},
		"InfPlusLower":     {"infinity with a sign, in lower case", "+.inf", math.Inf(1)},
		"InfNegative":      {"negative infinity", "-.INF", math.Inf(-1)},
		"InfMixed":         {"any other letter case is text", ".iNF", ".iNF"},
		"NaN":              {"not a number", ".NaN", math.NaN()},
		"NaNMixed":         {"any other letter case is text", ".Nan", ".Nan"},
		"Date":             {"a date is text", "2001-12-14", "2001-12-14"},
		"DateShort":        {"a date of single digits is text", "2001-1-2", "2001-1-2"},
		"DateTime":         {"a time is text", "2001-12-14T21:59:43.10-05:00", "2001-12-14T21:59:43.10-05:00"},
		"DateTimeLower":    {"a time with a small t is text", "2001-12-14t21:59:43Z", "2001-12-14t21:59:43Z"},
		"DateTimeSpace":    {"a time with a space is text", "2001-12-14 21:59:43", "2001-12-14 21:59:43"},
		"DateWrong":        {"what looks like a date is text", "2001-99-99", "2001-99-99"},
		"Sexagesimal":      {"base 60 is text", "190:20:30", "190:20:30"},
		"Version":          {"a version is text", "1.2.3", "1.2.3"},
		"VersionV":         {"a version with a letter is text", "v1.2", "v1.2"},
		"Phone":            {"digits with dashes are text", "555-1234", "555-1234"},
		"Percent":          {"a percentage is text", "50%", "50%"},
		"Quantity":         {"a quantity of Kubernetes is text", "500m", "500m"},
		"Image":            {"an image is text", "nginx:1.25", "nginx:1.25"},
		"Unicode":          {"digits of other scripts are text", "٣", "٣"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse([]byte(tc.text))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQuotedScalars checks that quotes and block styles make text of what would be another type.
func TestQuotedScalars(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Single":       {"single quotes", "'1'", "1"},
		"SingleEscape": {"two single quotes are one", "'it''s'", "it's"},
		"Double":       {"double quotes", `"yes"`, "yes"},
		"DoubleEmpty":  {"the empty text is no null", `""`, ""},
		"DoubleEscape": {"escapes", `"\u0041\n\x42"`, "A\nB"},
		"Literal":      {"a literal block", "|\n  12\n", "12\n"},
		"LiteralStrip": {"a literal block without its line break", "|-\n  true\n", "true"},
		"LiteralKeep":  {"a literal block with all line breaks", "|+\n  a\n\n\n", "a\n\n\n"},
		"Folded":       {"a folded block", ">\n  a\n  b\n\n  c\n", "a b\nc\n"},
		"Plain":        {"a plain text over two lines", "a\n  b", "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse([]byte(tc.text))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(any(tc.want), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTaggedScalars checks that a tag decides the type, and that a value that does not fit is refused.
func TestTaggedScalars(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         any
		err          string
	}{
		"Null":        {"a null with its tag", "!!null ~", nil, ""},
		"NullEmpty":   {"nothing with the tag of null", "!!null", nil, ""},
		"NullWrong":   {"a word is no null", "!!null x", nil, `line 1: "x" is no value of type !!null`},
		"Bool":        {"a boolean with its tag", "!!bool 'yes'", true, ""},
		"BoolWrong":   {"a number is no boolean", "!!bool 1", nil, `line 1: "1" is no value of type !!bool`},
		"Int":         {"quotes do not matter behind the tag of integers", "!!int '0x10'", int64(16), ""},
		"IntHuge":     {"a huge integer keeps its digits", "!!int 99999999999999999999", json.Number("99999999999999999999"), ""},
		"IntFraction": {"a fraction is no integer", "!!int 1.5", nil, `line 1: "1.5" is no value of type !!int`},
		"Float":       {"a fraction", "!!float 1.5", 1.5, ""},
		"FloatWhole":  {"a whole number becomes a float", "!!float 2", 2.0, ""},
		"FloatWrong":  {"a word is no float", "a: 1\nb: !!float x", nil, `line 2: "x" is no value of type !!float`},
		"Str":         {"a number becomes text", "!!str 1.0", "1.0", ""},
		"StrEmpty":    {"nothing becomes the empty text", "!!str", "", ""},
		"BinaryLines": {"white space in base64 does not count", "!!binary |\n  aG\n  k=\n", "hi", ""},
		"BinaryWrong": {"text that is not base64", "!!binary '*'", nil,
			"line 1: !!binary value is not base64: illegal base64 data at input byte 0"},
		"Timestamp": {"a timestamp stays text", "!!timestamp 2001-12-14", "2001-12-14", ""},
		"Custom":    {"an unknown tag leaves the text as it is", "!mine 12", "12", ""},
		"LongWrong": {"a long value is cut in the message", "!!int " + strings.Repeat("x", 100), nil,
			`line 1: "` + strings.Repeat("x", 64)},
		"WrongInAMap":   {"the line is that of the value", "a:\n  b:\n  - !!int x", nil, "line 3: "},
		"WrongInMerged": {"a merged map is checked as well", "a: &a {b: !!int x}\nc: {<<: *a}", nil, "line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse([]byte(tc.text))
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %s", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
