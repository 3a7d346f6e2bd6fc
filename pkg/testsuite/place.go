package testsuite

import (
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// place returns a file, and the line of what is wrong in it where that is known.
func place(file string, err error) string {
	m := &mistake{}
	if !errors.As(err, &m) {
		return file
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return file
	}
	if line := m.lineIn(string(content)); line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// lineIn finds the line of a mistake in the text of a file, or returns 0. The file is read a second time, since what Kubernetes reads
// YAML with knows no lines.
func (m *mistake) lineIn(content string) int {
	documents, err := yamldoc.Split(content)
	if err != nil {
		return 0
	}
	for _, document := range documents {
		item := at(at(document, m.field), m.index)
		if line := m.lineOf(item); line > 0 {
			return line
		}
	}
	return 0
}

// lineOf returns the line if an item is that of the mistake, or 0.
func (m *mistake) lineOf(item *yaml.Node) int {
	expression, name := at(item, "celExpr"), at(item, "ref")
	switch {
	case item == nil || scalar(expression) != m.source && scalar(name) != m.source:
		return 0
	case m.line == 0 || expression == nil:
		return item.Line
	case expression.Style&yaml.LiteralStyle != 0: // the text begins in the line after the `|`
		return expression.Line + m.line
	case expression.Style&yaml.FoldedStyle != 0:
		return expression.Line + 1
	}
	return expression.Line + m.line - 1
}

// scalar returns the text of a scalar, or that of none.
func scalar(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// at returns the value of a key of a map or the item of a list, or nil.
func at[K string | int](n *yaml.Node, key K) *yaml.Node {
	if n != nil && n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	if n == nil {
		return nil
	}
	switch key := any(key).(type) {
	case int:
		if n.Kind == yaml.SequenceNode && key < len(n.Content) {
			return n.Content[key]
		}
	case string:
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return nil
}
