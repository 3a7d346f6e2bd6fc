package render

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFormats checks how values are written and read, in templates.
func TestFormats(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ toYaml nil }}`: "null\n", `{{ toYaml "" }}`: "\"\"\n", `{{ toYaml "yes" }}`: "\"yes\"\n", `{{ toYaml 1.0 }}`: "1\n",
		`{{ toYaml (dict) }}`: "{}\n",
		`{{ toYaml (list) }}`: "[]\n", `{{ toYaml (dict "b" (list 1 "1") "a" "x: y") }}`: "a: 'x: y'\nb:\n- 1\n- \"1\"\n",
		`{{ toYaml "a\nb" }}`: "|-\n  a\n  b\n",
		`{{ toJson nil }}`:    "null", `{{ toJson "<a>" }}`: `"\u003ca\u003e"`, `{{ toRawJson "<a&b>" }}`: `"<a&b>"`,
		`{{ mustToJson "<" }}`: `"\u003c"`, `{{ mustToRawJson "<" }}`: `"<"`,
		`{{ toPrettyJson (dict "a" (list 1)) }}`: "{\n  \"a\": [\n    1\n  ]\n}", `{{ mustToPrettyJson (list) }}`: "[]",
		`{{ toJson (dict "b" 1 "a" 2) }}`: `{"a":2,"b":1}`,
		`{{ fromYaml "a: 1" | toJson }}`:  `{"a":1}`, `{{ fromJson "[1, 2.5, \"x\", null]" | toJson }}`: `[1,2.5,"x",null]`,
		`{{ mustFromJson "{\"a\": true}" | toJson }}`: `{"a":true}`,
		`{{ fromYaml "a: 1\n---\nb: 2" | toJson }}`:   `{"a":1}`, `{{ fromYaml "" | toJson }}`: "null",
		`{{ (fromYaml "a: 18446744073709551615").a }}`:           "18446744073709551615",
		`{{ toYaml (fromYaml "a: 18446744073709551615") }}`:      "a: 18446744073709551615\n",
		`{{ toJson (fromYaml "a: 18446744073709551615") }}`:      `{"a":18446744073709551615}`,
		`{{ toYaml (fromYaml "[1e3, 0x10, yes, 2020-01-01]") }}`: "- 1000\n- 16\n- true\n- \"2020-01-01\"\n",
		`{{ fromYaml "a: [" }}`:                                  `!line 1: malformed YAML: did not find expected node content`,
		`{{ required "" .Params.EMPTY }}`:                        `!a required value is empty`,
		`{{ required "%d is needed" .Params.NONE }}`:             `!%d is needed`,
		`{{ required "x" 0 }}`:                                   "0", `{{ required "x" false }}`: "false", `{{ required "x" (list) }}`: "[]",
	})
}

// TestToJSONRefuses checks that what JSON does not have is an error.
func TestToJSONRefuses(t *testing.T) {
	for _, value := range []any{math.Inf(1), math.NaN(), func() {}} {
		if got, err := toJSON(value, "", true); err == nil || got != "" {
			t.Errorf("%T: got %q, %v", value, got, err)
		}
	}
}

// TestYamlReads checks the law that what toYaml and toJson write is read as the same value.
func TestYamlReads(t *testing.T) {
	for _, text := range []string{"", "a", "a b", "yes", "1", "1.5", "~", "null", "a: b", "- a", "#", "a\nb", "a\n", "\n", "'", `"`, `\`,
		"{{", "é", "<&>", " x ", "*a", "&a", "!t", "%", "@"} {
		value := map[string]any{"k": text, "l": []any{text, map[string]any{"m": text}}, "n": int64(9007199254740993), "f": 1.5, "b": false,
			"z": nil}
		for name, write := range map[string]func(any) (string, error){
			"toYaml": toYaml, "toJson": func(v any) (string, error) { return toJSON(v, "", true) },
			"toPrettyJson": func(v any) (string, error) { return toJSON(v, "  ", false) },
		} {
			written, err := write(value)
			if err != nil {
				t.Errorf("%s of %q: %v", name, text, err)
				continue
			}
			read, err := fromYaml(written)
			if diff := cmp.Diff(any(value), read); diff != "" || err != nil {
				t.Errorf("%s of %q: %v, -want +got:\n%s", name, text, err, strings.TrimSpace(diff))
			}
		}
	}
}
