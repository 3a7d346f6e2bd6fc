package command

import (
	"bytes"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// TestHostileMessages: whatever way a text from the cluster is printed, no control character of it reaches the terminal.
func TestHostileMessages(t *testing.T) {
	const hostile = "x\x1b[31m\u009b1m\r\b\u202ey"
	var out, errs bytes.Buffer
	env := NewEnv(nil, &out, &errs)
	env.Printf("%s", hostile)
	env.Warnf("%s", hostile)
	env.ReportError(errors.New(hostile))
	if err := env.PrintTable([][]string{{"NAME", "MESSAGE"}, {hostile, hostile + "\nroot   ready"}}); err != nil {
		t.Fatal(err)
	}
	instance := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "i"}, Status: v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{
		"deploy": {Name: "deploy", Status: v1beta1.FatalError, Message: hostile},
	}}}
	if err := env.Print(FormatPlans(instance, nil, time.Now())); err != nil {
		t.Fatal(err)
	}
	for stream, printed := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
		if text.EscapeControls(printed) != printed {
			t.Errorf("%s has control characters: %q", stream, printed)
		}
		if !bytes.Contains([]byte(printed), []byte(`x\x1b[31m`)) {
			t.Errorf("%s does not show the message: %q", stream, printed)
		}
	}
	if bytes.Contains(out.Bytes(), []byte("\nroot   ready")) {
		t.Errorf("a cell makes a row of its own: %s", out.String())
	}
}

// TestP23Fit: a line fills no second row of the terminal, also if it has wide characters.
func TestP23Fit(t *testing.T) {
	for _, tc := range []struct {
		reason, line string
		columns      int
		want         string
	}{
		{"it fits", "0123456", 8, "0123456"},
		{"it would fill the row, after which terminals differ", "01234567", 8, "012345…"},
		{"it would wrap", "0123456789", 8, "012345…"},
		{"wide characters take two cells", "日本語の名前", 8, "日本語…"},
		{"half of a wide character does not fit", "0日本語の名前", 8, "0日本…"},
		{"wide characters that fit", "日本語", 8, "日本語"},
		{"a tab is one cell", "a\tb", 8, "a b"},
		{"the width is not known", "0123456789", 0, "0123456789"},
		{"nothing fits", "0123456789", 1, "0123456789"},
		{"no line", "", 8, ""},
	} {
		if got := fit(tc.line, tc.columns); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
