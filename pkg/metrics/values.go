package metrics

import (
	"sync"
	"unicode/utf8"
)

// Other is the value of a label in place of those that are too many.
const Other = "other"

// Values bounds the values of a label that users choose, such as the name of an operator: every value makes a series of its own, which
// costs the memory of the manager and of Prometheus. The zero value allows none.
type Values struct {
	max   int
	mu    sync.RWMutex
	known map[string]bool
}

// NewValues returns a bound of so many values; the first ones win.
func NewValues(max int) *Values {
	return &Values{max: max, known: map[string]bool{}}
}

// Bound returns a value, or Other if there are too many of them, if it is too long or no UTF-8.
func (v *Values) Bound(value string) string {
	const maxLength = 100
	if len(value) > maxLength || !utf8.ValidString(value) {
		return Other
	}
	v.mu.RLock()
	known := v.known[value]
	v.mu.RUnlock()
	if known {
		return value
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.known[value] && len(v.known) >= v.max {
		return Other
	}
	v.known[value] = true
	return value
}
