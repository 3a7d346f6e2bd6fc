package render

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecodeMessages checks the whole message of each text that holds no objects: document, line, what is wrong, and the remedy.
func TestDecodeMessages(t *testing.T) {
	const at = "template a.yaml, line "
	pod := func(metadata string) string { return "apiVersion: v1\nkind: Pod\nmetadata: " + metadata + "\n" }
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Number": {"a number", "\n12\n",
			at + "2 of what it renders to: document 1: is no object but a number; it must begin with apiVersion and kind"},
		"Boolean": {"a boolean", "yes\n",
			at + "1 of what it renders to: document 1: is no object but a boolean; it must begin with apiVersion and kind"},
		"List": {"a list", "- a\n",
			at + "1 of what it renders to: document 1: is no object but a list; it must begin with apiVersion and kind"},
		"KindNumber": {"a kind that is no text", "apiVersion: v1\nkind: 1\n",
			at + "1 of what it renders to: document 1: has no kind (its apiVersion is v1)"},
		"Third": {"the third document", "# a\n---\n" + pod("{name: a}") + "---\n" + pod("{name: b}") + "---\nx: y\n",
			at + "11 of what it renders to: document 3: has no apiVersion and no kind"},
		"NoMetadata": {"no metadata", "apiVersion: v1\nkind: Pod\n", at + "1 of what it renders to: document 1: Pod has no metadata.name"},
		"NullName":   {"a name that is null", pod("{name: ~}"), at + "1 of what it renders to: document 1: Pod has no metadata.name"},
		"EmptyName":  {"a name that is empty", pod("{name: ''}"), at + "1 of what it renders to: document 1: Pod has no metadata.name"},
		"ListMeta": {"metadata that is a list", pod("[]"),
			at + "1 of what it renders to: document 1: the metadata of Pod is no map but a list"},
		"Namespace": {"a namespace that is no text", pod("{name: a, namespace: 12}"),
			at + "1 of what it renders to: document 1: metadata.namespace of Pod is no text but a number; quote it"},
		"Generate": {"a generateName that is no text", pod("{name: a, generateName: [x]}"),
			at + "1 of what it renders to: document 1: metadata.generateName of Pod is no text but a list; quote it"},
		"Annotation": {"an annotation that is a map", pod("{name: a, annotations: {x: {}}}"),
			at + "1 of what it renders to: document 1: metadata.annotations.x of Pod a is no text but a map; quote it"},
		"Labels": {"labels that are text", pod("{name: a, labels: x}"),
			at + "1 of what it renders to: document 1: metadata.labels of Pod a is no map but text"},
		"TypedItem": {"an item of a typed list", "apiVersion: v1\nkind: PodList\nitems: [{metadata: {}}]\n",
			at + "1 of what it renders to: document 1: Pod has no metadata.name"},
		"NullItems": {"a list without items is an object", "apiVersion: v1\nkind: List\n",
			at + "1 of what it renders to: document 1: List has no metadata.name"},
		"Key": {"a key that is a list", "a: b\n? [c]\n: d\n",
			at + "2 of what it renders to: a key must be a single value, not a map or list; render the template to see the line"},
		"Infinite": {"a number that JSON does not have", pod("{name: a}") + "x: .inf\n",
			"template a.yaml: the number +Inf cannot be written as JSON; render the template to see the line"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Decode("a.yaml", tc.text)
			var got *Error
			if !errors.As(err, &got) || got.Error() != tc.want || result.Objects != nil {
				t.Errorf("%s: -want +got:\n-%s\n+%v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestDecodeItems checks what an item of a list takes from the list, and how deep lists may hold lists.
func TestDecodeItems(t *testing.T) {
	kinds := func(text string) (found []string) {
		t.Helper()
		result, err := Decode("a.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range result.Objects {
			found = append(found, o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName())
		}
		return found
	}
	const typed = "apiVersion: apps/v1\nkind: DeploymentList\nitems: [{metadata: {name: a}}, {kind: X, metadata: {name: b}}, " +
		"{apiVersion: v1, kind: Z, metadata: {name: c}}, ~]\n"
	if diff := cmp.Diff([]string{"apps/v1 Deployment a", "apps/v1 X b", "v1 Z c"}, kinds(typed)); diff != "" {
		t.Errorf("a typed list: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"v1 Pricelist a"},
		kinds("{apiVersion: v1, kind: Pricelist, metadata: {name: a}, items: [x]}")); diff != "" {
		t.Errorf("a kind that is no list: -want +got:\n%s", diff)
	}
	nested := "{apiVersion: v1, kind: A, metadata: {name: a}}"
	for range 10 {
		nested = "{apiVersion: v1, kind: List, items: [" + nested + "]}"
	}
	if diff := cmp.Diff([]string{"v1 A a"}, kinds(nested)); diff != "" {
		t.Errorf("ten lists: -want +got:\n%s", diff)
	}
	if _, err := Decode("a.yaml", "{apiVersion: v1, kind: List, items: ["+nested+"]}"); err == nil {
		t.Error("eleven lists")
	}
}

// TestDescribe checks that a value is described by its type: it may be a secret.
func TestDescribe(t *testing.T) {
	for want, value := range map[string]any{"text": "secret", "a boolean": true, "a number": int64(1), "a list": []any{"secret"},
		"a map": map[string]any{"secret": 1}, "a <nil>": nil} {
		if got := describe(value); got != want {
			t.Errorf("%v: got %q, want %q", value, got, want)
		}
	}
	if got := describe(1.5); got != "a number" {
		t.Errorf("got %q", got)
	}
}
