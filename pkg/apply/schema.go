package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// schemas reads the OpenAPI schemas of the cluster. They are asked for only after the server has refused an object for
// a field that its schema lacks; so nothing is kept but the last one.
type schemas struct {
	discovery discovery.DiscoveryInterface

	mu sync.Mutex
	// url of the last schema; it has a hash that changes with the schema.
	url  string
	last *spec3.OpenAPI
}

// Prune drops from the object what the served schema does not declare, and keeps the last of entries of a list that
// share their key (engine rule 21). It returns what was dropped. The error says that the schema cannot be read: that of
// a new kind is published a moment after the kind is served.
func (k *Kinds) Prune(_ context.Context, obj *unstructured.Unstructured) ([]Dropped, error) {
	gvk := obj.GroupVersionKind()
	doc, err := k.schemas.document(gvk.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", gvk.GroupVersion(), err)
	}
	root := rootSchema(doc, gvk)
	if root == nil {
		return nil, fmt.Errorf("the cluster publishes no schema of %s in %s yet", gvk.Kind, gvk.GroupVersion())
	}
	p := pruner{doc: doc}
	p.walk(obj.Object, root, "")
	p.sort()
	return p.dropped, nil
}

func (s *schemas) document(gv schema.GroupVersion) (*spec3.OpenAPI, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths, err := s.discovery.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	path := "apis/" + gv.String()
	if gv.Group == "" {
		path = "api/" + gv.Version
	}
	group, ok := paths[path]
	if !ok {
		return nil, fmt.Errorf("the cluster publishes no schema of %s", gv)
	}
	if s.last != nil && s.url == group.ServerRelativeURL() {
		return s.last, nil
	}
	text, err := group.Schema("application/json")
	if err != nil {
		return nil, err
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, err
	}
	s.url, s.last = group.ServerRelativeURL(), doc
	return doc, nil
}

func rootSchema(doc *spec3.OpenAPI, gvk schema.GroupVersionKind) *spec.Schema {
	if doc.Components == nil {
		return nil
	}
	for _, candidate := range doc.Components.Schemas {
		kinds, _ := candidate.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, kind := range kinds {
			m, _ := kind.(map[string]any)
			if m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind {
				return candidate
			}
		}
	}
	return nil
}

type pruner struct {
	doc     *spec3.OpenAPI
	dropped []Dropped
}

// Dropped is a part of an object that was left out.
type Dropped struct {
	Path string
	// Duplicate is set for an entry of a list whose key a later one has; else the schema does not have the field.
	Duplicate bool
}

// String says what was left out, and why.
func (d Dropped) String() string {
	if d.Duplicate {
		return d.Path + " is left out, since a later entry of the list has the same key, and the last counts"
	}
	return d.Path + " is left out, since the schema of this cluster does not have it"
}

func (p *pruner) sort() {
	slices.SortFunc(p.dropped, func(a, b Dropped) int { return strings.Compare(a.Path, b.Path) })
}

// resolve follows references, which OpenAPI v3 wraps in allOf where a default stands beside them.
func (p *pruner) resolve(s *spec.Schema) *spec.Schema {
	for s != nil {
		switch {
		case s.Ref.String() != "":
			s = p.doc.Components.Schemas[strings.TrimPrefix(s.Ref.String(), "#/components/schemas/")]
		case len(s.AllOf) == 1 && len(s.Properties) == 0:
			s = &s.AllOf[0]
		default:
			return s
		}
	}
	return nil
}

func (p *pruner) walk(value any, s *spec.Schema, path string) any {
	if s = p.resolve(s); s == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		p.object(v, s, path)
	case []any:
		if s.Items == nil || s.Items.Schema == nil {
			return v
		}
		v = p.unique(v, s, path)
		for i := range v {
			v[i] = p.walk(v[i], s.Items.Schema, fmt.Sprintf("%s[%d]", path, i))
		}
		return v
	}
	return value
}

func (p *pruner) object(v map[string]any, s *spec.Schema, path string) {
	preserve, _ := s.Extensions["x-kubernetes-preserve-unknown-fields"].(bool)
	for key, child := range v {
		at := path + "." + key
		if property, ok := s.Properties[key]; ok {
			v[key] = p.walk(child, &property, at)
			continue
		}
		if s.AdditionalProperties != nil {
			if s.AdditionalProperties.Schema != nil {
				v[key] = p.walk(child, s.AdditionalProperties.Schema, at)
			}
			continue
		}
		if preserve || len(s.Properties) == 0 || path == "" && (key == "apiVersion" || key == "kind" || key == "metadata") {
			continue
		}
		delete(v, key)
		p.dropped = append(p.dropped, Dropped{Path: at})
	}
}

// unique keeps the last of the entries with one key, at the place of the first.
func (p *pruner) unique(list []any, s *spec.Schema, path string) []any {
	names, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
	if len(names) == 0 {
		return list
	}
	at := map[string]int{}
	out := make([]any, 0, len(list))
	for i, item := range list {
		m, ok := item.(map[string]any)
		key := fmt.Sprint(i)
		if ok {
			key = p.key(m, names, s.Items.Schema)
		}
		if first, double := at[key]; double {
			p.dropped = append(p.dropped, Dropped{fmt.Sprintf("%s[%d]", path, first), true})
			out[first] = item
			continue
		}
		at[key] = len(out)
		out = append(out, item)
	}
	return out
}

// key of an entry of a list; a field that is not set counts with its default, as it does for the server.
func (p *pruner) key(entry map[string]any, names []any, s *spec.Schema) string {
	key := ""
	for _, name := range names {
		field := fmt.Sprint(name)
		value, set := entry[field]
		if item := p.resolve(s); !set && item != nil {
			value = item.Properties[field].Default
		}
		key += fmt.Sprintf("%v\x00", value)
	}
	return key
}
