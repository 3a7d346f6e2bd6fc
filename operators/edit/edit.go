// Package edit adds entries to the YAML files of a package, and changes no other line.
package edit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// Entry is a value to add to a file.
type Entry struct {
	// List is the key of the list or map that the value is added to. A file that does not have the key gets it.
	List string
	// Name is the key of the value in a map. The name of an item of a list is empty.
	Name string
	// Value is encoded by its YAML tags.
	Value any
}

// Insert returns the text of a YAML file with an entry. All other lines stay as they are, byte by byte. There is one exception: a
// file with the list in brackets is written anew, with its comments. The error says that the list cannot be added to; Insert
// returns no text in which anything but the list has another meaning than before.
func Insert(text []byte, entry Entry) ([]byte, error) {
	root, err := yamldoc.First(text)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Kind != yaml.MappingNode {
		return nil, errors.New("the file is no map")
	}
	want, err := expected(text, entry)
	if err != nil {
		return nil, err
	}
	for _, insert := range []func([]byte, *yaml.Node, Entry) ([]byte, error){insertLines, insertNode} {
		changed, err := insert(text, root, entry)
		if err != nil {
			continue
		}
		var got any
		if yaml.Unmarshal(changed, &got) == nil && reflect.DeepEqual(got, want) {
			return changed, nil
		}
	}
	return nil, fmt.Errorf("%s cannot be added to by kudo: is it written in an unusual way? Add it by hand", entry.List)
}

// expected returns what the file must mean with the entry.
func expected(text []byte, entry Entry) (any, error) {
	var before map[string]any
	if err := yaml.Unmarshal(text, &before); err != nil {
		return nil, err
	}
	if before == nil {
		before = map[string]any{}
	}
	encoded, err := yaml.Marshal(entry.Value)
	if err != nil {
		return nil, err
	}
	var added any
	if err := yaml.Unmarshal(encoded, &added); err != nil {
		return nil, err
	}
	switch old := before[entry.List].(type) {
	case nil:
		if entry.Name != "" {
			before[entry.List] = map[string]any{entry.Name: added}
		} else {
			before[entry.List] = []any{added}
		}
	case []any:
		before[entry.List] = append(old, added)
	case map[string]any:
		old[entry.Name] = added
	default:
		return nil, fmt.Errorf("%s is neither a list nor a map", entry.List)
	}
	return before, nil
}

// encode returns the lines of a value as an item of a list, or as an entry of a map.
func encode(entry Entry) ([]string, error) {
	var wrapped any = []any{entry.Value}
	if entry.Name != "" {
		wrapped = map[string]any{entry.Name: entry.Value}
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
func insertLines(text []byte, root *yaml.Node, entry Entry) ([]byte, error) {
	added, err := encode(entry)
	if err != nil {
		return nil, err
	}
	lines, endings, err := splitLines(string(text))
	if err != nil {
		return nil, err
	}
	key, old := under(root, entry.List)
	at, indent := lastText(lines), 2
	switch {
	case root != nil && root.Style&yaml.FlowStyle != 0:
		return nil, errors.New("the file is written in brackets")
	case key == nil:
		added = append([]string{entry.List + ":"}, indented(added, indent)...)
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
	return joinLines(lines, endings, at, indented(added, indent)), nil
}

// splitLines returns the lines of a text, and how each ends: a file may have lines of several systems.
func splitLines(text string) (lines, endings []string, err error) {
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if strings.ContainsAny(body, "\r\u0085\u2028\u2029") {
			return nil, nil, errors.New("a line has a character that ends a line for YAML, so that lines of nodes are others")
		}
		lines, endings = append(lines, body), append(endings, line[len(body):])
	}
	return lines, endings, nil
}

// lastText is behind the last line that is not empty.
func lastText(lines []string) int {
	at := len(lines)
	for at > 0 && lines[at-1] == "" {
		at--
	}
	return at
}

// joinLines returns the text of lines, with others added at an index, which end as the line before them does.
func joinLines(lines, endings []string, at int, added []string) []byte {
	ending := "\n"
	for i := range min(at, len(endings)) {
		ending = cmp.Or(endings[i], ending)
	}
	var out strings.Builder
	for i := range len(lines) + 1 {
		if i == at {
			for _, line := range added {
				out.WriteString(line + ending)
			}
		}
		if i < len(lines) {
			out.WriteString(lines[i] + cmp.Or(endings[i], ending))
		}
	}
	return []byte(out.String())
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
func insertNode(_ []byte, root *yaml.Node, entry Entry) ([]byte, error) {
	if root == nil {
		return nil, errors.New("the file is empty")
	}
	var node yaml.Node
	if err := node.Encode(entry.Value); err != nil {
		return nil, err
	}
	key, old := under(root, entry.List)
	if key == nil {
		old = &yaml.Node{Kind: yaml.SequenceNode}
		if entry.Name != "" {
			old.Kind = yaml.MappingNode
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: entry.List}, old)
	}
	if entry.Name != "" {
		old.Content = append(old.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: entry.Name})
	}
	old.Content = append(old.Content, &node)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(root), encoder.Close())
	return out.Bytes(), err
}
