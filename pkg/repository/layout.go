package repository

import (
	"bytes"
	"regexp"
)

// Every index that KUDO or this package writes looks like this, whatever its entries hold, since all of a value of a
// map stands further to the right than its key:
//
//	apiVersion: v1
//	entries:
//	  name:
//	  - appVersion: …
//	    …
//	generated: …
//
// So the part of each package can be found by its lines, at the speed of reading them.
var (
	topLevel    = regexp.MustCompile(`^([A-Za-z]+):(?: (.*))?$`)
	sectionName = regexp.MustCompile(`^  (?:"([A-Za-z0-9._-]+)"|'([A-Za-z0-9._-]+)'|([A-Za-z0-9][A-Za-z0-9._-]*)):$`)
)

// split finds the parts of packages. It is false for any other layout, and for texts whose parts cannot be understood
// alone, because of anchors.
func split(text []byte) ([]section, bool) {
	if bytes.Contains(text, []byte(": &")) || bytes.Contains(text, []byte("- &")) || bytes.ContainsAny(text[:min(len(text), 3)], "\ufeff%") {
		return nil, false
	}
	s := &splitter{}
	for offset := 0; offset < len(text); {
		end := bytes.IndexByte(text[offset:], '\n')
		next := offset + end + 1
		if end < 0 {
			end, next = len(text)-offset, len(text)
		}
		if !s.line(text[offset:offset+end], offset, next) {
			return nil, false
		}
		offset = next
	}
	return s.sections, s.version && s.entries
}

type splitter struct {
	sections []section
	// inside the map of entries, open with a package whose part may continue.
	inside, open     bool
	version, entries bool
}

// line takes a line. It is false if that has no place in the layout.
func (s *splitter) line(line []byte, offset, next int) bool {
	switch {
	case s.inside && s.open && (len(line) == 0 || bytes.HasPrefix(line, []byte("    ")) || bytes.HasPrefix(line, []byte("  - "))):
		last := &s.sections[len(s.sections)-1]
		last.length = next - last.offset
		return true
	case s.inside && bytes.HasPrefix(line, []byte("  ")):
		return s.section(line, next)
	}
	match := topLevel.FindSubmatch(line)
	if match == nil {
		return false
	}
	s.inside, s.open = false, false
	value := string(match[2])
	switch string(match[1]) {
	case "apiVersion":
		first := !s.version
		s.version = true
		return first && (value == IndexVersion || value == `"`+IndexVersion+`"`)
	case "entries":
		first := !s.entries
		s.entries, s.inside = true, value == ""
		return first && (value == "" || value == "{}")
	case "generated":
		return true
	}
	return false
}

// section begins the part of a package.
func (s *splitter) section(line []byte, next int) bool {
	match := sectionName.FindSubmatch(line)
	if match == nil {
		return false
	}
	name := string(bytes.Join(match[1:], nil))
	if !isPackageName(name) {
		return false
	}
	s.sections = append(s.sections, section{name: name, offset: next})
	s.open = true
	return true
}
