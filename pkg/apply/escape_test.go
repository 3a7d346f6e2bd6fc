package apply

import (
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestEscaped(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Plain":   {"what YAML takes stays", `{"a":"ä€😀"}`, `{"a":"ä€😀"}`},
		"Delete":  {"the character that started it", "{\"a\":\"x\u007fy\"}", `{"a":"x\u007fy"}`},
		"C1":      {"control characters", "{\"a\":\"\u0080\u009f\u0085\"}", `{"a":"\u0080\u009f\u0085"}`},
		"Illegal": {"no characters at all", "{\"a\":\"\uffff\ufffe\"}", `{"a":"\uffff\ufffe"}`},
		"Broken":  {"bytes that are no text stay", "{\"a\":\"\xff\"}", "{\"a\":\"\xff\"}"},
	} {
		if got := string(escaped([]byte(tc.text))); got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// FuzzEscaped: what JSON takes, YAML takes once it is escaped, and both mean the same.
func FuzzEscaped(f *testing.F) {
	f.Add("x\u007fy")
	f.Add("\u0085\u2028\ufeff")
	f.Fuzz(func(t *testing.T, value string) {
		text, err := json.Marshal(map[string]string{"a": value})
		if err != nil {
			t.Fatal(err)
		}
		var plain, safe map[string]string
		if err := json.Unmarshal(text, &plain); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(escaped(text), &safe); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if plain["a"] != safe["a"] {
			t.Fatalf("%q is %q, and escaped %q", text, plain["a"], safe["a"])
		}
	})
}
