package apply

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"sigs.k8s.io/yaml"
)

// document is a small OpenAPI schema with all that schemas of Kubernetes have.
const document = `
openapi: 3.0.0
info: {title: t, version: v}
paths: {}
components:
  schemas:
    io.Thing:
      type: object
      x-kubernetes-group-version-kind: [{group: g, version: v1, kind: Thing}]
      properties:
        apiVersion: {type: string}
        spec:
          allOf: [{$ref: '#/components/schemas/io.Spec'}]
          default: {}
    io.Spec:
      type: object
      properties:
        text: {type: string}
        self: {$ref: '#/components/schemas/io.Spec'}
        names: {type: array, items: {type: string}}
        nested: {type: array, items: {type: array, items: {$ref: '#/components/schemas/io.Port'}}}
        ports:
          type: array
          x-kubernetes-list-map-keys: [port, protocol]
          x-kubernetes-list-type: map
          items:
            allOf: [{$ref: '#/components/schemas/io.Port'}]
            default: {}
        labels: {type: object, additionalProperties: {type: string}}
        byName: {type: object, additionalProperties: {$ref: '#/components/schemas/io.Port'}}
        free: {type: object}
        open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {port: {$ref: '#/components/schemas/io.Port'}}}
        missing: {$ref: '#/components/schemas/io.Nowhere'}
    io.Port:
      type: object
      properties: {name: {type: string}, port: {type: integer}, protocol: {type: string, default: TCP}}
`

func parseDocument(t *testing.T) *spec3.OpenAPI {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	doc := &spec3.OpenAPI{}
	if err := json.Unmarshal(text, doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestPrune: rule 21, what the schema does not declare is dropped and named, and of entries with one key the last stays.
func TestPrune(t *testing.T) {
	doc := parseDocument(t)
	for name, tc := range map[string]struct {
		reason, in, want string
		dropped          []Dropped
	}{
		"Declared":   {"all is declared", "{text: a, names: [b], self: {text: c}}", "{text: a, names: [b], self: {text: c}}", nil},
		"Unknown":    {"a field and what is under it", "{text: a, txet: {b: c}}", "{text: a}", []Dropped{{Path: ".spec.txet"}}},
		"Recursive":  {"references are followed, around in circles too", "{self: {self: {x: 1}}}", "{self: {self: {}}}", []Dropped{{Path: ".spec.self.self.x"}}},
		"List":       {"entries of lists", "{ports: [{port: 1, x: 1}]}", "{ports: [{port: 1}]}", []Dropped{{Path: ".spec.ports[0].x"}}},
		"Nested":     {"lists in lists", "{nested: [[{port: 1}], [{x: 1}, {z: 1}]]}", "{nested: [[{port: 1}], [{}, {}]]}", []Dropped{{Path: ".spec.nested[1][0].x"}, {Path: ".spec.nested[1][1].z"}}},
		"Additional": {"any key, and values by their schema", "{labels: {any: a}, byName: {any: {port: 1, x: 1}}}", "{labels: {any: a}, byName: {any: {port: 1}}}", []Dropped{{Path: ".spec.byName.any.x"}}},
		"Free":       {"an object without properties holds anything", "{free: {a: {b: c}}}", "{free: {a: {b: c}}}", nil},
		"Preserve":   {"unknown fields are preserved, known ones go by their schema", "{open: {a: b, port: {port: 1, x: 1}}}", "{open: {a: b, port: {port: 1}}}", []Dropped{{Path: ".spec.open.port.x"}}},
		"Missing":    {"a reference to nowhere says nothing", "{missing: {a: b}}", "{missing: {a: b}}", nil},
		"WrongType":  {"the server says what is wrong with a type", "{text: {a: b}, ports: x, names: {a: b}}", "{text: {a: b}, ports: x, names: {a: b}}", nil},
		"Null":       {"null is no object", "{self: null, ports: [null]}", "{self: null, ports: [null]}", nil},
		"Double":     {"the last entry, at the place of the first", "{ports: [{name: a, port: 1, protocol: TCP}, {name: b, port: 2, protocol: TCP}, {name: c, port: 1, protocol: TCP}]}", "{ports: [{name: c, port: 1, protocol: TCP}, {name: b, port: 2, protocol: TCP}]}", []Dropped{{Path: ".spec.ports[0]", Duplicate: true}}},
		"Default":    {"a key that is not set has its default", "{ports: [{name: a, port: 1}, {name: b, port: 1, protocol: TCP}]}", "{ports: [{name: b, port: 1, protocol: TCP}]}", []Dropped{{Path: ".spec.ports[0]", Duplicate: true}}},
		"Different":  {"all keys count", "{ports: [{port: 1, protocol: UDP}, {port: 1}]}", "{ports: [{port: 1, protocol: UDP}, {port: 1}]}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			head := "apiVersion: g/v1\nkind: Thing\nmetadata: {name: x, labels: {a: b}}\nspec: "
			obj := parse(t, head+tc.in)
			p := pruner{doc: doc}
			p.walk(obj.Object, rootSchema(doc, obj.GroupVersionKind()), "")
			p.sort()
			if diff := cmp.Diff(parse(t, head+tc.want).Object, obj.Object); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.dropped, p.dropped); diff != "" {
				t.Errorf("%s: dropped: %s", tc.reason, diff)
			}
		})
	}
}

func TestDropped(t *testing.T) {
	for dropped, want := range map[Dropped]string{
		{Path: ".spec.txet"}:                      ".spec.txet is left out, since the schema of this cluster does not have it",
		{Path: ".spec.ports[0]", Duplicate: true}: ".spec.ports[0] is left out, since a later entry of the list has the same key, and the last counts",
	} {
		if got := dropped.String(); got != want {
			t.Errorf("an event says what was dropped, and why: got %q, want %q", got, want)
		}
	}
}

func TestRootSchema(t *testing.T) {
	doc := parseDocument(t)
	for name, tc := range map[string]struct {
		reason string
		doc    *spec3.OpenAPI
		gvk    schema.GroupVersionKind
		want   bool
	}{
		"Found":   {"by group, version and kind", doc, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Thing"}, true},
		"Version": {"another version", doc, schema.GroupVersionKind{Group: "g", Version: "v2", Kind: "Thing"}, false},
		"Empty":   {"a document without components", &spec3.OpenAPI{}, schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Thing"}, false},
	} {
		if got := rootSchema(tc.doc, tc.gvk) != nil; got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}

// TestDefines: which CRDs make a kind, and which versions of it they serve.
func TestDefines(t *testing.T) {
	crd := parse(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: g, scope: Namespaced, names: {kind: Thing}, versions: [{name: v1, served: true}, {name: v0, served: false}]}")
	old := parse(t, "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition")
	other := parse(t, "apiVersion: example.com/v1\nkind: CustomResourceDefinition")
	if got := Definitions(append([]*unstructured.Unstructured{other}, crd, old)); len(got) != 2 {
		t.Errorf("CRDs of any version are definitions, and nothing else: %v", got)
	}
	if !defines(crd, schema.GroupKind{Group: "g", Kind: "Thing"}) || defines(crd, schema.GroupKind{Group: "h", Kind: "Thing"}) || defines(old, schema.GroupKind{Group: "g", Kind: "Thing"}) {
		t.Error("a CRD defines the kind of its group and name")
	}
	thing := schema.GroupKind{Group: "g", Kind: "Thing"}
	serves := func(crd *unstructured.Unstructured, versions ...string) bool {
		return MappingOf(crd, thing, versions...) != nil
	}
	if !serves(crd, "v1") || serves(crd, "v0") || serves(crd, "v2") || serves(old, "v1") || !serves(crd) || !serves(crd, "v0", "v1") {
		t.Error("it serves the versions that say so")
	}
	wide := crd.DeepCopy()
	wide.Object["spec"].(map[string]any)["scope"] = "Cluster"
	if MappingOf(crd, thing).Scope.Name() != meta.RESTScopeNameNamespace || MappingOf(wide, thing).Scope.Name() != meta.RESTScopeNameRoot {
		t.Error("it tells the scope")
	}
	namespaced, err := (&Kinds{}).Namespaced(schema.GroupKind{Group: "g", Kind: "Thing"}, Definitions(append([]*unstructured.Unstructured{}, crd)))
	if err != nil || !namespaced {
		t.Errorf("a CRD of the same task tells the scope: %v, %v", namespaced, err)
	}
}
