package excerpt

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"kudo.dev/kudo/pkg/text"
)

const (
	// maxParts is how many parts fit into ObjectLimit: the smallest one, a condition without any field, is `{},`.
	maxParts = ObjectLimit / len(`{},`)
	// maxName bounds a name in a path, in bytes.
	maxName = 64
	// conditionsKey is the field of a status that has conditions.
	conditionsKey = "conditions"
	// ofStatus and ofConditions are the places of parts that are no condition: a field of the status, and a field of all conditions.
	ofStatus, ofConditions = -1, -2
)

// coreFields are the fields of a condition that are shown as long as scalars are.
var coreFields = []string{"type", "status", "reason"}

// id names a part of a status: a field at the top, a condition by its place with its core fields, or another field of all conditions.
type id struct {
	key   string
	place int
}

// part is what is shown or omitted at once. Scalars and conditions come first, others are extra; size is that of its JSON with a comma.
type part struct {
	id
	extra bool
	size  int
}

// compareParts orders parts by what is shown first: what is no extra, then what is smaller.
func compareParts(a, b part) int {
	return cmp.Or(rank(a.extra)-rank(b.extra), a.size-b.size, compareIDs(a.id, b.id))
}

func rank(extra bool) int {
	if extra {
		return 1
	}
	return 0
}

func compareIDs(a, b id) int { return cmp.Or(cmp.Compare(a.key, b.key), a.place-b.place) }

// path is the path of a part.
type path struct {
	id
	text string
}

func comparePaths(a, b path) int { return cmp.Or(cmp.Compare(a.text, b.text), compareIDs(a.id, b.id)) }

// parts are what of an object can be shown at all, and the first paths of all parts.
type parts struct {
	object map[string]any
	// conditions is nil if the object has none that can be cut.
	conditions []map[string]any
	shown      smallest[part]
	paths      smallest[path]
	count      int
}

// split looks at each value for at most ObjectLimit bytes, and holds a bounded number of parts.
func split(object map[string]any) *parts {
	p := &parts{
		object: object, conditions: conditionsOf(object),
		shown: smallest[part]{limit: maxParts, compare: compareParts},
		paths: smallest[path]{limit: maxParts + maxPaths, compare: comparePaths},
	}
	for key, value := range object {
		if key != conditionsKey || p.conditions == nil {
			p.add(part{id{key, ofStatus}, isNested(value), sizeOfText(key, ObjectLimit) + sizeOf(value, ObjectLimit) + 2}, pathOf(root, key))
		}
	}
	others := map[string]int{}
	for place, condition := range p.conditions {
		p.add(part{id{"", place}, false, sizeOf(core(condition), ObjectLimit) + 1}, conditionPath(condition, place))
		for key, value := range condition {
			if !isCore(key, value) {
				others[key] = min(others[key]+sizeOfText(key, ObjectLimit)+sizeOf(value, ObjectLimit)+2, ObjectLimit+1)
			}
		}
	}
	for key, size := range others {
		p.add(part{id{key, ofConditions}, true, size}, pathOf(root+"."+conditionsKey+"[]", key))
	}
	p.shown.found = p.shown.sorted()
	p.paths.found = p.paths.sorted()
	return p
}

func (p *parts) add(found part, text string) {
	p.count++
	p.paths.add(path{found.id, text})
	if found.size <= ObjectLimit {
		p.shown.add(found)
	}
}

// keep chooses what is shown within a limit. What alone is larger is omitted first; then the largest extras, until the rest fits, and
// then the largest of the others.
func (p *parts) keep(limit int) map[id]bool {
	left := limit - len("{}")
	if p.conditions != nil {
		left -= len(`"conditions":[],`)
	}
	kept, alone := map[id]bool{}, left
	for _, part := range p.shown.found {
		if part.size > alone {
			continue
		}
		if left -= part.size; left < 0 {
			break
		}
		kept[part.id] = true
	}
	return kept
}

// build makes an object of the parts that are kept.
func (p *parts) build(kept map[id]bool) map[string]any {
	out, conditions := map[string]any{}, []any{}
	for part := range kept {
		if part.place == ofStatus {
			out[part.key] = p.object[part.key]
		}
	}
	for place, condition := range p.conditions {
		if !kept[id{"", place}] {
			continue
		}
		shown := core(condition)
		for part := range kept {
			if value, has := condition[part.key]; has && part.place == ofConditions && !isCore(part.key, value) {
				shown[part.key] = value
			}
		}
		conditions = append(conditions, shown)
	}
	if len(conditions) > 0 {
		out[conditionsKey] = conditions
	}
	return out
}

// omitted names what is not kept.
func (p *parts) omitted(kept map[id]bool, limit int) []string {
	var out []string
	for _, path := range p.paths.found {
		if len(out) < limit && !kept[path.id] {
			out = append(out, path.text)
		}
	}
	if more := p.count - len(kept) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return out
}

// conditionsOf returns the conditions of a status, or nil if there are none, or what has that name is no list of objects.
func conditionsOf(object map[string]any) []map[string]any {
	list, _ := object[conditionsKey].([]any)
	out := make([]map[string]any, len(list))
	for i, element := range list {
		condition, ok := element.(map[string]any)
		if !ok {
			return nil
		}
		out[i] = condition
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// core returns a condition's core fields.
func core(condition map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range coreFields {
		if value, has := condition[key]; has && isCore(key, value) {
			out[key] = value
		}
	}
	return out
}

func isCore(key string, value any) bool { return slices.Contains(coreFields, key) && !isNested(value) }

// isNested reports whether a value has others in it.
func isNested(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func conditionPath(condition map[string]any, place int) string {
	name, _ := condition["type"].(string)
	if name = text.Plain(name, maxName); name == "" {
		name = strconv.Itoa(place)
	}
	return fmt.Sprintf("%s.%s[%s]", root, conditionsKey, name)
}

// pathOf names a field in a value, in brackets if its name is no plain word.
func pathOf(parent, key string) string {
	name := text.Plain(key, maxName)
	for _, r := range name {
		if !isWord(r) {
			return parent + "[" + strconv.Quote(name) + "]"
		}
	}
	if name == "" {
		return parent + `[""]`
	}
	return parent + "." + name
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
