package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kind is what is known of a value in a template without running it.
type kind uint8

const (
	other      kind = iota // anything
	variables              // what a file gets as dot: .Name, .Params, …
	parameters             // .Params
	pipeNames              // .Pipes
	from                   // .From
	literal                // a text or number that stands in the template
	record                 // made by dict or list, with fields that are known
)

// value is a value in a template as far as it is known.
type value struct {
	kind   kind
	text   string           // of a literal
	fields map[string]value // of a record
	size   int              // of a record: how many values it holds, those of its fields included
}

// maxRecord bounds the size of a record. Definitions may call one another with ever larger ones.
const maxRecord = 200

// newRecord makes a record. One that is too large is not followed: false.
func newRecord(fields map[string]value) (value, bool) {
	v := value{kind: record, fields: fields, size: 1}
	for _, field := range fields {
		v.size += 1 + field.size
	}
	return v, v.size <= maxRecord
}

// signature tells apart values that templates could treat differently.
func (v value) signature() string {
	switch v.kind {
	case literal:
		return fmt.Sprintf("%q", v.text)
	case record:
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(v.fields)) {
			fmt.Fprintf(&b, "%q:%s,", name, v.fields[name].signature())
		}
		return "{" + b.String() + "}"
	}
	return fmt.Sprint(v.kind)
}

// makeRecord is the result of dict or list, if its names stand in the template.
func makeRecord(function string, args []value) (value, bool) {
	fields := map[string]value{}
	if function != "dict" {
		for i, arg := range args {
			fields[strconv.Itoa(i)] = arg
		}
		return newRecord(fields)
	}
	if len(args)%2 != 0 {
		return value{}, false
	}
	for i := 0; i < len(args); i += 2 {
		if args[i].kind != literal {
			return value{}, false
		}
		fields[args[i].text] = args[i+1]
	}
	return newRecord(fields)
}
