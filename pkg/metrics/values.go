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

// IsLabelValue reports whether a text that users choose may be the value of a label: it is UTF-8 and not too long.
func IsLabelValue(text string) bool {
	const maxLength = 100
	return len(text) <= maxLength && utf8.ValidString(text)
}

// Bound returns a value, or Other if there are too many of them, if it is too long or no UTF-8.
func (v *Values) Bound(value string) string {
	if !IsLabelValue(value) {
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
