package yamldoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kudo.dev/kudo/pkg/text"

	"go.yaml.in/yaml/v3"
)

var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// Text turns a node into the text of a parameter; null tells that there is no value. A number that is a plain
// decimal stays as it is written (1.10, 1000000, digits beyond 64 bits); any other notation of YAML (0x1F, 0777, 1_000, 1e3, .5) becomes
// plain decimal. Booleans are
// `true` and `false`, whatever their spelling. Maps and lists become YAML with sorted keys. Errors are of type *Error.
func Text(n *yaml.Node) (text string, null bool, err error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode && plain(n) && decimal.MatchString(n.Value) && !isDate(n.Value) {
		return n.Value, false, nil
	}
	value, _, err := Value(n)
	if err != nil {
		return "", false, err
	}
	if value == nil {
		return "", true, nil
	}
	if text, err = ValueText(value); err != nil {
		return "", false, errorAt(n.Line, "%v", err)
	}
	return text, false, nil
}

// Literal is the text of a scalar as it is written, without quotes, or false if the node is no scalar. A null is empty.
func Literal(n *yaml.Node) (string, bool) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", false
	}
	if isNull(n) {
		return "", true
	}
	return n.Value, true
}

// ValueText is the text of a decoded value: a scalar as it prints without an exponent, anything else as YAML with
// sorted keys. It takes what YAML and JSON decoders make, and any type that JSON can write.
func ValueText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case int:
		return strconv.Itoa(v), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float64:
		return floatText(v), nil
	case json.Number:
		if integer.MatchString(v.String()) {
			return strings.TrimPrefix(v.String(), "+"), nil // the time to convert the digits grows with the square of their number
		}
		if i, ok := new(big.Int).SetString(v.String(), 10); ok {
			return i.String(), nil
		}
		f, err := v.Float64()
		if err != nil {
			return "", fmt.Errorf("the number %s is too large", text.Quote(v.String(), 64))
		}
		return floatText(f), nil
	}
	return Marshal(value)
}

// floatText writes a float without an exponent, as long as that stays readable.
func floatText(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return ".inf"
	case math.IsInf(v, -1):
		return "-.inf"
	case math.IsNaN(v):
		return ".nan"
	case v == 0: // also -0
		return "0"
	case math.Abs(v) < 1e21 && math.Abs(v) >= 1e-7:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// Marshal writes a value as YAML with sorted keys; integers of any size keep their digits, and text that YAML would
// read as something else is quoted.
func Marshal(value any) (string, error) {
	node, err := build(value, 1)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}
	return out.String(), nil
}

func build(value any, depth int) (*yaml.Node, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", MaxDepth)
	}
	switch v := value.(type) {
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	case string:
		node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if _, isText := resolve(v).(string); !isText || v == "<<" {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node, nil
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range v {
			child, err := build(item, depth+1)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		return node, nil
	case map[string]any:
		return buildMap(v, depth)
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}, nil
	case int, int64, uint64, float64, json.Number:
		text, err := ValueText(v)
		if err != nil {
			return nil, err
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Value: text}, nil
	}
	return buildOther(value, depth)
}

func buildMap(v map[string]any, depth int) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	keys := make([]string, 0, len(v))
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		name, err := build(key, depth+1)
		if err != nil {
			return nil, err
		}
		child, err := build(v[key], depth+1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, name, child)
	}
	return node, nil
}

// buildOther takes any other Go type by way of its JSON.
func buildOther(value any, depth int) (*yaml.Node, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	plainValue, _, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return build(plainValue, depth+1)
}
