package fields

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apijson "k8s.io/apimachinery/pkg/util/json"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ reason, path, err string }{
		"Plain":      {"braces", "{.spec.replicas}", ""},
		"Bare":       {"braces may be left out", ".spec.replicas", ""},
		"Name":       {"and the dot", "spec.replicas", ""},
		"Root":       {"$ is the object", "{$.spec.replicas}", ""},
		"All":        {"all entries", "{.spec.template.spec.containers[*].resources}", ""},
		"Index":      {"one entry", "{.spec.items[0]}", ""},
		"Quoted":     {"keys of any characters", "{.metadata.annotations['a.b/c']}", ""},
		"Double":     {"in double quotes", `{.metadata.annotations["a.b/c"]}`, ""},
		"Escaped":    {"or with backslashes", `{.metadata.annotations.a\.b/c}`, ""},
		"DotBracket": {"a dot before a bracket", "{.spec.['a']}", ""},
		"Recursive":  {"no ..", "{..replicas}", `field "{..replicas}": ".." would match at any depth: write the whole path`},
		"Inner":      {"nowhere", "{.spec..replicas}", `field "{.spec..replicas}": ".." would match at any depth: write the whole path`},
		"Filter":     {"no filters", "{.spec.items[?(@.x==1)]}", `field "{.spec.items[?(@.x==1)]}": [?(@.x==1)] is no key in quotes, index or *: filters, slices and unions are not allowed`},
		"Slice":      {"no slices", "{.spec.items[0:2]}", `field "{.spec.items[0:2]}": [0:2] is no key in quotes, index or *: filters, slices and unions are not allowed`},
		"Union":      {"no unions", "{.spec['a','b']}", `field "{.spec['a','b']}": ['a','b'] is no key in quotes and a closing bracket`},
		"Empty":      {"a field", "{}", `field "{}" names no field: write one such as {.spec.replicas}`},
		"Nothing":    {"a field", "", `field "" names no field: write one such as {.spec.replicas}`},
		"Dot":        {"a key after the dot", "{.spec.}", `field "{.spec.}": a key is missing after "."`},
		"Open":       {"braces close", "{.spec", `field "{.spec": there is no closing brace`},
		"Bracket":    {"and brackets", "{.spec[}", `field "{.spec[}": there is no closing bracket`},
		"Star":       {"* alone is nothing", "{.spec.*}", `field "{.spec.*}": unexpected "*": put keys of such characters in brackets, as ['key']`},
		"List":       {"an object is no list", "{[*].x}", `field "{[*].x}": an object is no list`},
		"Identity":   {"identity is not retained", "{.metadata.name}", `field "{.metadata.name}" is part of an object's identity: name fields below spec, or labels and annotations`},
		"Metadata":   {"nor as a whole", "{.metadata}", `field "{.metadata}" is part of an object's identity: name fields below spec, or labels and annotations`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.path)
			if got := fmt.Sprint(err); got != tc.err && (tc.err != "" || err != nil) {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestGet: C61, a path of a health rule names one value.
func TestGet(t *testing.T) {
	var object map[string]any
	if err := apijson.Unmarshal([]byte(`{"a":{"b":[{"c":7},"x"],"n":null}}`), &object); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason, path, want string
		found              bool
	}{
		{"a value in a list", "{.a.b[0].c}", "7", true},
		{"an entry", "{.a.b[1]}", "x", true},
		{"null is there", "{.a.n}", "<nil>", true},
		{"the list ends before", "{.a.b[2]}", "<nil>", false},
		{"a field of a text", "{.a.b[1].c}", "<nil>", false},
		{"an entry of a map", "{.a[0]}", "<nil>", false},
		{"no such field", "{.x.y}", "<nil>", false},
	} {
		path, err := ParseValue(tc.path)
		if err != nil {
			t.Fatal(err)
		}
		if got, found := path.Get(object); fmt.Sprint(got) != tc.want || found != tc.found {
			t.Errorf("%s: %v, %t", tc.reason, got, found)
		}
	}
	if _, err := ParseValue("{.a[*].b}"); err == nil {
		t.Error("[*] names one value")
	}
	if path, err := Parse("{.a[*].b}"); err != nil {
		t.Error(err)
	} else if _, found := path.Get(object); found {
		t.Error("a path of several values has one")
	}
}

func TestRetain(t *testing.T) {
	for name, tc := range map[string]struct{ reason, path, desired, observed, want string }{
		"Value":       {"the live value", "{.replicas}", `{"replicas":1}`, `{"replicas":9007199254740993}`, `{"replicas":9007199254740993}`},
		"Added":       {"also if it is not desired", "{.a.b}", `{}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":1}}`},
		"Absent":      {"what is not live stays", "{.replicas}", `{"replicas":1}`, `{}`, `{"replicas":1}`},
		"Null":        {"null is a value", "{.x}", `{"x":1}`, `{"x":null}`, `{"x":null}`},
		"Map":         {"maps as a whole", "{.x}", `{"x":{"a":1}}`, `{"x":{"b":2}}`, `{"x":{"b":2}}`},
		"Types":       {"a text is no map", "{.x.y}", `{"x":"text"}`, `{"x":{"y":1}}`, `{"x":"text"}`},
		"Names":       {"entries pair by name", "{.c[*].r}", `{"c":[{"name":"a","r":1},{"name":"b","r":2},{"name":"n"}]}`, `{"c":[{"name":"b","r":20},{"name":"x","r":30},{"name":"a","r":10}]}`, `{"c":[{"name":"a","r":10},{"name":"b","r":20},{"name":"n"}]}`},
		"Ports":       {"ports by port and protocol", "{.ports[*].nodePort}", `{"ports":[{"port":53,"protocol":"UDP"},{"port":53}]}`, `{"ports":[{"port":53,"protocol":"TCP","nodePort":1},{"port":53,"protocol":"UDP","nodePort":2}]}`, `{"ports":[{"port":53,"protocol":"UDP","nodePort":2},{"port":53,"nodePort":1}]}`},
		"Mounts":      {"mounts by path", "{.volumeMounts[*].x}", `{"volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v"}]}`, `{"volumeMounts":[{"mountPath":"/b","name":"v","x":1}]}`, `{"volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v","x":1}]}`},
		"Whole":       {"without a key the whole list", "{.l[*].x}", `{"l":[{"y":1,"x":1}]}`, `{"l":[{"y":2,"x":2},{"y":3}]}`, `{"l":[{"y":2,"x":2},{"y":3}]}`},
		"Twice":       {"names that repeat are none", "{.l[*].x}", `{"l":[{"name":"a"},{"name":"a"}]}`, `{"l":[{"name":"a","x":2}]}`, `{"l":[{"name":"a","x":2}]}`},
		"Scalars":     {"scalars have no key", "{.l[*]}", `{"l":[1]}`, `{"l":[1,2]}`, `{"l":[1,2]}`},
		"Entries":     {"whole entries", "{.l[*]}", `{"l":[{"name":"a","x":1}]}`, `{"l":[{"name":"a","y":2},{"name":"b"}]}`, `{"l":[{"name":"a","y":2}]}`},
		"Index":       {"by index", "{.l[1].x}", `{"l":[{"x":1},{"x":2}]}`, `{"l":[{"x":3},{"x":4}]}`, `{"l":[{"x":1},{"x":4}]}`},
		"IndexBeyond": {"if both have it", "{.l[1].x}", `{"l":[{"x":1}]}`, `{"l":[{"x":3},{"x":4}]}`, `{"l":[{"x":1}]}`},
		"Nested":      {"lists in lists", "{.c[*].ports[*].x}", `{"c":[{"name":"a","ports":[{"containerPort":1},{"containerPort":2}]}]}`, `{"c":[{"name":"a","ports":[{"containerPort":2,"protocol":"TCP","x":5}]}]}`, `{"c":[{"name":"a","ports":[{"containerPort":1},{"containerPort":2,"x":5}]}]}`},
		"NoList":      {"a list that is not desired is not made", "{.c[*].x}", `{}`, `{"c":[{"name":"a","x":1}]}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Parse(tc.path)
			if err != nil {
				t.Fatal(err)
			}
			desired, observed := object(t, tc.desired), object(t, tc.observed)
			got := Retain([]Path{path}, desired, observed)
			if diff := cmp.Diff(object(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(got.Object, Retain([]Path{path}, got, observed).Object); diff != "" {
				t.Errorf("retaining twice differs:\n%s", diff)
			}
			if !cmp.Equal(desired.Object, object(t, tc.desired).Object) || !cmp.Equal(observed.Object, object(t, tc.observed).Object) {
				t.Error("the arguments were changed")
			}
		})
	}
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := apijson.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"{.spec.replicas}", "{.a[*]['b'].c[0]}", `.a\.b`, "..", "[[", "{.a['}"} {
		f.Add(seed)
	}
	desired, observed := object(f, `{"a":[{"b":{"c":[1]}}]}`), object(f, `{"a":[{"b":{"c":[2]}}],"spec":{"replicas":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		path, err := Parse(text)
		if err != nil {
			return
		}
		if _, err := json.Marshal(Retain([]Path{path}, desired, observed).Object); err != nil {
			t.Error(err)
		}
	})
}
