package yamldoc

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"kudo.dev/kudo/pkg/text"

	"go.yaml.in/yaml/v3"
)

// Duplicate is a key that stands more than once in one map; its last value is the one that counts.
type Duplicate struct {
	// Path of the key, as in `spec.ports[0].name`.
	Path string
	// Line of the later key, and First that of the one it hides.
	Line, First int
}

// String names the key and both lines.
func (d Duplicate) String() string {
	return fmt.Sprintf("line %d: %s is a duplicate of line %d, whose value is lost", d.Line, d.Path, d.First)
}

// Value converts a node to nil, bool, int64, float64, string, []any and map[string]any. An integer beyond int64 is a
// json.Number, whose text is exact. Keys that are no text become text as Kubernetes makes it: `1: x` is the key "1".
// Errors are of type *Error.
func Value(root *yaml.Node) (any, []Duplicate, error) {
	c := converter{}
	value, err := c.value(root, 1)
	if err != nil {
		return nil, nil, err
	}
	return value, c.duplicates, nil
}

// Parse is First followed by Value; a text without a document is nil.
func Parse(text []byte) (any, []Duplicate, error) {
	root, err := First(text)
	if err != nil || root == nil {
		return nil, nil, err
	}
	return Value(root)
}

// JSON turns a value made by Value into what unstructured objects hold after the API machinery has read them: an
// integer beyond int64 is a float64, a whole number written as a float (1.0, 1e3) is an int64. Infinite numbers and NaN
// are refused, as JSON has none. Maps and lists are changed in place.
func JSON(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", text.Quote(v.String(), 64))
		}
		return f, nil
	case float64:
		return jsonNumber(v)
	case []any:
		for i := range v {
			item, err := JSON(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case map[string]any:
		for key := range v {
			item, err := JSON(v[key])
			if err != nil {
				return nil, err
			}
			v[key] = item
		}
	}
	return value, nil
}

// jsonNumber converts a float to the number that unstructured objects hold for it.
func jsonNumber(f float64) (any, error) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, fmt.Errorf("the number %v cannot be written as JSON", f)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}

// maxDuplicates is how many duplicate keys of a document are named; each costs a search.
const maxDuplicates = 100

// converter counts what it has made, so that aliases cannot multiply without bound.
type converter struct {
	nodes int
	// path leads to the value that is converted: a key, or if that is empty, an index.
	path       []string
	index      []int
	duplicates []Duplicate
}

func (c *converter) value(n *yaml.Node, depth int) (any, error) {
	c.nodes++
	if c.nodes > MaxNodes {
		return nil, errorAt(n.Line, "more than %d values once aliases are expanded", MaxNodes)
	}
	if depth > MaxDepth {
		return nil, errorAt(n.Line, "nested deeper than %d levels once aliases are expanded", MaxDepth)
	}
	switch n.Kind {
	case yaml.ScalarNode:
		return scalar(n)
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			c.path = append(c.path, "")
			c.index = append(c.index, i)
			value, err := c.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			c.path, c.index = c.path[:len(c.path)-1], c.index[:len(c.index)-1]
			list[i] = value
		}
		return list, nil
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return nil, errorAt(n.Line, "unexpected kind of YAML node")
}

func (c *converter) mapping(n *yaml.Node, depth int) (any, error) {
	result := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			continue
		}
		key, err := Key(n.Content[i])
		if err != nil {
			return nil, err
		}
		c.path, c.index = append(c.path, key), append(c.index, 0)
		if _, ok := result[key]; ok && len(c.duplicates) < maxDuplicates {
			c.duplicate(n, i, key)
		}
		value, err := c.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		c.path, c.index = c.path[:len(c.path)-1], c.index[:len(c.index)-1]
		result[key] = value
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if isMerge(n.Content[i]) {
			if err := c.merge(n.Content[i+1], result, depth); err != nil {
				return nil, err
			}
		}
	}
	return result, nil
}

// duplicate notes the i-th key of a map if the map itself has it before.
func (c *converter) duplicate(n *yaml.Node, i int, key string) {
	for j := i - 2; j >= 0; j -= 2 {
		if isMerge(n.Content[j]) {
			continue
		}
		if other, err := Key(n.Content[j]); err == nil && other == key {
			c.duplicates = append(c.duplicates, Duplicate{Path: c.where(), Line: n.Content[i].Line, First: n.Content[j].Line})
			return
		}
	}
}

// where is the path to the current value, as in `spec.ports[0].name`.
func (c *converter) where() string {
	var b strings.Builder
	for i, key := range c.path {
		switch {
		case key == "":
			fmt.Fprintf(&b, "[%d]", c.index[i])
		case b.Len() > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// merge adds what a `<<` key refers to, a map or a list of maps of which earlier ones win. What is there already stays.
func (c *converter) merge(n *yaml.Node, into map[string]any, depth int) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, merged := range sources {
		value, err := c.value(merged, depth+1)
		if err != nil {
			return err
		}
		source, ok := value.(map[string]any)
		if !ok {
			return errorAt(n.Line, "<< needs a map or a list of maps")
		}
		for key, v := range source {
			if _, ok := into[key]; !ok {
				into[key] = v
			}
		}
	}
	return nil
}

// IsMerge reports whether a key is `<<`, which merges what it refers to into its map.
func IsMerge(n *yaml.Node) bool { return isMerge(n) }

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && (plain(n) || n.ShortTag() == "!!merge")
}

// Key gives the text of a key: booleans are `true` and `false`, integers are decimal. Errors are of type *Error.
func Key(n *yaml.Node) (string, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", errorAt(n.Line, "a key must be a single value, not a map or list")
	}
	value, err := scalar(n)
	if err != nil {
		return "", err
	}
	switch v := value.(type) {
	case nil:
		return "", errorAt(n.Line, "a key must not be empty or null")
	case string:
		return v, nil
	case float64:
		return floatKey(v), nil
	}
	return fmt.Sprint(value), nil
}

// floatKey writes a float as go-yaml does: with the digits of a float32.
func floatKey(v float64) string {
	switch text := strconv.FormatFloat(v, 'g', -1, 32); text {
	case "+Inf":
		return ".inf"
	case "-Inf":
		return "-.inf"
	case "NaN":
		return ".nan"
	default:
		return text
	}
}
