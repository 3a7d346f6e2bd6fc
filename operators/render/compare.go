package render

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// comparison compares the nodes of a rendering with those of the same rendering filled with words.
type comparison struct {
	origins []Origin
	free    bool // apiVersion and kind may hold values
}

// documents returns the first difference, or nil. The nodes of want hold words.
func (c *comparison) documents(is, want []*yaml.Node) *difference {
	if len(is) != len(want) {
		return &difference{what: fmt.Sprintf("%s instead of %d", count(len(is), "document"), len(want))}
	}
	for i := range is {
		if d := c.node(is[i], want[i], ""); d != nil {
			return d
		}
		if c.free {
			continue
		}
		if d := c.object(is[i], want[i], 0); d != nil {
			return d
		}
	}
	return nil
}

func differs(path, format string, args ...any) *difference {
	if path == "" {
		path = "the document"
	}
	return &difference{what: path + " " + fmt.Sprintf(format, args...)}
}

// node compares two nodes that stand at the same place.
func (c *comparison) node(is, want *yaml.Node, path string) *difference {
	switch {
	case is.Kind != want.Kind:
		return differs(path, "is %s instead of %s", kindName(is), kindName(want))
	case (is.Anchor == "") != (want.Anchor == ""), is.Anchor != want.Anchor && !hasWord(want.Anchor):
		return differs(path, "has another anchor")
	case is.Style&yaml.TaggedStyle != want.Style&yaml.TaggedStyle, is.Style&yaml.TaggedStyle != 0 && is.Tag != want.Tag:
		return differs(path, "has another tag")
	}
	switch is.Kind {
	case yaml.MappingNode:
		return c.mapping(is, want, path)
	case yaml.SequenceNode:
		if len(is.Content) != len(want.Content) {
			return differs(path, "has %s instead of %d", count(len(is.Content), "item"), len(want.Content))
		}
		for i := range is.Content {
			if d := c.node(is.Content[i], want.Content[i], path+"["+strconv.Itoa(i)+"]"); d != nil {
				return d
			}
		}
	case yaml.AliasNode:
		if is.Value != want.Value {
			return differs(path, "refers to another anchor")
		}
	case yaml.ScalarNode:
		if !keeps(is.Value, want.Value) {
			return differs(path, "lacks text of the template")
		}
	}
	return nil
}

// mapping compares two maps: the keys of the template are the same, and those of values are new and no merges.
func (c *comparison) mapping(is, want *yaml.Node, path string) *difference {
	if len(is.Content) != len(want.Content) {
		return differs(path, "has %s instead of %d", count(len(is.Content)/2, "key"), len(want.Content)/2)
	}
	keys := map[string]bool{} // whether a value made the key
	for i := 0; i+1 < len(is.Content); i += 2 {
		key, wanted := is.Content[i], want.Content[i]
		if d := c.node(key, wanted, path); d != nil {
			return d
		}
		made := hasWord(wanted.Value)
		switch {
		case made && yamldoc.IsMerge(key):
			return differs(path, "has a merge key")
		case !made && key.Value != wanted.Value:
			return differs(path, "has another key")
		}
		name, err := yamldoc.Key(key)
		if err != nil {
			name = key.Value // decoding says what is wrong with it
		}
		if before, double := keys[name]; double && (made || before) && !yamldoc.IsMerge(key) {
			return differs(path, "has a key twice")
		}
		keys[name] = keys[name] || made
		if d := c.node(is.Content[i+1], want.Content[i+1], child(path, wanted)); d != nil {
			return d
		}
	}
	return nil
}

// child is the path of a key. One that a value makes is not shown, since it may be a secret.
func child(path string, key *yaml.Node) string {
	name := key.Value
	if hasWord(name) || key.Kind != yaml.ScalarNode {
		name = "*"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// object finds a value in apiVersion or kind of an object, and of the items of a list.
func (c *comparison) object(is, want *yaml.Node, depth int) *difference {
	for _, n := range []*yaml.Node{is, want} {
		if n.Kind == yaml.AliasNode && depth < yamldoc.MaxDepth {
			return c.object(resolved(is), resolved(want), depth+1)
		}
	}
	if is.Kind != yaml.MappingNode || want.Kind != yaml.MappingNode || depth >= yamldoc.MaxDepth {
		return nil
	}
	for i := 0; i+1 < len(is.Content); i += 2 {
		if d := c.entry(is.Content[i:i+2], want.Content[i:i+2], depth); d != nil {
			return d
		}
	}
	return nil
}

// entry looks at a key of an object and its value.
func (c *comparison) entry(is, want []*yaml.Node, depth int) *difference {
	name, _ := yamldoc.Key(is[0])
	switch {
	case yamldoc.IsMerge(is[0]):
		return c.merged(is[1], want[1], depth)
	case name == "kind" || name == "apiVersion":
		if text := want[0].Value + resolved(want[1]).Value; hasWord(text) || hasWord(resolved(want[0]).Value) {
			return &difference{kind: true, what: name, parameter: c.parameterOf(text)}
		}
	case name == "items":
		return c.each(is[1], want[1], depth)
	}
	return nil
}

// merged looks at what a merge key adds to an object.
func (c *comparison) merged(is, want *yaml.Node, depth int) *difference {
	if resolved(is).Kind == yaml.SequenceNode {
		return c.each(is, want, depth)
	}
	return c.object(is, want, depth+1)
}

// each looks at the items of a list, or at what is merged.
func (c *comparison) each(is, want *yaml.Node, depth int) *difference {
	is, want = resolved(is), resolved(want)
	if is.Kind != yaml.SequenceNode || want.Kind != yaml.SequenceNode {
		return nil
	}
	for i := range is.Content {
		if d := c.object(is.Content[i], want.Content[i], depth+1); d != nil {
			return d
		}
	}
	return nil
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

var words = regexp.MustCompile(`(?:x[0-9]+)?v([0-9]+)` + string(opening))

// parameterOf is the only parameter that the action of a word prints, or empty.
func (c *comparison) parameterOf(text string) string {
	if m := words.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < len(c.origins) && len(c.origins[n].Parameters) == 1 {
			return c.origins[n].Parameters[0]
		}
	}
	return ""
}

// keeps reports whether the text of the template around the words of a scalar is in the scalar with values: a value like
// "x #" would cut it off. White space does not count, since YAML folds it.
func keeps(is, want string) bool {
	if !hasWord(want) {
		return is == want
	}
	is, want = withoutSpace(is), withoutSpace(want)
	parts := words.Split(want, -1)
	first, last := parts[0], parts[len(parts)-1]
	if len(is) < len(first)+len(last) || !strings.HasPrefix(is, first) || !strings.HasSuffix(is, last) {
		return false
	}
	is = is[len(first) : len(is)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(is, part)
		if at < 0 {
			return false
		}
		is = is[at+len(part):]
	}
	return true
}

func withoutSpace(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			return -1
		}
		return r
	}, text)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "one value"
}
