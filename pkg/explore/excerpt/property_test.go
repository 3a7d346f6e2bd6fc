package excerpt

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawValue makes a value of at most some levels, with names and texts that JSON escapes.
func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 6+2*min(depth, 1)).Draw(t, "kind")
	switch {
	case kind <= 1:
		return rapid.SampledFrom([]string{"", "a", "<é\n\u2028>", "\xff"}).Draw(t, "text") + strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "long"))
	case kind == 2:
		return rapid.Int64().Draw(t, "int")
	case kind == 3:
		return rapid.Float64().Draw(t, "float")
	case kind == 4:
		return rapid.Bool().Draw(t, "bool")
	case kind == 5:
		return nil
	case kind == 6:
		return strings.Repeat("<", rapid.IntRange(0, 400).Draw(t, "escaped"))
	case kind == 7:
		return drawObject(t, depth-1)
	}
	list := make([]any, rapid.IntRange(0, 9).Draw(t, "length"))
	for i := range list {
		list[i] = drawValue(t, depth-1)
	}
	return list
}

func drawObject(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"type", "status", "reason", "message", "<a>", "b.c", "\xff", "é", "phase"}), 0, 9).Draw(t, "names") {
		out[name] = drawValue(t, depth)
	}
	return out
}

func drawStatus(t *rapid.T) any {
	status := drawObject(t, 3)
	if rapid.Bool().Draw(t, "with conditions") {
		conditions := make([]any, rapid.IntRange(0, 20).Draw(t, "conditions"))
		for i := range conditions {
			conditions[i] = drawObject(t, 1)
		}
		status[conditionsKey] = conditions
	}
	return status
}

func sameExcerpt(a, b Excerpt) bool {
	return string(a.JSON) == string(b.JSON) && slices.Equal(a.Omitted, b.Omitted)
}

// TestFitProperties: excerpts are bounded, valid, the same each time, and complete where nothing is omitted (C65).
func TestFitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := make([]Source, rapid.IntRange(1, 4).Draw(t, "objects"))
		for i := range sources {
			sources[i].Status = drawStatus(t)
		}
		var repeated []Source // so that the Instance is full
		for range rapid.SampledFrom([]int{1, 60}).Draw(t, "times") {
			repeated = append(repeated, sources...)
		}
		total := 0
		excerpts := Fit(repeated)
		for i, e := range excerpts {
			total += e.size()
			if i < len(sources) {
				checkBounds(t, "drawn", e)
			}
			if e.Omitted == nil && sizeOf(repeated[i].Status, ObjectLimit) > ObjectLimit {
				t.Fatalf("%v is said to be complete: %s", repeated[i].Status, e.JSON)
			}
		}
		if total > InstanceLimit {
			t.Fatalf("%d bytes", total)
		}
		if again := Fit(repeated); !slices.EqualFunc(excerpts, again, sameExcerpt) {
			t.Fatalf("another result: %v, before %v", again, excerpts)
		}
	})
}
