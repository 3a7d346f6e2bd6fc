package operators

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

// decodeInto decodes a document into a struct by the names of its json tags. Unlike encoding/json it continues after a
// mistake, knows the line of each, and takes text as it is written: an unquoted 1.10 is "1.10".
func (r *reader) decodeInto(file string, root *yaml.Node, target any) {
	r.file = file
	r.value(root, reflect.ValueOf(target).Elem(), "")
}

// maxValues is how many values operator.yaml and params.yaml may have together.
const maxValues = 200_000

var nodeType = reflect.TypeFor[*yaml.Node]()

func (r *reader) value(n *yaml.Node, target reflect.Value, path string) {
	if path != "" {
		r.lines[r.file+":"+path] = n.Line
	}
	// Aliases can make much of little; no type is deep enough to loop.
	if r.values++; r.values >= maxValues {
		if r.values == maxValues {
			r.fail(n.Line, path, "more than %d values once aliases are expanded", maxValues)
		}
		return
	}
	if target.Type() == nodeType {
		target.Set(reflect.ValueOf(n))
		return
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if text, scalar := yamldoc.Literal(n); scalar && text == "" && target.Kind() != reflect.String {
		return // null
	}
	switch target.Kind() {
	case reflect.Struct:
		r.fields(n, target, path)
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		r.value(n, target.Elem(), path)
	case reflect.Slice:
		r.list(n, target, path)
	case reflect.Map:
		r.mapping(n, target, path)
	default:
		r.scalar(n, target, path)
	}
}

func (r *reader) scalar(n *yaml.Node, target reflect.Value, path string) {
	literal, ok := yamldoc.Literal(n)
	if !ok {
		r.fail(n.Line, path, "expected %s, found %s", expected(target.Kind()), kindOf(n))
		return
	}
	if target.Kind() == reflect.String {
		target.SetString(literal)
		return
	}
	value, _, err := yamldoc.Value(n)
	if err != nil {
		r.fail(n.Line, path, "%v", err)
		return
	}
	switch v := value.(type) {
	case bool:
		if target.Kind() == reflect.Bool {
			target.SetBool(v)
			return
		}
	case int64:
		if target.CanInt() && !target.OverflowInt(v) {
			target.SetInt(v)
			return
		}
	case string:
		if target.Kind() == reflect.Bool && (v == "true" || v == "false") {
			r.fail(n.Line, path, "expected true or false, found text: remove the quotes")
			return
		}
	}
	r.fail(n.Line, path, "expected %s, found %s", expected(target.Kind()), strconv.Quote(text.Truncate(literal, 64)))
}

func (r *reader) list(n *yaml.Node, target reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n.Line, path, "expected a list, found %s", kindOf(n))
		return
	}
	items := reflect.MakeSlice(target.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		r.value(item, items.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	target.Set(items)
}

func (r *reader) mapping(n *yaml.Node, target reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, path, "expected a map, found %s", kindOf(n))
		return
	}
	result := reflect.MakeMap(target.Type())
	for _, e := range r.entries(n, path) {
		value := reflect.New(target.Type().Elem()).Elem()
		r.value(e.value, value, join(path, e.key))
		result.SetMapIndex(reflect.ValueOf(e.key), value)
	}
	target.Set(result)
}

// fields decodes a map into a struct.
func (r *reader) fields(n *yaml.Node, target reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, path, "expected a map, found %s", kindOf(n))
		return
	}
	names, index := fieldsOf(target.Type())
	for _, e := range r.entries(n, path) {
		at := join(path, e.key)
		name := e.key
		if !slices.Contains(names, name) {
			name = text.Nearest(e.key, names)
			switch {
			case name == "":
				r.strictWarning(e.line, at, "unknown field, ignored")
				continue
			case !strings.EqualFold(name, e.key):
				r.strictWarning(e.line, at, "unknown field, did you mean %s?", name)
				continue
			}
			// KUDO did not distinguish upper and lower case.
			r.strictWarning(e.line, at, "unknown field, taken for %s", name)
		}
		r.value(e.value, target.Field(index[name]), at)
	}
}

// fieldsOf lists the fields of a struct by the names of their json tags.
func fieldsOf(t reflect.Type) (names []string, index map[string]int) {
	index = make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
			index[name] = i
		}
	}
	return names, index
}

// entry is a key of a map with its value.
type entry struct {
	key   string
	line  int
	value *yaml.Node
}

// entries lists the entries of a map in their order. Of duplicate keys the last stays, in the place of the first;
// `<<` brings in the entries of other maps that the map itself does not have.
func (r *reader) entries(n *yaml.Node, path string) []entry {
	var entries, merged []entry
	place := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := yamldoc.Literal(n.Content[i])
		if !ok {
			r.fail(n.Content[i].Line, path, "a key must be text, not %s", kindOf(n.Content[i]))
			continue
		}
		e := entry{key: key, line: n.Content[i].Line, value: n.Content[i+1]}
		if n.Content[i].Tag == "!!merge" {
			merged = append(merged, r.merge(n.Content[i+1], path)...)
			continue
		}
		if at, ok := place[key]; ok {
			r.strictWarning(e.line, join(path, key), "the key stands in line %d already, whose value is lost", entries[at].line)
			entries[at] = e
			continue
		}
		place[key] = len(entries)
		entries = append(entries, e)
	}
	for _, e := range merged {
		if _, ok := place[e.key]; !ok {
			place[e.key] = len(entries)
			entries = append(entries, e)
		}
	}
	return entries
}

// merge lists the entries of the maps that a `<<` key names. Maps that name others again are not followed.
func (r *reader) merge(n *yaml.Node, path string) []entry {
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	var entries []entry
	for _, source := range sources {
		for source.Kind == yaml.AliasNode {
			source = source.Alias
		}
		if source.Kind != yaml.MappingNode {
			r.fail(n.Line, path, "<< needs a map or a list of maps")
			continue
		}
		for i := 0; i+1 < len(source.Content); i += 2 {
			if key, ok := yamldoc.Literal(source.Content[i]); ok {
				entries = append(entries, entry{key: key, line: source.Content[i].Line, value: source.Content[i+1]})
			}
		}
	}
	return entries
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func expected(kind reflect.Kind) string {
	switch kind {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32:
		return "a whole number"
	}
	return "text"
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return strconv.Quote(text.Truncate(n.Value, 64))
	}
	return "an alias"
}
