package packages

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// insert adds a value to a list of a YAML file; or, under a name, to a map. The text around it stays as it is, byte by
// byte, where the file is written in lines; a list in brackets is written anew, with its comments. It makes sure that
// nothing else has changed for those who read the file.
func insert(text []byte, list, name string, value any) ([]byte, error) {
	root, err := yamldoc.First(text)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Kind != yaml.MappingNode {
		return nil, errors.New("the file is no map")
	}
	want, err := expected(text, list, name, value)
	if err != nil {
		return nil, err
	}
	for _, way := range []func([]byte, *yaml.Node, string, string, any) ([]byte, error){insertLines, insertNode} {
		changed, err := way(text, root, list, name, value)
		if err != nil {
			continue
		}
		var got any
		if yaml.Unmarshal(changed, &got) == nil && reflect.DeepEqual(got, want) {
			return changed, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be added to by kudo: is it written in an unusual way? Add it by hand", list)
}

// expected is what the file must mean afterwards.
func expected(text []byte, list, name string, value any) (any, error) {
	var before map[string]any
	if err := yaml.Unmarshal(text, &before); err != nil {
		return nil, err
	}
	if before == nil {
		before = map[string]any{}
	}
	encoded, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}
	var added any
	if err := yaml.Unmarshal(encoded, &added); err != nil {
		return nil, err
	}
	switch old := before[list].(type) {
	case nil:
		if name != "" {
			before[list] = map[string]any{name: added}
		} else {
			before[list] = []any{added}
		}
	case []any:
		before[list] = append(old, added)
	case map[string]any:
		old[name] = added
	default:
		return nil, fmt.Errorf("%s is neither a list nor a map", list)
	}
	return before, nil
}

// encode writes a value as an item of a list, or as an entry of a map.
func encode(name string, value any) ([]string, error) {
	var wrapped any = []any{value}
	if name != "" {
		wrapped = map[string]any{name: value}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(wrapped), encoder.Close()); err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"), nil
}

// under finds the key of a map and its value.
func under(root *yaml.Node, key string) (k, v *yaml.Node) {
	if root == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			return root.Content[i], root.Content[i+1]
		}
	}
	return nil, nil
}

// insertLines adds lines to a text, and changes none but one that says that a list is empty.
func insertLines(text []byte, root *yaml.Node, list, name string, value any) ([]byte, error) {
	added, err := encode(name, value)
	if err != nil {
		return nil, err
	}
	ending := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		ending = "\r\n"
	}
	lines := strings.Split(strings.TrimRight(string(text), "\r\n"), ending)
	if len(text) == 0 {
		lines = nil
	}
	key, old := under(root, list)
	at, indent := len(lines), 2
	switch {
	case root != nil && root.Style&yaml.FlowStyle != 0:
		return nil, errors.New("the file is written in brackets")
	case key == nil:
		added = append([]string{list + ":"}, indented(added, indent)...)
		indent = 0
	case len(old.Content) == 0 && old.Kind != yaml.AliasNode:
		line := key.Line - 1
		head, found := strings.CutSuffix(strings.TrimRight(uncommented(lines[line], old.LineComment), " "), empty(old))
		if !found || !strings.HasSuffix(strings.TrimRight(head, " "), ":") {
			return nil, errors.New("the empty list is written in an unusual way")
		}
		rest := strings.TrimPrefix(lines[line], uncommented(lines[line], old.LineComment))
		lines[line] = strings.TrimRight(head, " ") + strings.TrimRight(" "+rest, " ")
		at = key.Line
	case old.Style&yaml.FlowStyle != 0 || old.Kind != yaml.SequenceNode && old.Kind != yaml.MappingNode:
		return nil, errors.New("the list is written in brackets")
	default:
		indent = old.Column - 1
		at = endOf(lines, old.Content[len(old.Content)-1].Line, indent)
	}
	added = indented(added, indent)
	out := append(append(append([]string{}, lines[:at]...), added...), lines[at:]...)
	return []byte(strings.Join(out, ending) + ending), nil
}

// empty is how an empty value stands in the text.
func empty(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "[]"
	case yaml.MappingNode:
		return "{}"
	}
	return n.Value
}

// uncommented is a line without its comment.
func uncommented(line, comment string) string {
	if comment == "" {
		return line
	}
	before, _, _ := strings.Cut(line, comment)
	return before
}

func indented(lines []string, by int) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if out[i] = line; line != "" {
			out[i] = strings.Repeat(" ", by) + line
		}
	}
	return out
}

// endOf is behind the last line of a list whose last item begins at line start (from 1) with this indent. What stands
// further to the right belongs to it; empty lines and comments only if more of it follows.
func endOf(lines []string, start, indent int) int {
	end := start
	for i := start; i < len(lines); i++ {
		trimmed := strings.TrimLeft(lines[i], " ")
		right := len(lines[i])-len(trimmed) > indent
		switch {
		case strings.TrimSpace(trimmed) == "":
		case right:
			end = i + 1
		case strings.HasPrefix(trimmed, "#"):
		default:
			return end
		}
	}
	return end
}

// insertNode adds a value to the parsed file and writes that anew.
func insertNode(_ []byte, root *yaml.Node, list, name string, value any) ([]byte, error) {
	if root == nil {
		return nil, errors.New("the file is empty")
	}
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return nil, err
	}
	key, old := under(root, list)
	if key == nil {
		old = &yaml.Node{Kind: yaml.SequenceNode}
		if name != "" {
			old.Kind = yaml.MappingNode
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: list}, old)
	}
	if name != "" {
		old.Content = append(old.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name})
	}
	old.Content = append(old.Content, &node)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(root), encoder.Close())
	return out.Bytes(), err
}
