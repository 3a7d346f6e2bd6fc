package crdcompat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"kudo.dev/kudo/pkg/text"
)

// shownBytes is how much of a value a message holds.
const shownBytes = 120

// plain is text that is shown as it is.
type plain string

// show is a value in a message: JSON, cut to a bounded length.
func show(value any) string {
	if p, ok := value.(plain); ok {
		return text.Truncate(string(p), shownBytes)
	}
	if v := reflect.ValueOf(value); !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil() {
		return "absent"
	}
	if encoded := text.JSON(value, shownBytes); encoded != `""` {
		return encoded
	}
	return "absent"
}

func quote(text string) string { return strconv.Quote(text) }

func brackets(parts []string) string {
	if len(parts) == 0 {
		return "absent"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// bare are schemas as JSON, without texts for people.
func bare(schemas []props) []string {
	out := make([]string, len(schemas))
	for i := range schemas {
		s := schemas[i].DeepCopy()
		strip(s)
		text, err := json.Marshal(s)
		if err != nil {
			// With addresses in it, so that it equals nothing: what cannot be read is never unchanged.
			text = fmt.Appendf(nil, "%+v", *s)
		}
		out[i] = string(text)
	}
	return out
}

// strip drops texts for people from a schema and all below it.
func strip(s *props) {
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	for name, child := range s.Properties {
		strip(&child)
		s.Properties[name] = child
	}
	for _, list := range [][]props{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			strip(&list[i])
		}
	}
	if s.Not != nil {
		strip(s.Not)
	}
	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema)
	}
}
