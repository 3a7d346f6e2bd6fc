package render

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// Place is where the value that an action prints stands in what a template renders to.
type Place struct {
	Origin
	// Kind is that of the object, if it has one.
	Kind string
	// Path are the keys and indexes that lead to the value; a key that a value makes is `*`.
	Path []string
	// Bare says that the value stands, as far as the template goes, without quotes and outside of a block scalar.
	Bare bool
}

// Places lists where the values stand that a template prints, in the order of the text. A template that does not render,
// or not to YAML, has none.
func (s *Set) Places(name string, v Variables) []Place {
	marker := s.marker()
	marked, err := marker.Text(name, v)
	if err != nil {
		return nil
	}
	_, filled, err := separate(marked)
	if err != nil {
		return nil
	}
	roots, err := yamldoc.Split(filled)
	if err != nil {
		return nil
	}
	f := finder{origins: marker.origins}
	for _, root := range roots {
		f.kind = ""
		for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
			if root.Content[i].Value == "kind" && !hasWord(root.Content[i+1].Value) {
				f.kind = root.Content[i+1].Value
			}
		}
		f.node(root, nil)
	}
	return f.places
}

type finder struct {
	origins []Origin
	kind    string
	places  []Place
}

func (f *finder) node(n *yaml.Node, path []string) {
	path = path[:len(path):len(path)]
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if hasWord(key) {
				key = "*"
				f.scalar(n.Content[i], append(path, key))
			}
			f.node(n.Content[i+1], append(path, key))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			f.node(item, append(path, strconv.Itoa(i)))
		}
	case yaml.ScalarNode:
		f.scalar(n, path)
	}
}

func (f *finder) scalar(n *yaml.Node, path []string) {
	const written = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	for _, match := range words.FindAllStringSubmatch(n.Value, -1) {
		if number, err := strconv.Atoi(match[1]); err == nil && number < len(f.origins) {
			f.places = append(f.places, Place{Origin: f.origins[number], Kind: f.kind, Path: path, Bare: n.Style&written == 0})
		}
	}
}
