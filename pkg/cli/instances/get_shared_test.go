package instances

import (
	"testing"

	"kudo.dev/kudo/pkg/cli/commandtest"
)

// TestGetSharedNone checks that an empty list is a list, and no error.
func TestGetSharedNone(t *testing.T) {
	onServer(t)
	for format, want := range map[string]string{"json": "[]\n", "yaml": "[]\n", "": "", "wide": ""} {
		args := []string{"get", "shared"}
		if format != "" {
			args = append(args, "-o", format)
		}
		out, errs := commandtest.Expect(t, NewGet, 0, "", args...)
		if out != want || want == "" && errs != "No shared objects found.\n" {
			t.Errorf("-o %q: got %q and %q", format, out, errs)
		}
	}
}
