package operators

import (
	"fmt"
	"strings"
)

// Finding is something wrong at a place of a package.
type Finding struct {
	// File is the path in the package.
	File string
	// Line counts from 1; 0 is unknown.
	Line int
	// Field is the path of the field, as in `parameters[3].default`, or empty.
	Field string
	// Message says what is wrong and what to do.
	Message string
}

// Warning is a finding that does not keep the package from being used.
type Warning = Finding

// String is `file:line: field: message`, without what is not known.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Field != "" {
		b.WriteString(f.Field + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Errors are all findings that keep a package from being used. An empty list is no error: see Err.
type Errors []Finding

// Error has a line for each finding.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.String()
	}
	return strings.Join(lines, "\n")
}

// Err is nil if there is no finding.
func (es Errors) Err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}
