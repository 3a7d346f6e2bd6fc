package ui

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestChoicesOfForm checks that a value among choices comes back as it is: browsers shorten white space in the text of an option.
func TestChoicesOfForm(t *testing.T) {
	ov, sizes := changeable(), []string{" a  b ", "one\ntwo"}
	ov.Spec.Parameters[3].Enum, ov.Spec.Parameters[3].Default = &sizes, &sizes[0]
	_, body := begin(t, "", changed(), ov).get(t, "/instances/a/one/change")
	expect(t, body, `<option value=" a  b " selected>`, "<option value=\"one\ntwo\">")
}

// TestSensitiveFields checks that no sensitive parameter has a field, also one that has no value yet, or whose value a ConfigMap gives.
func TestSensitiveFields(t *testing.T) {
	ov, i := changeable(), changed()
	ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "TOKEN", Sensitive: true}, v1beta1.Parameter{Name: "PIN", Sensitive: true})
	i.Spec.ParametersFrom[0].Keys["PIN"] = "pin"
	_, body := begin(t, "", i, ov).get(t, "/instances/a/one/change")
	expect(t, body, "<strong>TOKEN</strong>", "<strong>PIN</strong>")
	for _, name := range []string{"value.TOKEN", "former.TOKEN", "value.PIN"} {
		if strings.Contains(body, name) {
			t.Errorf("there is a field %s", name)
		}
	}
}
