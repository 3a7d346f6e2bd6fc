package render

import (
	"fmt"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"

	"kudo.dev/kudo/operators/yamldoc"
)

// writers are the functions that write YAML by themselves: what they print has the structure of their value, whatever
// texts it holds. True stands for those that write JSON.
var writers = map[string]bool{
	"toYaml": false,
	"toJson": true, "toPrettyJson": true, "toRawJson": true,
	"mustToJson": true, "mustToPrettyJson": true, "mustToRawJson": true,
}

// markedWriter is a writer whose text is marked, with a skeleton of the same maps and lists. White space around the text
// is the writer's, not the value's, and stays outside of the marks.
func markedWriter(name string, quiet func() bool) func(origin int, v any) (string, error) {
	write := formats[name].(func(any) (string, error))
	return func(origin int, v any) (string, error) {
		text, err := write(v)
		if err != nil || quiet() {
			return text, err
		}
		if strings.ContainsAny(text, markRunes) {
			return text, nil // which no rendering with this text passes
		}
		skeleton, err := skeletonOf(text, origin, writers[name])
		if err != nil {
			return "", err
		}
		core := strings.TrimSpace(text)
		at := strings.Index(text, core)
		return text[:at] + marked(origin, core, skeleton) + text[at+len(core):], nil
	}
}

// skeletonOf writes YAML anew, as JSON if it was written so, with a word for each scalar.
func skeletonOf(text string, origin int, asJSON bool) (string, error) {
	root, err := yamldoc.First([]byte(text))
	if err != nil {
		return "", fmt.Errorf("read the output: %w", err)
	}
	b := skeletonBuilder{origin: origin}
	if root == nil {
		return b.word(), nil
	}
	if asJSON {
		var out strings.Builder
		b.json(&out, root)
		return out.String(), nil
	}
	out, err := yamlv2.Marshal(b.value(root))
	return strings.TrimSpace(string(out)), err
}

// skeletonBuilder numbers its words, since the keys of a map must differ.
type skeletonBuilder struct{ origin, words int }

func (b *skeletonBuilder) word() string {
	b.words++
	return "x" + strconv.Itoa(b.words) + word(b.origin)
}

// value keeps the order of keys, by which the two renderings are compared.
func (b *skeletonBuilder) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = b.value(item)
		}
		return list
	case yaml.MappingNode:
		entries := make(yamlv2.MapSlice, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			entries = append(entries, yamlv2.MapItem{Key: b.word(), Value: b.value(n.Content[i+1])})
		}
		return entries
	}
	return b.word()
}

func (b *skeletonBuilder) json(out *strings.Builder, n *yaml.Node) {
	switch n.Kind {
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			b.json(out, item)
		}
		out.WriteByte(']')
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(`"` + b.word() + `":`)
			b.json(out, n.Content[i+1])
		}
		out.WriteByte('}')
	default:
		out.WriteString(`"` + b.word() + `"`)
	}
}
