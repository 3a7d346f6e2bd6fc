// Package yamldoc reads YAML exactly as Kubernetes does, but bounded, with lines, and with integers kept exact.
//
// Kubernetes and KUDO read YAML 1.1 by sigs.k8s.io/yaml: `yes` and `on` are booleans, dates are text, keys become
// text, and the last of duplicate keys wins. So does this package; but it knows the line of each value, names each
// duplicate key, never makes a float of an integer, and refuses alias bombs before they grow.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strconv"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
)

// What is refused, so that text from outside cannot take more than bounded memory. The API server takes requests
// of at most 3 MiB, so no document that is larger could be of use.
const (
	// MaxBytes of one document.
	MaxBytes = 3 << 20
	// MaxDepth of maps and lists within one another.
	MaxDepth = 200
	// MaxNodes is how many values one document may hold once its aliases are expanded.
	MaxNodes = 500_000
)

// Error says what is wrong in a text, and in which line.
type Error struct {
	// Line counts from 1.
	Line int
	// Reason without the line.
	Reason string
}

// Error is the reason with the line in front.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

func errorAt(line int, format string, args ...any) *Error {
	return &Error{Line: line, Reason: fmt.Sprintf(format, args...)}
}

// First returns the root of the first document of a text, or nil if that is empty. Later documents are ignored, as
// KUDO does for the files of a package. Errors are of type *Error.
func First(text []byte) (*yaml.Node, error) {
	roots, err := parse(text, 1, 1)
	if err != nil || len(roots) == 0 {
		return nil, err
	}
	return roots[0], nil
}

// Split returns the roots of all documents of a text that are not empty, in order. Documents are parted as KUDO
// parts them: wherever a line begins with `---`, whatever follows on that line. Errors are of type *Error.
func Split(text string) ([]*yaml.Node, error) {
	var roots []*yaml.Node
	for line, part := range parts(text) {
		found, err := parse([]byte(part), line, -1)
		if err != nil {
			return nil, err
		}
		roots = append(roots, found...)
	}
	return roots, nil
}

// Documents yields each document of a text that is not empty, parted as by Split. The root of a document that cannot be parsed is nil,
// and the error of type *Error says why; the documents after it are yielded all the same.
func Documents(text string) iter.Seq2[*yaml.Node, error] {
	return func(yield func(*yaml.Node, error) bool) {
		for line, part := range parts(text) {
			roots, err := parse([]byte(part), line, -1)
			if err != nil && !yield(nil, err) {
				return
			}
			for _, root := range roots {
				if !yield(root, nil) {
					return
				}
			}
		}
	}
}

// Count is the number of documents that Split parts a text into, well-formed or not.
func Count(text string) (n int) {
	for range parts(text) {
		n++
	}
	return n
}

// parts are the texts of the documents that are not empty, by the lines that they begin in.
func parts(text string) iter.Seq2[int, string] {
	text = strings.TrimPrefix(text, "\ufeff")
	if rest, ok := strings.CutPrefix(text, "---"); ok {
		text = rest
	}
	return func(yield func(int, string) bool) {
		for line, more := 1, true; more; {
			var part, rest string
			part, rest, more = strings.Cut(text, "\n---")
			if !blank(part) && !yield(line, part) {
				return
			}
			line += strings.Count(part, "\n") + 1
			text = rest
		}
	}
}

// blank reports whether a text holds nothing but white space, comments and directives.
func blank(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && !strings.HasPrefix(line, "%YAML") {
			return false
		}
	}
	return true
}

// parse reads at most limit documents (-1: all) of a text whose first line has the number line.
func parse(text []byte, line, limit int) (roots []*yaml.Node, err error) {
	if len(text) > MaxBytes {
		return nil, errorAt(line, "the document has %d bytes, more than the %d that the API server takes", len(text), MaxBytes)
	}
	// The parser reports its own errors by return; anything else it throws is its bug, and must not end the process.
	defer func() {
		if r := recover(); r != nil {
			roots, err = nil, errorAt(line, "the YAML parser gave up: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for limit != 0 {
		limit--
		var root yaml.Node
		switch err := decoder.Decode(&root); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return nil, parserError(text, err, line)
		}
		if root.Kind != yaml.DocumentNode || len(root.Content) == 0 {
			continue
		}
		if err := measure(root.Content[0], line-1); err != nil {
			return nil, err
		}
		if limit >= 0 || !isNull(root.Content[0]) {
			roots = append(roots, root.Content[0])
		}
	}
	return roots, nil
}

var (
	parserMessage = regexp.MustCompile(`(?s)^(?:yaml: )?(?:line (\d+): )?(.*)$`)
	// Messages of the parser proper, which counts lines from 0, unlike the scanner.
	fromZero = regexp.MustCompile(`^did not find expected (key|node content|',' or|'-' indicator|<)`)
	anchor   = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// parserError turns an error of the parser into one of the text. Where go-yaml v2 fails too its line is taken: that
// is where the problem is, while v3 tells where the map or list around it begins.
func parserError(text []byte, err error, line int) *Error {
	match := parserMessage.FindStringSubmatch(err.Error())
	var ignored any
	if old := yamlv2.Unmarshal(text, &ignored); old != nil {
		if m := parserMessage.FindStringSubmatch(old.Error()); m[1] != "" {
			match = m
		}
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		n = 1
	}
	if fromZero.MatchString(match[2]) {
		n++
	}
	if m := anchor.FindStringSubmatch(match[2]); m != nil {
		n = bytes.Count(text[:aliasOffset(text, "*"+m[1])], []byte("\n")) + 1
	}
	last := bytes.Count(bytes.TrimRight(text, "\r\n"), []byte("\n")) + 1
	return errorAt(line+min(n, last)-1, "malformed YAML: %s", match[2])
}

// aliasOffset returns where a text uses an alias; its length if it does not. A longer name that begins so is another alias.
func aliasOffset(text []byte, alias string) int {
	for at := 0; ; at++ {
		next := bytes.Index(text[at:], []byte(alias))
		if next < 0 {
			return len(text)
		}
		at += next
		if end := at + len(alias); end == len(text) || !isAnchor(text[end]) {
			return at
		}
	}
}

// isAnchor reports whether the name of an anchor may hold a character.
func isAnchor(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// measure refuses what is nested too deep, and shifts the lines of a document to those of its text.
func measure(root *yaml.Node, shift int) *Error {
	type item struct {
		node  *yaml.Node
		depth int
	}
	for stack := []item{{root, 1}}; len(stack) > 0; {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		top.node.Line += shift
		if top.depth > MaxDepth {
			return errorAt(top.node.Line, "nested deeper than %d levels", MaxDepth)
		}
		for _, child := range top.node.Content {
			stack = append(stack, item{child, top.depth + 1})
		}
	}
	return nil
}
