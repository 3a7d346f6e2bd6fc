package text

import "testing"

// TestPattern: a pattern is compiled at its first use, and once.
func TestPattern(t *testing.T) {
	wrong := Pattern("(")
	right := Pattern("^a+$")
	if first := right(); !first.MatchString("aa") || right() != first {
		t.Error("it is compiled again")
	}
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression is taken")
		}
	}()
	wrong()
}
