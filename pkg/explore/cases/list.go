package cases

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A list of cases is a file such as customizations_tests.yaml beside customizations.yaml, in the older form of Karmada's cases:
//
//	tests:
//	- desiredInputPath: testdata/desired.yaml     # in place of desiredObj; likewise observedInputPath and statusInputPath
//	  desiredReplicas: 2                          # in place of inputReplicas
//	  operation: ReviseReplica
//
// Paths start at the folder. All fields of a case may stand in an entry, too, and a document of the list that has no tests is a case
// itself.

// isList reports whether a file of this name is a list of cases.
func isList(name string) bool {
	return isYAML(name) && strings.HasSuffix(strings.TrimSuffix(name, path.Ext(name)), "_tests")
}

// readList adds the cases of a list.
func (l *loader) readList(name string) {
	text, err := read(l.tree, name)
	if err != nil {
		l.Cases = append(l.Cases, Case{Name: path.Base(name), Place: name, Broken: err})
		return
	}
	for _, d := range documents(name, text) {
		entries, isList := d.field("tests").([]any)
		if !isList {
			l.Cases = append(l.Cases, d.asCase())
			continue
		}
		l.Warnings = append(l.Warnings, d.warnings...)
		for i, entry := range entries {
			l.readEntry(fmt.Sprintf("%s tests[%d]", d.place, i), entry)
		}
	}
}

// readEntry adds the case of an entry. An entry whose file holds cases adds none: the file is read for itself.
func (l *loader) readEntry(place string, value any) {
	entry := document{place: place, value: value}
	fields, isMap := value.(map[string]any)
	if !isMap {
		l.Cases = append(l.Cases, entry.asCase())
		return
	}
	fields = maps.Clone(fields)
	entry.value = fields
	for _, field := range []string{"desiredReplicas", "desiredReplica"} {
		if n, there := fields[field]; there && fields["inputReplicas"] == nil {
			fields["inputReplicas"] = n
			delete(fields, field)
		}
	}
	if operation := fields["operation"]; operation != nil && fields["name"] == nil {
		fields["name"] = fmt.Sprint(operation)
	}
	for _, field := range []string{"desiredInputPath", "observedInputPath", "statusInputPath"} {
		text, there := fields[field]
		if !there {
			continue
		}
		delete(fields, field)
		documents, err := l.input(fmt.Sprint(text))
		if err != nil {
			l.Cases = append(l.Cases, Case{Name: place, Place: place, Broken: fmt.Errorf("%s: %w", field, err)})
			return
		}
		if slices.ContainsFunc(documents, func(d document) bool { return d.isCase() }) {
			return
		}
		if field == "statusInputPath" {
			fields["statusItems"] = itemsOf(documents)
			continue
		}
		if len(documents) > 1 {
			entry.warnings = append(entry.warnings, fmt.Sprintf("%s: %s has %d documents: the first is taken", field, text, len(documents)))
		}
		fields[strings.TrimSuffix(field, "InputPath")+"Obj"] = documents[0].value
	}
	l.Cases = append(l.Cases, entry.asCase())
}

// input reads a file that an entry names; it has at least one document.
func (l *loader) input(name string) ([]document, error) {
	name = path.Join(l.dir, name)
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("%s is outside of the tree", name)
	}
	text, err := read(l.tree, name)
	if err != nil {
		return nil, err
	}
	l.listed[name] = true
	found := documents(name, text)
	for _, d := range found {
		if d.err != nil {
			return nil, fmt.Errorf("%s: %w", d.place, d.err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s is empty", name)
	}
	return found, nil
}

// itemsOf returns the status items of a file: a list, or one item a document.
func itemsOf(documents []document) any {
	if list, isList := documents[0].value.([]any); isList && len(documents) == 1 {
		return list
	}
	items := make([]any, len(documents))
	for i, d := range documents {
		items[i] = d.value
	}
	return items
}
