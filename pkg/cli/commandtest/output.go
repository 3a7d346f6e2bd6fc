package commandtest

import (
	"bytes"
	"regexp"
	"sync"
)

// Output is what a command prints while it runs. It may be written and read at the same time.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// Find returns the texts that are printed so far, and match a pattern.
func (o *Output) Find(pattern string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return regexp.MustCompile(pattern).FindAllString(o.text.String(), -1)
}
