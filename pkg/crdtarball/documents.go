package crdtarball

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/yamldoc"
	"kudo.dev/kudo/pkg/text"
)

const (
	crdVersion = "apiextensions.k8s.io/v1"
	crdKind    = "CustomResourceDefinition"
	// shownFindings is how many mistakes an error lists.
	shownFindings = 20
)

// Documents reads the CustomResourceDefinitions of a tree: of all files that end in .yaml, .yml or .json, in the order
// of their paths, then of the documents in them. Every document must be an apiextensions.k8s.io/v1
// CustomResourceDefinition and no name may come twice; all files are checked, and the error, which is an *Error, lists
// what was found in which of them. Files of other names, such as a license, are ignored.
func Documents(tree fs.FS, limits Limits) ([]*unstructured.Unstructured, error) {
	r := &documentReader{limits: limits.withDefaults(), first: map[string]string{}}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name))) {
			r.ignored = append(r.ignored, name)
			return nil
		}
		return r.file(tree, name)
	})
	var known *Error
	switch {
	case errors.As(err, &known):
		return nil, known
	case err != nil:
		return nil, classifyDisk("reading the documents", err)
	case len(r.findings) > 0:
		return nil, &Error{Reason: ReasonDocuments, Err: r.summary()}
	case len(r.found) == 0:
		return nil, r.nothing()
	}
	return r.found, nil
}

type documentReader struct {
	limits   Limits
	text     int64
	nodes    int
	found    []*unstructured.Unstructured
	ignored  []string
	findings []string
	// first maps the name of a CustomResourceDefinition to the place where it was found.
	first map[string]string
}

func (r *documentReader) summary() error {
	shown, more := r.findings, ""
	if len(shown) > shownFindings {
		shown, more = shown[:shownFindings], fmt.Sprintf("; and %d more", len(shown)-shownFindings)
	}
	return fmt.Errorf("every document must be a %s %s: %s%s", crdVersion, crdKind, strings.Join(shown, "; "), more)
}

func (r *documentReader) nothing() error {
	switch n := len(r.ignored); n {
	case 0:
		return fail(ReasonDocuments, "the archive has no CustomResourceDefinition: it has no files with documents in them")
	default:
		shown := r.ignored[:min(n, shownFindings)]
		return fail(ReasonDocuments, "the archive has no CustomResourceDefinition: files must end in .yaml, .yml or .json, and there are only %s",
			strings.Join(shown, ", "))
	}
}

// file reads the documents of one file. What is wrong with them is a finding; an error ends the reading.
func (r *documentReader) file(tree fs.FS, name string) error {
	text, err := r.read(tree, name)
	if err != nil {
		return err
	}
	if what := notYAML(text); what != "" {
		r.finding(name, 0, "is %s", what)
		return nil
	}
	roots, err := yamldoc.Split(text)
	if err != nil {
		r.wrong(name, err)
		return nil
	}
	for _, root := range roots {
		if err := r.document(name, root); err != nil {
			return err
		}
	}
	return nil
}

// read returns a file's text, counting what all files have.
func (r *documentReader) read(tree fs.FS, name string) (string, error) {
	file, err := tree.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	left := r.limits.Documents - r.text
	data, err := io.ReadAll(io.LimitReader(file, left+1))
	if err != nil {
		return "", err
	}
	if int64(len(data)) > left {
		return "", fail(ReasonDocuments, "%s: the documents have more than the %d bytes allowed in all", name, r.limits.Documents)
	}
	r.text += int64(len(data))
	return string(data), nil
}

func (r *documentReader) document(name string, root *yaml.Node) error {
	value, _, err := yamldoc.Value(root)
	if err == nil {
		value, err = yamldoc.JSON(value)
	}
	if err != nil {
		r.wrong(name, err)
		return nil
	}
	if r.nodes += countNodes(value); r.nodes > r.limits.Nodes {
		return fail(ReasonDocuments, "%s: the documents hold more than the %d values allowed in all, aliases expanded", name, r.limits.Nodes)
	}
	content, ok := value.(map[string]any)
	if !ok {
		r.finding(name, root.Line, "is no object but %s", describe(value))
		return nil
	}
	object := &unstructured.Unstructured{Object: content}
	if what := notCRD(object); what != "" {
		r.finding(name, root.Line, "%s", what)
		return nil
	}
	place := fmt.Sprintf("%s line %d", name, root.Line)
	if first, twice := r.first[object.GetName()]; twice {
		r.finding(name, root.Line, "the %s %s is declared twice, first in %s", crdKind, object.GetName(), first)
		return nil
	}
	r.first[object.GetName()] = place
	r.found = append(r.found, object)
	return nil
}

func (r *documentReader) finding(name string, line int, format string, args ...any) {
	place := name
	if line > 0 {
		place = fmt.Sprintf("%s line %d", name, line)
	}
	r.findings = append(r.findings, place+" "+fmt.Sprintf(format, args...))
}

// wrong is a finding of text that is no YAML.
func (r *documentReader) wrong(name string, err error) {
	var where *yamldoc.Error
	if errors.As(err, &where) {
		r.finding(name, where.Line, "cannot be read: %s", where.Reason)
		return
	}
	r.finding(name, 0, "cannot be read: %s", err)
}

// notYAML says what a file is that surely holds no documents; empty if it may.
func notYAML(text string) string {
	start := strings.ToLower(strings.TrimLeft(strings.TrimPrefix(text[:min(len(text), 1024)], "\ufeff"), " \t\r\n"))
	switch {
	case strings.HasPrefix(start, "<!doctype html"), strings.HasPrefix(start, "<html"):
		return "an HTML page, as servers send it for an error or a login"
	case strings.HasPrefix(start, "<"):
		return "markup (it begins with <), no YAML"
	case strings.ContainsRune(text, 0):
		return "binary, no text"
	}
	return ""
}

// notCRD says why an object is no CustomResourceDefinition that could be applied; empty if it is one.
func notCRD(object *unstructured.Unstructured) string {
	apiVersion, kind := textOf(object.Object, "apiVersion"), textOf(object.Object, "kind")
	name := textOf(object.Object, "metadata", "name")
	switch {
	case kind == crdKind && apiVersion == "apiextensions.k8s.io/v1beta1":
		return fmt.Sprintf("is %s %s of %s, which Kubernetes no longer serves: convert it to %s", crdKind, quoteShort(name), apiVersion,
			crdVersion)
	case apiVersion == "" && kind == "":
		return "has no apiVersion and kind"
	case apiVersion != crdVersion || kind != crdKind:
		return fmt.Sprintf("is a %s of %s, named %s", short(kind), short(apiVersion), quoteShort(name))
	case name == "":
		return fmt.Sprintf("is a %s without metadata.name", crdKind)
	}
	group, plural := textOf(object.Object, "spec", "group"), textOf(object.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "versions")
	list, _ := versions.([]any)
	switch {
	case group == "" || plural == "":
		return fmt.Sprintf("the %s %s needs spec.group and spec.names.plural", crdKind, quoteShort(name))
	case name != plural+"."+group:
		return fmt.Sprintf("the %s %s must be named %s, as its spec.names.plural and spec.group are", crdKind, quoteShort(name),
			quoteShort(plural+"."+group))
	case len(list) == 0:
		return fmt.Sprintf("the %s %s has no spec.versions", crdKind, quoteShort(name))
	}
	return metadataFlaw(object)
}

// metadataFlaw finds metadata that the API machinery would drop or choke on.
func metadataFlaw(object *unstructured.Unstructured) string {
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(object.Object, "metadata", field); err != nil {
			return fmt.Sprintf("the %s %s has metadata.%s that are no map of strings", crdKind, quoteShort(object.GetName()), field)
		}
	}
	return ""
}

// textOf is a text within maps, empty if it is missing or no text.
func textOf(content map[string]any, fields ...string) string {
	value, _, err := unstructured.NestedFieldNoCopy(content, fields...)
	if err != nil {
		return ""
	}
	text, _ := value.(string)
	return text
}

func short(name string) string {
	if name == "" {
		return "nothing"
	}
	return strings.Trim(strconv.Quote(text.Truncate(name, 100)), `"`)
}

// describe names the type of a value.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return "the text " + quoteShort(v)
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "nothing"
}

// countNodes counts the values of a document.
func countNodes(value any) int {
	n := 1
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			n += countNodes(child)
		}
	case []any:
		for _, child := range v {
			n += countNodes(child)
		}
	}
	return n
}
