package text

import (
	"regexp"
	"sync"
)

// Pattern returns a function that returns a compiled regular expression, and compiles it when it is first called: a large one that few
// commands need would make each command begin later. The function panics if the expression is wrong.
func Pattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
