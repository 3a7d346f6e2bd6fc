package excerpt

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// sizeOf returns the bytes of a value as JSON, and limit+1 as soon as there are more, so that a huge or deep value costs no more than a
// small one. A value that has no JSON, such as a text that is not UTF-8, has that size, too: another text would be shown in its place.
func sizeOf(value any, limit int) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		n = 1 // with each member comes a comma; that of the last one stands for the closing bracket
		for key, member := range value {
			if n += sizeOfText(key, limit) + 1; n > limit {
				break
			}
			n += sizeOf(member, limit-n) + 1
		}
		n = max(n, 2)
	case []any:
		n = 1
		for _, element := range value {
			if n > limit {
				break
			}
			n += sizeOf(element, limit-n) + 1
		}
		n = max(n, 2)
	case string:
		n = sizeOfText(value, limit)
	case nil, bool, int, int64, float64:
		encoded, err := json.Marshal(value)
		if err != nil {
			return limit + 1
		}
		n = len(encoded)
	default:
		return limit + 1
	}
	return min(n, limit+1)
}

func sizeOfText(value string, limit int) int {
	if len(value) > limit || !utf8.ValidString(value) {
		return max(limit, 0) + 1
	}
	encoded, _ := json.Marshal(value) // strings always have JSON
	return len(encoded)
}

// smallest collects the first elements of any number, in an order: what it holds is bounded.
type smallest[T any] struct {
	limit   int
	compare func(a, b T) int
	found   []T
}

func (s *smallest[T]) add(element T) {
	s.found = append(s.found, element)
	if len(s.found) >= 2*s.limit {
		s.found = s.sorted()
	}
}

// sorted returns the elements in order.
func (s *smallest[T]) sorted() []T {
	slices.SortFunc(s.found, s.compare)
	return s.found[:min(len(s.found), s.limit)]
}
