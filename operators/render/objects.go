package render

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/yamldoc"
)

// Result is what a template renders to.
type Result struct {
	// Objects in the order of the text; lists are replaced by their items.
	Objects []*unstructured.Unstructured
	// Warnings name what is not an error, but surely a mistake.
	Warnings []Warning
}

// Warning names a mistake that does no harm by itself.
type Warning struct {
	// Template is the path of the file, and Line that of the rendered text.
	Template string
	Line     int
	// Message says what is wrong.
	Message string
}

// String is the whole sentence.
func (w Warning) String() string {
	return fmt.Sprintf("template %s, line %d of what it renders to: %s", w.Template, w.Line, w.Message)
}

// Option changes what Objects accepts.
type Option func(*decoder)

// WithoutNames accepts objects without metadata.name, such as the pods of Pipe tasks, whose name the engine sets.
func WithoutNames() Option { return func(d *decoder) { d.unnamed = true } }

// WithAnyKind accepts objects whose apiVersion or kind comes from a value, as in the templates of install plans.
func WithAnyKind() Option { return func(d *decoder) { d.free = true } }

// Objects renders a template and decodes the objects it holds, which may be none. Values that change the structure
// of the text are refused. The error is of type *Error.
func (s *Set) Objects(name string, v Variables, options ...Option) (Result, error) {
	text, values, err := s.text(name, v)
	if err != nil {
		return Result{}, err
	}
	if err := v.Budget.parse(name, text); err != nil {
		return Result{}, err
	}
	d := newDecoder(name, options)
	if s.checked(name, v) || !d.free && suspicious(text, values) {
		roots, err := s.checkValues(name, text, v, d.free)
		if err != nil {
			return Result{}, err
		}
		if roots != nil {
			return d.objects(roots)
		}
		return d.decode(text)
	}
	result, err := d.decode(text)
	if err == nil && len(result.Warnings) > 0 { // one of two equal keys may be of a plain value
		_, err = s.checkValues(name, text, v, d.free)
	}
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// All renders several templates to objects, on all processors. The results are in the order of the names; of several
// errors, that of the first name is returned. The error is of type *Error.
func (s *Set) All(names []string, v Variables, options ...Option) ([]Result, error) {
	results, errs := make([]Result, len(names)), make([]error, len(names))
	parallel(len(names), func(i int) { results[i], errs[i] = s.Objects(names[i], v, options...) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// parallel calls a function for each number below n, on all processors. There is one goroutine for each of them and
// not for each number, since templates nest deep in the stack, which every new goroutine would have to grow again.
func parallel(n int, do func(int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var others sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// Parameters renders a template that is a parameter file: a YAML map of names to values. The error is of type *Error.
func (s *Set) Parameters(name string, v Variables) (map[string]string, error) {
	text, err := s.Text(name, v)
	if err != nil {
		return nil, err
	}
	if err := v.Budget.parse(name, text); err != nil {
		return nil, err
	}
	if s.checked(name, v) {
		if _, err := s.checkValues(name, text, v, true); err != nil {
			return nil, err
		}
	}
	values, err := params.ReadFile([]byte(text))
	if err != nil {
		e := &Error{Kind: DecodeError, Template: name, Reason: err.Error(), Err: err,
			Hint: `quote values that may be empty, like X: "{{ .Params.X }}"`}
		var at *yamldoc.Error
		if errors.As(err, &at) {
			e.Line = at.Line
		}
		return nil, e
	}
	return values, nil
}

// Decode decodes the objects of a rendered text. The name of the template is for messages. Integers are int64; of
// duplicate keys the last counts and a warning names it. The error is of type *Error and does not show the text,
// which may hold secrets.
func Decode(name, text string, options ...Option) (Result, error) {
	d := newDecoder(name, options)
	return d.decode(text)
}

func newDecoder(name string, options []Option) *decoder {
	d := &decoder{name: name}
	for _, option := range options {
		option(d)
	}
	return d
}

func (d *decoder) decode(text string) (Result, error) {
	roots, err := yamldoc.Split(text)
	if err != nil {
		return Result{}, d.wrap(err)
	}
	return d.objects(roots)
}

// objects decodes the objects of documents.
func (d *decoder) objects(roots []*yaml.Node) (Result, error) {
	for _, root := range roots {
		d.document++
		value, duplicates, err := yamldoc.Value(root)
		if err == nil {
			value, err = yamldoc.JSON(value)
		}
		if err != nil {
			return Result{}, d.wrap(err)
		}
		for _, duplicate := range duplicates {
			d.result.Warnings = append(d.result.Warnings, Warning{Template: d.name, Line: duplicate.Line,
				Message: fmt.Sprintf("%s is a duplicate of line %d, whose value is lost", duplicate.Path, duplicate.First)})
		}
		if e := d.add(value, root.Line, 0); e != nil {
			return Result{}, e
		}
	}
	return d.result, nil
}

type decoder struct {
	name     string
	unnamed  bool
	free     bool
	document int
	result   Result
}

// wrap makes an *Error of a mistake in YAML.
func (d *decoder) wrap(err error) error {
	e := &Error{Kind: DecodeError, Template: d.name, Document: d.document, Reason: err.Error(), Err: err,
		Hint: "render the template to see the line"}
	var at *yamldoc.Error
	if errors.As(err, &at) {
		e.Line, e.Reason = at.Line, at.Reason
	}
	return e
}

func (d *decoder) fail(line int, hint, format string, args ...any) *Error {
	return &Error{Kind: DecodeError, Template: d.name, Document: d.document, Line: line, Hint: hint,
		Reason: fmt.Sprintf("document %d: ", d.document) + fmt.Sprintf(format, args...)}
}

// add checks what a document holds and adds its objects to the result.
func (d *decoder) add(value any, line, depth int) *Error {
	if value == nil {
		return nil
	}
	content, ok := value.(map[string]any)
	if !ok {
		return d.fail(line, "it must begin with apiVersion and kind", "is no object but %s", describe(value))
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if items, ok := content["items"].([]any); ok && strings.HasSuffix(kind, "List") && depth < 10 {
		return d.items(items, apiVersion, kind, line, depth)
	}
	switch {
	case apiVersion == "" && kind == "":
		return d.fail(line, "", "has no apiVersion and no kind")
	case kind == "":
		return d.fail(line, "", "has no kind (its apiVersion is %s)", apiVersion)
	case apiVersion == "":
		return d.fail(line, "", "%s has no apiVersion", kind)
	}
	if e := d.metadata(content, kind, line); e != nil {
		return e
	}
	d.result.Objects = append(d.result.Objects, &unstructured.Unstructured{Object: content})
	return nil
}

// items adds the members of a list. Those of a typed list, such as ConfigMapList, need not say their kind.
func (d *decoder) items(items []any, apiVersion, kind string, line, depth int) *Error {
	for _, item := range items {
		content, ok := item.(map[string]any)
		if ok && kind != "List" {
			if content["kind"] == nil {
				content["kind"] = strings.TrimSuffix(kind, "List")
			}
			if content["apiVersion"] == nil {
				content["apiVersion"] = apiVersion
			}
		}
		if e := d.add(item, line, depth+1); e != nil {
			return e
		}
	}
	return nil
}

// metadata checks what every object needs in order to be handled at all.
func (d *decoder) metadata(content map[string]any, kind string, line int) *Error {
	if content["metadata"] == nil && d.unnamed {
		content["metadata"] = map[string]any{}
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		if content["metadata"] == nil {
			return d.fail(line, "", "%s has no metadata.name", kind)
		}
		return d.fail(line, "", "the metadata of %s is no map but %s", kind, describe(content["metadata"]))
	}
	for _, field := range []string{"name", "namespace", "generateName"} {
		if _, isText := metadata[field].(string); metadata[field] != nil && !isText {
			return d.fail(line, "quote it", "metadata.%s of %s is no text but %s", field, kind, describe(metadata[field]))
		}
	}
	name, _ := metadata["name"].(string)
	if name == "" && !d.unnamed {
		hint := ""
		if metadata["generateName"] != nil {
			hint = "generateName cannot be used: each run would make another object"
		}
		return d.fail(line, hint, "%s has no metadata.name", kind)
	}
	for _, field := range []string{"labels", "annotations"} {
		if e := d.texts(metadata[field], field, kind+" "+name, line); e != nil {
			return e
		}
	}
	return nil
}

// texts checks that labels or annotations hold text only, as the API server does.
func (d *decoder) texts(value any, field, object string, line int) *Error {
	if value == nil {
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return d.fail(line, "", "metadata.%s of %s is no map but %s", field, object, describe(value))
	}
	for key, entry := range entries {
		if _, isText := entry.(string); entry != nil && !isText {
			return d.fail(line, "quote it", "metadata.%s.%s of %s is no text but %s", field, key, object, describe(entry))
		}
	}
	return nil
}

// describe names the type of a value, not the value, which may be a secret.
func describe(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprintf("a %T", value)
}
