package operators

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readErrors reads a package that is wrong, and returns its errors.
func readErrors(t *testing.T, operator, params string, opts ...Option) []string {
	t.Helper()
	p, err := Read(pkg(operator, params), opts...)
	if err == nil {
		return nil
	}
	var errs Errors
	if !errors.As(err, &errs) || p != nil {
		t.Fatalf("error is %T %v, package %v", err, err, p)
	}
	return findings(errs)
}

// TestDecodeValueBound checks where the bound on values is, that it is reported once, and that values beyond it do no harm.
func TestDecodeValueBound(t *testing.T) {
	// Each parameter has 1004 values: itself, its enum twice, as a pointer and as a list, 1000 values and its name.
	params := "parameters:\n- &p {name: A, enum: [" + strings.Repeat("x,", 1000) + "]}\n" + strings.Repeat("- *p\n", 199)
	want := []string{"params.yaml:2: parameters[199].enum[195]: more than 200000 values once aliases are expanded"}
	if diff := cmp.Diff(want, readErrors(t, "name: x", params)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
