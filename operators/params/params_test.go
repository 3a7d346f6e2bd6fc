package params

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/yamldoc"
)

func ptr[T any](v T) *T { return &v }

func TestResolve(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		def    v1beta1.Parameter
		given  map[string]string
		want   any
		err    string
	}{
		"Default":      {reason: "the default", def: v1beta1.Parameter{Default: ptr("2")}, want: "2"},
		"Given":        {reason: "what is given wins", def: v1beta1.Parameter{Default: ptr("2")}, given: map[string]string{"P": "3"}, want: "3"},
		"GivenEmpty":   {reason: "given as empty is empty, not the default", def: v1beta1.Parameter{Default: ptr("2")}, given: map[string]string{"P": ""}, want: ""},
		"None":         {reason: "a scalar without value is the empty text", want: ""},
		"IntegerText":  {reason: "scalars reach templates as text", def: v1beta1.Parameter{Type: v1beta1.IntegerType, Default: ptr("1")}, want: "1"},
		"BooleanText":  {reason: "scalars reach templates as text", def: v1beta1.Parameter{Type: v1beta1.BooleanType, Default: ptr("true")}, want: "true"},
		"NoArray":      {reason: "rule 7: an array without default is null", def: v1beta1.Parameter{Type: v1beta1.ArrayType}, want: nil},
		"NoMap":        {reason: "rule 7: a map without default is null", def: v1beta1.Parameter{Type: v1beta1.MapType, Required: ptr(true)}, want: nil},
		"EmptyArray":   {reason: "the empty text is null", def: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: ptr(" \n")}, want: nil},
		"Array":        {reason: "integers in arrays are exact", def: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: ptr("- 80\n- 12345678\n- 1.5\n- x")}, want: []any{int64(80), int64(12345678), 1.5, "x"}},
		"Map":          {reason: "maps of maps", def: v1beta1.Parameter{Type: v1beta1.MapType, Default: ptr("a: {b: [1]}")}, want: map[string]any{"a": map[string]any{"b": []any{int64(1)}}}},
		"UnknownType":  {reason: "a type that is not known counts as string", def: v1beta1.Parameter{Type: "list", Default: ptr("[1]")}, want: "[1]"},
		"MapForArray":  {reason: "another type is refused", def: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: ptr("a: 1")}, err: `"P" has the value "a: 1", which is YAML of another type, but its type is array: use a YAML list`},
		"TextForMap":   {reason: "another type is refused", def: v1beta1.Parameter{Type: v1beta1.MapType, Default: ptr("x")}, err: "use a YAML map"},
		"BrokenArray":  {reason: "malformed YAML is refused", def: v1beta1.Parameter{Type: v1beta1.ArrayType, Default: ptr("[1")}, err: "which is not YAML"},
		"LongIsCut":    {reason: "long values are not printed", def: v1beta1.Parameter{Type: v1beta1.MapType, Default: ptr(strings.Repeat("é", 1000))}, err: "… (2000 bytes)"},
		"UndeclaredNo": {reason: "what is not defined is no value", def: v1beta1.Parameter{Default: ptr("x")}, given: map[string]string{"Q": "1"}, want: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.def.Name = "P"
			got, err := Resolve([]v1beta1.Parameter{tc.def}, tc.given)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: error %v does not say %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(Values{"P": tc.want}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		def    v1beta1.Parameter
		value  string
		want   string // empty: accepted
	}{
		"Integer":       {"whole numbers", v1beta1.Parameter{Type: v1beta1.IntegerType}, "-12", ""},
		"IntegerFloat":  {"fractions are no integers", v1beta1.Parameter{Type: v1beta1.IntegerType}, "1.0", `has the value "1.0", which is not of type integer: use a whole number`},
		"IntegerHex":    {"base 10 only", v1beta1.Parameter{Type: v1beta1.IntegerType}, "0x10", "not of type integer"},
		"Number":        {"floats", v1beta1.Parameter{Type: v1beta1.NumberType}, "1e-3", ""},
		"NumberText":    {"text is no number", v1beta1.Parameter{Type: v1beta1.NumberType}, "a", "not of type number"},
		"BooleanOne":    {"all that ParseBool takes", v1beta1.Parameter{Type: v1beta1.BooleanType}, "1", ""},
		"BooleanT":      {"all that ParseBool takes", v1beta1.Parameter{Type: v1beta1.BooleanType}, "t", ""},
		"BooleanYes":    {"yes is not among it", v1beta1.Parameter{Type: v1beta1.BooleanType}, "yes", "use true or false"},
		"Empty":         {"an empty value has no type", v1beta1.Parameter{Type: v1beta1.IntegerType, Enum: ptr([]string{"1"})}, "", ""},
		"Enum":          {"a value of the list", v1beta1.Parameter{Enum: ptr([]string{"a", "b"})}, "b", ""},
		"EnumNot":       {"a value that is not", v1beta1.Parameter{Enum: ptr([]string{"a", "b"})}, "c", `use one of "a", "b"`},
		"EnumEmpty":     {"nothing is allowed", v1beta1.Parameter{Enum: ptr([]string{})}, "c", "the list of allowed ones is empty"},
		"Array":         {"arrays", v1beta1.Parameter{Type: v1beta1.ArrayType}, "[1, 2]", ""},
		"ArrayIsMap":    {"a map is no array", v1beta1.Parameter{Type: v1beta1.ArrayType}, "{a: 1}", "its type is array"},
		"UnknownType":   {"unknown types count as string", v1beta1.Parameter{Type: "port"}, "x", ""},
		"IntegerTooBig": {"beyond 64 bits", v1beta1.Parameter{Type: v1beta1.IntegerType}, "99999999999999999999", "not of type integer"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.def.Name = "P"
			problem := Check(tc.def, tc.value)
			if (problem == nil) != (tc.want == "") {
				t.Fatalf("%s: got %v", tc.reason, problem)
			}
			if problem != nil && !strings.Contains(problem.Error(), tc.want) {
				t.Errorf("%s: %q does not say %q", tc.reason, problem.Error(), tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	defs := []v1beta1.Parameter{
		{Name: "NEEDED", Required: ptr(true)},
		{Name: "DEFAULTED", Required: ptr(true), Default: ptr("x")},
		{Name: "LIST", Required: ptr(true), Type: v1beta1.ArrayType},
		{Name: "COUNT", Type: v1beta1.IntegerType, Default: ptr("one")},
		{Name: "FREE"},
	}
	given := map[string]string{"COUNT": "many", "OTHER": "1", "ANOTHER": ""}
	want := []string{
		`parameter "NEEDED" is required but has no value and no default: set it with -p NEEDED=…`,
		`parameter "COUNT" has the value "many", which is not of type integer: use a whole number like 3`,
	}
	var got []string
	for _, p := range Validate(defs, given) {
		got = append(got, p.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems in the order of the definitions: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"NEEDED"}, Missing(defs, given)); diff != "" {
		t.Errorf("rule 7: arrays are never missing: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ANOTHER", "OTHER"}, Unknown(defs, given)); diff != "" {
		t.Errorf("unknown parameters: -want +got:\n%s", diff)
	}
	if err := Validate(defs[3:4], nil).Err(); err != nil {
		t.Errorf("a wrong default is no problem of what is given: %v", err)
	}
	if err := ValidateDefaults(defs).Err(); err == nil {
		t.Error("a wrong default is a problem of the definitions")
	}
	if err := Validate(defs, map[string]string{"NEEDED": "x"}).Err(); err != nil {
		t.Errorf("no problem is no error: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	got, err := ReadFile([]byte("A: 1000000\nB: true\nC: 'x'\nD: [1, 2]\nE: {k: 12345678}\nF: \"\"\nG: 1.10\nH: |\n  text\n  more\nY: 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "1000000", "B": "true", "C": "x", "D": "- 1\n- 2\n", "E": "k: 12345678\n", "F": "", "G": "1.10", "H": "text\nmore\n", "Y": "0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Null":      {"null is refused by name", "A: 1\nB:\n", `line 2: parameter "B" is null`},
		"Both":      {"all mistakes are reported", "A:\nB: null\n", `"A" is null: give a value, write "" for an empty one, or leave it out for the default` + "\n"},
		"Duplicate": {"names come once", "A: 1\nA: 2\n", `line 2: parameter "A" is set already in line 1`},
		"List":      {"not a map", "- a\n", "expected a map"},
		"Text":      {"not a map", "a b c\n", "expected a map"},
		"Broken":    {"malformed", "A: [\n", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ReadFile([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "{}"} {
		if got, err := ReadFile([]byte(empty)); err != nil || len(got) > 0 {
			t.Errorf("%q is no parameters: %v, %v", empty, got, err)
		}
	}
}

func TestParseFlag(t *testing.T) {
	name, value, err := ParseFlag("A=b=c")
	if name != "A" || value != "b=c" || err != nil {
		t.Errorf("only the first = parts: %q, %q, %v", name, value, err)
	}
	for flag, want := range map[string]string{"A": "write -p NAME=VALUE", "=b": "has no name", "A=": "use --unset A", "": "has no value"} {
		if _, _, err := ParseFlag(flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-p %q: error %v does not say %q", flag, err, want)
		}
	}
}

func TestTextOfDecodedValues(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
	}{{nil, ""}, {1e6, "1000000"}, {1.5, "1.5"}, {7, "7"}, {true, "true"}, {"x", "x"}, {[]string{"a"}, "- a\n"}, {map[string]any{"a": int64(1)}, "a: 1\n"}} {
		if got, err := yamldoc.ValueText(tc.value); err != nil || got != tc.want {
			t.Errorf("text of %#v is %q (%v), want %q", tc.value, got, err, tc.want)
		}
	}
}

func FuzzReadFile(f *testing.F) {
	for _, seed := range []string{"A: 1", "A: [1, {b: c}]", "A:", "{A: &x [1], B: *x}", "? [a]\n: 1", "<<: {A: 1}", "A: !!binary aGk="} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		values, err := ReadFile(data)
		if err != nil {
			return
		}
		var defs []v1beta1.Parameter
		for name := range values {
			for _, typ := range []v1beta1.ParameterType{v1beta1.ArrayType, v1beta1.MapType, v1beta1.IntegerType} {
				defs = append(defs, v1beta1.Parameter{Name: name, Type: typ, Enum: &[]string{"a"}})
			}
		}
		if unknown := Unknown(defs, values); len(unknown) > 0 {
			t.Errorf("unknown: %q", unknown)
		}
		_ = Validate(defs, values).Error()
		if _, err := Resolve(defs, values); err != nil && len(err.Error()) > 2000*len(defs) {
			t.Errorf("an error has %d bytes", len(err.Error()))
		}
	})
}
