// Package excerpt takes from the statuses of objects what fits into the status of their Instance, and names what does not. It is pure:
// the same statuses give the same bytes, in the form in which an API server returns them, so that no excerpt is written twice.
package excerpt

import (
	"encoding/json"
	"math"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// ObjectLimit bounds what is shown of the status of one object, in bytes of JSON.
	ObjectLimit = 1 << 10
	// InstanceLimit bounds what is shown of all objects of an Instance together, with the paths of what is omitted, in bytes of JSON.
	InstanceLimit = 64 << 10
	// maxPaths bounds the paths of what is omitted of one object; the others are counted.
	maxPaths = 8
	// bytesOfPath is how many bytes of an object's limit stand for one path: a smaller limit shows fewer paths, too, but at least one.
	bytesOfPath = 64
	// root is the path of a whole status.
	root = "status"
)

// Source is what is known of the status of one object. The zero Source is an object without status.
type Source struct {
	// Status is of JSON types, or nil if the object has none. Anything but an object is omitted as a whole, since the API server refuses it.
	Status any
	// Last is the excerpt of before, for an object whose status is not known now. Status is not read then.
	Last *Excerpt
}

// Excerpt is what is shown of the status of one object.
type Excerpt struct {
	// JSON is an object, or nil if nothing is shown.
	JSON []byte
	// Omitted are the paths of what is not shown, in order, and how many more there are, or nil if all is shown.
	Omitted []string
}

// Fit returns an excerpt for each source. All of a status is shown if it has at most ObjectLimit bytes. Where all excerpts together have
// more than InstanceLimit bytes, the limit of each object is halved until they fit, so that no object takes the place of others, and a
// status that grows by a few bytes seldom changes the excerpts of others.
func Fit(sources []Source) []Excerpt {
	statuses := make([]*status, len(sources))
	for i, source := range sources {
		statuses[i] = newStatus(source)
	}
	for limit := ObjectLimit; limit > 0; limit /= 2 {
		if out, fits := cutAll(statuses, limit, InstanceLimit); fits {
			return out
		}
	}
	out, _ := cutAll(statuses, 0, math.MaxInt) // etcd holds no object with so many entries that marks alone exceed InstanceLimit
	return out
}

// cutAll shows at most limit bytes of each status, and reports whether all together take no more than a total. It stops when they do.
func cutAll(statuses []*status, limit, total int) (out []Excerpt, fits bool) {
	out = make([]Excerpt, len(statuses))
	for i, s := range statuses {
		out[i] = s.cut(limit)
		if total -= out[i].size(); total < 0 {
			return nil, false
		}
	}
	return out, true
}

// size is what an excerpt takes of InstanceLimit.
func (e Excerpt) size() int {
	if e.Omitted == nil {
		return len(e.JSON)
	}
	paths, _ := json.Marshal(e.Omitted) // strings always have JSON
	return len(e.JSON) + len(paths)
}

// status is a source that may be cut at several limits.
type status struct {
	last   *Excerpt
	absent bool
	// object is nil for what is no object.
	object map[string]any
	// whole is the JSON of an object within ObjectLimit, nil for others.
	whole []byte
	// parts are set when the status is cut for the first time.
	parts *parts
}

func newStatus(source Source) *status {
	object, _ := source.Status.(map[string]any)
	s := &status{last: source.Last, absent: source.Last == nil && source.Status == nil, object: object}
	if object != nil && source.Last == nil && sizeOf(object, ObjectLimit) <= ObjectLimit {
		s.whole = encode(object)
	}
	return s
}

// cut shows at most limit bytes. With a limit of 0 nothing but the mark that there is more remains.
func (s *status) cut(limit int) Excerpt {
	switch {
	case s.last != nil && len(s.last.JSON) <= limit && (limit > 0 || s.last.Omitted == nil):
		return *s.last
	case s.absent:
		return Excerpt{}
	case s.whole != nil && len(s.whole) <= limit:
		return Excerpt{JSON: s.whole}
	case s.last != nil || s.object == nil || limit == 0:
		return Excerpt{Omitted: []string{root}}
	}
	if s.parts == nil {
		s.parts = split(s.object)
	}
	kept := s.parts.keep(limit)
	out := Excerpt{Omitted: s.parts.omitted(kept, max(1, min(maxPaths, limit/bytesOfPath)))}
	if len(kept) > 0 {
		out.JSON = encode(s.parts.build(kept))
	}
	return out
}

// encode returns JSON as an API server returns it: with sorted keys, numbers in its form, and without members that are null, which it
// takes for absent. The object is within ObjectLimit.
func encode(object map[string]any) []byte {
	encoded, _ := json.Marshal(object) // sizeOf has encoded each value
	var read map[string]any
	_ = utiljson.Unmarshal(encoded, &read) // what was encoded can be read
	dropNulls(read)
	encoded, _ = json.Marshal(read) // what was decoded has JSON
	return encoded
}

func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member == nil {
				delete(value, key)
			}
			dropNulls(member)
		}
	case []any:
		for _, element := range value {
			dropNulls(element)
		}
	}
}
