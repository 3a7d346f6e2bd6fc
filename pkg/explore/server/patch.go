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
	patch := diff(nil, "", raw, merge(raw, was, is))
	if len(patch) == 0 {
		return &v1alpha1.ExploreResponse{}, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("write the patch: %w", err)
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

// diff adds the operations that turn one tree into another, in an order that does not vary. Lists whose lengths differ are
// replaced.
func diff(patch []operation, path string, from, to any) []operation {
	if reflect.DeepEqual(from, to) {
		return patch
	}
	switch a := from.(type) {
	case map[string]any:
		// An empty name in a path is taken by many JSON patch libraries for the map that it is in: go around it.
		if b, ok := to.(map[string]any); ok && sameAt(a, b, "") {
			return diffMaps(patch, path, a, b)
		}
	case []any:
		if b, ok := to.([]any); ok && len(a) == len(b) {
			for i := range a {
				patch = diff(patch, path+"/"+strconv.Itoa(i), a[i], b[i])
			}
			return patch
		}
	}
	return append(patch, operation{"replace", path, to})
}

func diffMaps(patch []operation, path string, a, b map[string]any) []operation {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		below := path + "/" + escape.Replace(key)
		if value, stays := b[key]; stays {
			patch = diff(patch, below, a[key], value)
		} else {
			patch = append(patch, operation{"remove", below, nil})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, had := a[key]; !had {
			patch = append(patch, operation{"add", path + "/" + escape.Replace(key), b[key]})
		}
	}
	return patch
}

// escape is the escaping of JSON pointers (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func sameAt(a, b map[string]any, key string) bool {
	x, inA := a[key]
	y, inB := b[key]
	return inA == inB && reflect.DeepEqual(x, y)
}
