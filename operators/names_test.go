package operators

import (
	"strings"
	"testing"
)

// TestInstanceNameErrors checks the whole message, with the name cut and the remedy.
func TestInstanceNameErrors(t *testing.T) {
	x := strings.Repeat("x", 64)
	for name, want := range map[string]string{
		"a": "", "0": "", "a.b-c": "", strings.Repeat("a.", 31) + "a": "",
		"":         `"" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"A":        `"A" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"-a":       `"-a" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"a.":       `"a." cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"a/b":      `"a/b" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"a b":      `"a b" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		"a\x1b[2J": `"a\x1b[2J" cannot name an Instance: use lower case letters, digits, dots and dashes`,
		x: `"` + x +
			`" is longer than 63 characters, so it cannot name an Instance, whose name is the label kudo.dev/instance: shorten it`,
		x + "y": `"` + x[:61] +
			`…" is longer than 63 characters, so it cannot name an Instance, whose name is the label kudo.dev/instance: shorten it`,
		strings.Repeat("x", 1000): `"` + x[:61] + `…" cannot name an Instance: use lower case letters, digits, dots and dashes`,
	} {
		got := ""
		if err := CheckInstanceName(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.70q: got %s, want %s", name, got, want)
		}
	}
}

// TestChildNames checks the names of what a dependency has.
func TestChildNames(t *testing.T) {
	if got := ChildSecretName(ChildInstanceName("db", "zookeeper")); got != "db-zookeeper-parameters" {
		t.Errorf("got %s", got)
	}
}
