package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/test/corpus"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         any
	}{
		"Int":         {"integers are never floats", "1000000", int64(1000000)},
		"MaxInt":      {"the largest int64 is exact", "9223372036854775807", int64(9223372036854775807)},
		"Uint":        {"integers beyond int64 keep their digits", "18446744073709551615", json.Number("18446744073709551615")},
		"Huge":        {"integers beyond uint64 keep their digits", "123456789012345678901234567890", json.Number("123456789012345678901234567890")},
		"Octal":       {"YAML 1.1 octals", "0777", int64(511)},
		"Hex":         {"hexadecimal numbers", "0x1F", int64(31)},
		"Underscore":  {"underscores in numbers", "1_000", int64(1000)},
		"Yes":         {"YAML 1.1 booleans, as in Kubernetes", "[yes, No, on, off, y, TRUE]", []any{true, false, true, false, true, true}},
		"QuotedYes":   {"quoted booleans are text", `["yes", 'on']`, []any{"yes", "on"}},
		"Date":        {"dates are text", "2001-01-02", "2001-01-02"},
		"Sexagesimal": {"no base 60", "1:30", "1:30"},
		"Null":        {"all spellings of null", "[~, null, Null, '~', ]", []any{nil, nil, nil, "~"}},
		"Keys":        {"keys become text", "{1: a, yes: b, 1.5: c, 0x10: d}", map[string]any{"1": "a", "true": "b", "1.5": "c", "16": "d"}},
		"Tags":        {"tags say the type", "[!!str 1, !!int '2', !!float 3, !!binary aGk=, !custom x]", []any{"1", int64(2), 3.0, "hi", "x"}},
		"Merge": {"explicit keys win over merged ones, wherever they stand", "x: &x {a: 1, b: 2}\nz: {a: 3, <<: *x}",
			map[string]any{"x": map[string]any{"a": int64(1), "b": int64(2)}, "z": map[string]any{"a": int64(3), "b": int64(2)}}},
		"Empty":     {"nothing is nil", "# only a comment\n", nil},
		"BOM":       {"a byte order mark is no content", "\ufeffa: 1", map[string]any{"a": int64(1)}},
		"CRLF":      {"line ends of Windows", "a: 1\r\nb: x\r\n", map[string]any{"a": int64(1), "b": "x"}},
		"FirstOnly": {"later documents are ignored", "a: 1\n---\nb: 2", map[string]any{"a": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := Parse([]byte(tc.text))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		bomb += strings.ReplaceAll(strings.ReplaceAll("aI: &aI [*aJ,*aJ,*aJ,*aJ,*aJ,*aJ,*aJ,*aJ,*aJ]\n", "I", string(rune('a'+i))), "J", string(rune('a'+i-1)))
	}
	bomb = strings.Replace(bomb, "a0: &a0", "aa: &aa", 1)
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Bomb":     {"aliases that multiply are refused before they grow", bomb, "once aliases are expanded"},
		"Self":     {"an alias that holds itself", "a: &a [*a]", "nested deeper"},
		"Deep":     {"deep nesting", strings.Repeat("[", 5000), "line 1: "},
		"DeepOK":   {"deep nesting that is well-formed", strings.Repeat("[", 300) + strings.Repeat("]", 300), "nested deeper than 200"},
		"Large":    {"large texts", "a: " + strings.Repeat("x", MaxBytes), "more than the"},
		"Broken":   {"malformed YAML names its line", "a: 1\nb: [", "line 2: malformed YAML"},
		"Tab":      {"tabs", "a:\n\tb: 1", "line 2: malformed YAML"},
		"MapKey":   {"keys that are no scalars", "{a: 1}: x", "a key must be a single value"},
		"NullKey":  {"keys that are null", "~: x", "must not be empty"},
		"BadTag":   {"a tag that does not fit", "a: !!int x", `line 1: "x" is no value of type !!int`},
		"Encoding": {"text that is no UTF-8", "a: \xff\xfe", "malformed YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v does not say %q", tc.reason, err, tc.want)
			}
		})
	}
}

// The line that is named is the one that is wrong, or the next.
func TestErrorLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\nc: 3\nd: e: f\ng: 1\n":                "line 4: malformed YAML: mapping values are not allowed in this context",
		"a: 1\nb: [1,\n2,\n3\nc: 1\n":                      "line 5: malformed YAML: did not find expected ',' or ']'",
		"a: 1\nb:\n  c: 1\n  d: 2\n  e: 3\n foo\n  f: 4\n": "line 6: malformed YAML: did not find expected key",
		"a: 1\nb:\n\tc: 1\n":                               "line 3: malformed YAML: found character that cannot start any token",
		"a: 1\nb: *x\n":                                    "line 2: malformed YAML: unknown anchor 'x' referenced",
		"a: &xy 1\nb: *xy\nc: *x\n":                        "line 3: malformed YAML: unknown anchor 'x' referenced",
		"a: [":                                             "line 1: malformed YAML: did not find expected node content",
	} {
		if _, err := First([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestDuplicates(t *testing.T) {
	_, got, err := Parse([]byte("a:\n  - b: 1\n    c: 2\n    b: 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Duplicate{{Path: "a[0].b", Line: 4, First: 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("duplicate keys are named with both lines: -want +got:\n%s", diff)
	}
}

func TestSplit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         []int
	}{
		"Leading":    {"--- at the start", "---\na: 1\n---\nb: 2\n", []int{2, 4}},
		"Comments":   {"documents of comments only are skipped", "# x\n---\n# y\n---\na: 1\n---\n  \n", []int{5}},
		"Suffix":     {"a comment behind ---", "a: 1\n--- # next\nb: 2", []int{1, 3}},
		"CRLF":       {"line ends of Windows", "a: 1\r\n---\r\nb: 2\r\n", []int{1, 3}},
		"BOM":        {"a byte order mark", "\ufeff---\na: 1", []int{2}},
		"Glued":      {"trimmed templates glue --- to the content, which KUDO accepted", "a: 1\n---b: 2", []int{1, 2}},
		"GluedFirst": {"also at the start", "---a: 1", []int{1}},
		"Dots":       {"the end of document marker", "a: 1\n...\n---\nb: 2\n...\n", []int{1, 4}},
		"Directive":  {"a directive", "%YAML 1.1\n---\na: 1", []int{3}},
		"Null":       {"null documents are skipped", "~\n---\na: 1", []int{3}},
		"JSON":       {"JSON with tabs", "{\n\t\"a\": 1\n}", []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			roots, err := Split(tc.text)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			var got []int
			for _, root := range roots {
				got = append(got, root.Line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: lines of documents: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Million":  {"integers have no exponent", "1000000", "1000000"},
		"Trailing": {"plain decimals stay as written", "1.10", "1.10"},
		"Big":      {"integers beyond 64 bits stay as written", "123456789012345678901234567890", "123456789012345678901234567890"},
		"Octal":    {"other notations become decimal", "0777", "511"},
		"Hex":      {"other notations become decimal", "0x1F", "31"},
		"Under":    {"other notations become decimal", "1_000", "1000"},
		"Exp":      {"exponents are written out", "1e6", "1000000"},
		"Dot":      {"a leading dot", ".5", "0.5"},
		"Yes":      {"booleans have one spelling", "yes", "true"},
		"Off":      {"booleans have one spelling", "off", "false"},
		"Quoted":   {"quoted text is as it is", `"0777"`, "0777"},
		"Date":     {"dates are text", "2020-01-02", "2020-01-02"},
		"Version":  {"versions are text", "1.2.3", "1.2.3"},
		"Map":      {"maps are YAML with sorted keys", "b: 1000000\na: [x, 'yes', 1.5]", "a:\n- x\n- \"yes\"\n- 1.5\nb: 1000000\n"},
		"BigInMap": {"integers in maps keep their digits", "{a: 123456789012345678901234567890}", "a: 123456789012345678901234567890\n"},
		"List":     {"lists are YAML", "[80, 443]", "- 80\n- 443\n"},
		"EmptyMap": {"empty maps", "{}", "{}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := First([]byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			got, null, err := Text(root)
			if err != nil || null {
				t.Fatalf("%s: null %v, error %v", tc.reason, null, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// same compares with what Kubernetes reads: sigs.k8s.io/yaml.
func same(t *testing.T, text []byte) {
	t.Helper()
	value, duplicates, err := Parse(text)
	if err != nil || len(duplicates) > 0 {
		return
	}
	value, err = JSON(value)
	if err != nil {
		return
	}
	ours, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("a parsed value cannot be written as JSON: %v", err)
	}
	theirs, err := yaml.YAMLToJSON(text)
	if err != nil {
		return
	}
	// Written by the same library: numbers as they are, keys sorted.
	var v any
	if err := json.Unmarshal(theirs, &v); err != nil {
		t.Fatal(err)
	}
	var w any
	if err := json.Unmarshal(ours, &w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, w); diff != "" {
		t.Errorf("%q differs from sigs.k8s.io/yaml (-theirs +ours):\n%s", text, diff)
	}
}

func TestSameAsKubernetes(t *testing.T) {
	err := filepath.WalkDir(corpus.Require(t), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(string(text), "\n---") {
			same(t, []byte(part))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var longNumber = regexp.MustCompile(`[0-9_]{18}`)

func FuzzSameAsKubernetes(f *testing.F) {
	for _, seed := range []string{"a: 1", "- 0x1f\n- 1_0\n- 0b11\n- 0o7\n- .5\n- 1e3\n- +1", "{1: a, yes: b}", "a: &a [1]\nb: *a", "x: |\n  y\n", "2001-01-01",
		"<<: {a: 1}\nb: 2", "!!str 1", "? a\n: b", "-.inf", "'it''s'", "\"\\u0041\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		// The parser does not keep the tag `!`, which no one writes; and keys keep their digits here.
		if !bytes.Contains(bytes.ReplaceAll(text, []byte("!!"), nil), []byte("!")) && !longNumber.Match(text) {
			same(t, text)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("a: 1\n---\nb: [x, {y: z}]\n...\n")
	f.Fuzz(func(t *testing.T, text string) {
		roots, err := Split(text)
		if err != nil {
			return
		}
		for _, root := range roots {
			value, _, err := Value(root)
			if err != nil {
				continue
			}
			written, err := Marshal(value)
			if err != nil {
				t.Fatalf("a value that was read cannot be written: %v", err)
			}
			again, _, err := Parse([]byte(written))
			if err != nil {
				t.Fatalf("%q cannot be read again: %v", written, err)
			}
			// NaN is not equal to itself; compare as text.
			twice, err := Marshal(again)
			if err != nil || twice != written {
				t.Fatalf("%q is %q when read and written again (%v)", written, twice, err)
			}
		}
	})
}

// TestFirst checks what counts as the first document of a file.
func TestFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		line         int // of the root; 0 for none
	}{
		"Nothing":   {"an empty text has no document", "", 0},
		"Comment":   {"a comment is no document", "# a\n", 0},
		"Separator": {"the line after --- is the first", "---\na: 1", 2},
		"Null":      {"a null is a document, unlike in Split", "~", 1},
		"Second":    {"an empty first document hides the second", "---\n---\na: 1", 2},
		"Directive": {"a directive stands before the document", "%YAML 1.1\n---\na: 1", 3},
		"Later":     {"later documents are not parsed", "a: 1\n---\nb: [", 1},
		"Glued":     {"unlike in Split, glued dashes are text", "a: b\n---b: 2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := First([]byte(tc.text))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got := 0; root != nil && root.Line != tc.line || root == nil && tc.line != got {
				t.Errorf("%s: root %+v, want line %d", tc.reason, root, tc.line)
			}
		})
	}
}

// TestSplitLines checks that nodes and errors of later documents have the lines of the whole text.
func TestSplitLines(t *testing.T) {
	roots, err := Split("# head\n---\na: 1\n---\n# comment\nb:\n- c\n- d: e\n")
	if err != nil || len(roots) != 2 {
		t.Fatalf("%d documents, %v", len(roots), err)
	}
	list := roots[1].Content[1]
	if got := []int{roots[0].Line, roots[1].Line, list.Line, list.Content[1].Content[1].Line}; !cmp.Equal(got, []int{3, 6, 7, 8}) {
		t.Errorf("lines %v", got)
	}
	for text, want := range map[string]string{
		"a: 1\n---\nb: [\n":             "line 3: malformed YAML: did not find expected node content",
		"a: 1\n---\nb: *x":              "line 3: malformed YAML: unknown anchor 'x' referenced",
		"a: &x 1\n---\nb: *x":           "line 3: malformed YAML: unknown anchor 'x' referenced",
		"a: 1\n---\n" + deepList(201):   "line 3: nested deeper than 200 levels",
		"a: 1\n---\nb: 1\n---\n\tc: 1":  "line 5: malformed YAML: found character that cannot start any token",
		"---\na: 1\n--- # x\nb: \"c\n":  "line 4: malformed YAML: found unexpected end of stream",
		"a: 1\n---\n" + large(MaxBytes): "line 2: the document has 3145729 bytes, more than the 3145728 that the API server takes",
	} {
		var at *Error
		if _, err := Split(text); !errors.As(err, &at) || err.Error() != want {
			t.Errorf("%.40q: error %v, want %s", text, err, want)
		}
	}
	if roots, err := Split("a: 1\n---\n" + large(MaxBytes-1)); err != nil || len(roots) != 2 {
		t.Errorf("each document may have the bound: %d, %v", len(roots), err)
	}
}

func deepList(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// large is a document of so many bytes. Split leaves a line break in front of it.
func large(size int) string { return strings.Repeat("x", size) }

// TestCount checks that documents are counted as Split parts them, well-formed or not.
func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "\n\n": 0, "# a\n": 0, "a": 1, "---": 0, "---\na: 1\n---\n": 1, "a: 1\n---\nb: 2": 2, "a: [\n---\n]": 2,
		"a: 1\n---b: 2": 2, "\ufeff---\na: 1": 1, "a: |\n  x\n ---\n": 1, "a\n...\n---\nb": 2, "%YAML 1.1\n---\na": 1, "# a\n---\n# b\n---\nc": 1,
		"---\n---\n---\n": 0, "a\r\n---\r\nb\r\n": 2, "----": 1,
	} {
		if got := Count(text); got != want {
			t.Errorf("%q: %d documents, want %d", text, got, want)
		}
	}
}

// TestErrorIsAnError checks the text of an error, and that its parts can be read.
func TestErrorIsAnError(t *testing.T) {
	_, _, err := Parse([]byte("a: 1\nb: !!int x"))
	var at *Error
	if !errors.As(err, &at) || at.Line != 2 || at.Reason != `"x" is no value of type !!int` || err.Error() != "line 2: "+at.Reason {
		t.Errorf("%+v", at)
	}
}
