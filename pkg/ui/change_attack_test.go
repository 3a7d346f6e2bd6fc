package ui

import (
	"testing"
)

// TestChoicesOfForm checks that a value among choices comes back as it is: browsers shorten white space in the text of an option.
func TestChoicesOfForm(t *testing.T) {
	ov, sizes := changeable(), []string{" a  b ", "one\ntwo"}
	ov.Spec.Parameters[3].Enum, ov.Spec.Parameters[3].Default = &sizes, &sizes[0]
	_, body := begin(t, "", changed(), ov).get(t, "/instances/a/one/change")
	expect(t, body, `<option value=" a  b " selected>`, "<option value=\"one\ntwo\">")
}
