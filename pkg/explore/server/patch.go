package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Patch answers ExplorePacking, ExploreRetaining, ExploreReplicaRevising and ExploreStatusAggregating. Before is the
// object as it was decoded, untouched; after is what it shall be. Only what differs between the two is written: fields
// of the request's object that the type of both does not have stay as they are. If they are equal, the response changes
// nothing.
//
// In lists, an entry of after is the one of before that is equal to it, or else has the same `name`, or else the same
// place, if the list is as long as it was; it keeps its unknown fields.
func (r *Request) Patch(before, after any) (*v1alpha1.ExploreResponse, error) {
	var raw, was, is any
	if err := utiljson.Unmarshal(r.Object.Raw, &raw); err != nil {
		return nil, fmt.Errorf("decode request.object: %w", err)
	}
	for _, tree := range []struct {
		from any
		to   *any
	}{{before, &was}, {after, &is}} {
		text, err := json.Marshal(tree.from)
		if err != nil {
			return nil, fmt.Errorf("write the object: %w", err)
		}
		if err := utiljson.Unmarshal(text, tree.to); err != nil {
			return nil, fmt.Errorf("write the object: %w", err)
		}
	}
	if _, object := is.(map[string]any); !object {
		return nil, errors.New("write the object: it is none")
	}
	text, err := patchOf(raw, merge(raw, was, is), len(r.Object.Raw))
	if err != nil {
		return nil, err
	}
	if text == nil {
		return &v1alpha1.ExploreResponse{}, nil
	}
	kind := v1alpha1.PatchTypeJSONPatch
	return &v1alpha1.ExploreResponse{Patch: text, PatchType: &kind}, nil
}

// merge makes of raw what turns was into is.
func merge(raw, was, is any) any {
	if reflect.DeepEqual(was, is) {
		return raw
	}
	switch after := is.(type) {
	case map[string]any:
		before, ok := was.(map[string]any)
		base, isMap := raw.(map[string]any)
		if ok && (isMap || raw == nil) {
			return mergeMaps(base, before, after)
		}
	case []any:
		before, ok := was.([]any)
		base, isList := raw.([]any)
		if ok && isList && len(base) == len(before) {
			return mergeLists(base, before, after)
		}
	}
	return is
}

func mergeMaps(raw, was, is map[string]any) any {
	out := maps.Clone(raw)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range is {
		before, had := was[key]
		switch existing, present := raw[key]; {
		case had && reflect.DeepEqual(before, value): // not touched, be it there or a default of the type
		case had && present:
			out[key] = merge(existing, before, value)
		case had:
			out[key] = merge(nil, before, value)
		default:
			out[key] = value
		}
	}
	for key := range was {
		if _, stays := is[key]; !stays {
			delete(out, key)
		}
	}
	return out
}

func mergeLists(raw, was, is []any) any {
	out := make([]any, len(is))
	used := make([]bool, len(was))
	partner := make([]int, len(is))
	pair := func(fits func(i, j int) bool) {
		for i := range is {
			for j := 0; j < len(was) && partner[i] < 0; j++ {
				if !used[j] && fits(i, j) {
					partner[i], used[j] = j, true
				}
			}
		}
	}
	for i := range partner {
		partner[i] = -1
	}
	pair(func(i, j int) bool { return reflect.DeepEqual(is[i], was[j]) })
	pair(func(i, j int) bool { name := nameOf(is[i]); return name != "" && name == nameOf(was[j]) })
	pair(func(i, j int) bool { return i == j && len(is) == len(was) && nameOf(is[i]) == "" })
	for i, j := range partner {
		if out[i] = is[i]; j >= 0 {
			out[i] = merge(raw[j], was[j], is[i])
		}
	}
	return out
}

func nameOf(entry any) string {
	object, _ := entry.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string
	Path  string
	Value any
}

// MarshalJSON keeps a value of null, which "remove" does not have.
func (o operation) MarshalJSON() ([]byte, error) {
	out := map[string]any{"op": o.Op, "path": o.Path}
	if o.Op != "remove" {
		out["value"] = o.Value
	}
	return json.Marshal(out)
}

// Difference returns the JSON patch (RFC 6902) that turns one object into another one, or nil if they are equal. The first one is as
// utiljson.Unmarshal has decoded it; of the second one, only the JSON counts. Time and size of the patch are in proportion to the objects,
// whatever they hold.
func Difference(from, to map[string]any) ([]byte, error) {
	text, err := json.Marshal(to)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	var is any
	if err := utiljson.Unmarshal(text, &is); err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	return patchOf(from, is, len(text))
}

// patchSlack is by how many bytes the places in a patch may exceed the size of the object.
const patchSlack = 64 << 10

// patchOf returns the patch that turns one tree into another of about a size in bytes, or nil if they are equal. In a patch,
// each value has its whole path. A patch of many values in deep places would be far larger than the object: then whole fields are replaced.
func patchOf(from, to any, size int) ([]byte, error) {
	d := &differ{left: size + patchSlack}
	d.diff(nil, from, to)
	if a, b, both := bothMaps(from, to); d.left < 0 && both && sameAt(a, b, "") {
		d = &differ{whole: true, left: size + patchSlack}
		d.diffMaps(nil, a, b)
	}
	if len(d.patch) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(d.patch)
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
	}
	return text, nil
}

// bothMaps returns two maps, and whether both values are maps.
func bothMaps(from, to any) (a, b map[string]any, both bool) {
	a, isA := from.(map[string]any)
	b, isB := to.(map[string]any)
	return a, b, isA && isB
}

// place is where a value is: a key or an index in its parent, which is nil for the tree itself. Its text is made for an operation only,
// since that of a deep place is long.
type place struct {
	parent *place
	key    string
}

// pointer returns the JSON pointer (RFC 6901).
func (p *place) pointer() string {
	var keys []string
	for ; p != nil; p = p.parent {
		keys = append(keys, escape.Replace(p.key), "/")
	}
	slices.Reverse(keys)
	return strings.Join(keys, "")
}

// differ collects operations, in an order that does not vary.
type differ struct {
	patch []operation
	// left is how many bytes the operations may still have beside their values; below 0, the patch is of no use.
	left int
	// whole replaces values, and does not look into them.
	whole bool
}

// add adds an operation.
func (d *differ) add(op string, at *place, value any) {
	o := operation{op, at.pointer(), value}
	d.left -= len(o.Path) + len(`{"op":"replace","path":"","value":},`)
	d.patch = append(d.patch, o)
}

// diff adds the operations that turn one tree into another. Lists whose lengths differ are replaced. Subtrees are not compared before they
// are descended into: in a deep tree, that would be quadratic.
func (d *differ) diff(at *place, from, to any) {
	if d.left < 0 {
		return
	}
	if d.whole && at != nil {
		d.replace(at, from, to)
		return
	}
	// An empty name in a path is taken by many JSON patch libraries for the map that it is in: go around it.
	if a, b, both := bothMaps(from, to); both && sameAt(a, b, "") {
		d.diffMaps(at, a, b)
		return
	}
	a, isA := from.([]any)
	b, isB := to.([]any)
	if !isA || !isB || len(a) != len(b) {
		d.replace(at, from, to)
		return
	}
	for i := range a {
		d.diff(&place{at, strconv.Itoa(i)}, a[i], b[i])
	}
}

// replace replaces a value, unless it is equal.
func (d *differ) replace(at *place, from, to any) {
	if !reflect.DeepEqual(from, to) {
		d.add("replace", at, to)
	}
}

// diffMaps adds the operations for maps whose values of an empty name are equal.
func (d *differ) diffMaps(at *place, a, b map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		if key == "" {
			continue
		}
		below := &place{at, key}
		if value, stays := b[key]; stays {
			d.diff(below, a[key], value)
		} else {
			d.add("remove", below, nil)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, had := a[key]; !had {
			d.add("add", &place{at, key}, b[key])
		}
	}
}

// escape is the escaping of JSON pointers (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func sameAt(a, b map[string]any, key string) bool {
	x, inA := a[key]
	y, inB := b[key]
	return inA == inB && reflect.DeepEqual(x, y)
}
