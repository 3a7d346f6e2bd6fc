// Package heap keeps the garbage collector from running while a command starts. The packages that a command is linked with allocate 8 MB
// when they are initialized: with the usual percentage, that makes four collections, which take a third of the time.
//
// Go initializes the packages whose imports are initialized in the order of their paths. So this one, which imports none but the standard
// library's, comes before those of Kubernetes, which wait for others.
package heap

import (
	"os"
	"runtime/debug"
)

// startPercent is the percentage while a command starts: the first collection comes at 16 MB.
const startPercent = 400

// before is the percentage that the user has chosen, or the default.
var before = raise()

// raise sets the percentage for the start, unless the user has set GOGC, and returns the one of before.
func raise() int {
	before := debug.SetGCPercent(startPercent)
	if os.Getenv("GOGC") != "" {
		debug.SetGCPercent(before)
	}
	return before
}

// Reset sets the percentage back when a command has started.
func Reset() { debug.SetGCPercent(before) }
