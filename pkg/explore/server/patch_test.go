package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// objectOf reads an object.
func objectOf(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkDifference checks that the patch makes one object of another, and returns it.
func checkDifference(t testing.TB, reason, from, to string) []byte {
	t.Helper()
	patch, err := Difference(objectOf(t, from), objectOf(t, to))
	if err != nil {
		t.Fatalf("%s: %v", reason, err)
	}
	got := []byte(from)
	if patch != nil {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if got, err = decoded.Apply(got); err != nil {
			t.Fatalf("%s: %.200s does not fit: %v", reason, patch, err)
		}
	}
	if diff := cmp.Diff(objectOf(t, to), objectOf(t, string(got))); diff != "" {
		t.Errorf("%s: -want +got:\n%.500s", reason, diff)
	}
	return patch
}

// TestDifference checks patches, and that equal objects have none.
func TestDifference(t *testing.T) {
	for _, row := range []struct{ reason, from, to, want string }{
		{"equal objects", `{"a":{"b":[1,"x",null]}}`, `{"a":{"b":[1,"x",null]}}`, ``},
		{"numbers go by their JSON", `{"a":3}`, `{"a":3}`, ``},
		{"a field in a list of the same length", `{"a":[{"b":1},{"b":2}]}`, `{"a":[{"b":1},{"b":3}]}`, `[{"op":"replace","path":"/a/1/b","value":3}]`},
		{"a list of another length is replaced", `{"a":[1]}`, `{"a":[1,2]}`, `[{"op":"replace","path":"/a","value":[1,2]}]`},
		{"fields come and go", `{"a":1,"b":2}`, `{"b":2,"c":null}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/c","value":null}]`},
		{"names are escaped", `{"a/b~c":{"x":1}}`, `{"a/b~c":{"x":2}}`, `[{"op":"replace","path":"/a~1b~0c/x","value":2}]`},
		{"what holds an empty name is replaced", `{"a":{"":1,"b":1}}`, `{"a":{"":2,"b":1}}`, `[{"op":"replace","path":"/a","value":{"":2,"b":1}}]`},
		{"and what is beside it is not", `{"a":{"":{"":1},"b":1}}`, `{"a":{"":{"":1},"b":2}}`, `[{"op":"replace","path":"/a/b","value":2}]`},
		{"another type", `{"a":{"b":1}}`, `{"a":[1]}`, `[{"op":"replace","path":"/a","value":[1]}]`},
	} {
		if got := checkDifference(t, row.reason, row.from, row.to); string(got) != row.want {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}

// TestDifferenceSize checks that a patch is not much larger than the object: many values in a deep place would each name its whole path.
func TestDifferenceSize(t *testing.T) {
	deep := func(value int) string {
		entries := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,", value), 20_000), ",")
		return `{"metadata":{"name":"a"},"spec":` + strings.Repeat(`{"a":`, 1000) + "[" + entries + "]" + strings.Repeat("}", 1000) + "}"
	}
	patch := checkDifference(t, "a long list in a deep place", deep(1), deep(2))
	var operations []struct{ Path string }
	if err := json.Unmarshal(patch, &operations); err != nil || len(operations) != 1 || operations[0].Path != "/spec" || len(patch) > len(deep(1))+100 {
		t.Errorf("%d bytes of a patch with %d operations: %v", len(patch), len(operations), err)
	}
	if _, err := Difference(nil, map[string]any{"a": func() {}}); err == nil {
		t.Error("an object that is no JSON has a patch")
	}
}

// FuzzDifference checks that the patch makes the one object of the other, whatever they are.
func FuzzDifference(f *testing.F) {
	f.Add(`{"a":{"":[{}]}}`, `{"a":{"":[{"x":null}]},"~/":1}`)
	f.Add(`{"a":[[1],{"b":2}]}`, `{"a":[[2],{"":2}]}`)
	f.Fuzz(func(t *testing.T, from, to string) {
		var a, b map[string]any
		if utiljson.Unmarshal([]byte(from), &a) != nil || utiljson.Unmarshal([]byte(to), &b) != nil || a == nil || b == nil || !sameAt(a, b, "") {
			t.Skip()
		}
		canonical, err := json.Marshal(a)
		if err != nil {
			t.Skip()
		}
		checkDifference(t, "a difference", string(canonical), to)
	})
}
