package crdcompat

import (
	"strings"
	"testing"
)

// TestEmbeddedMetadata checks the metadata of an embedded object, of which the API server keeps known fields only.
func TestEmbeddedMetadata(t *testing.T) {
	const schema = "{type: object, properties: {a: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}"
	const head = "apiVersion: v1, kind: X, "
	for _, tc := range []struct {
		reason, object string
		want           []string
	}{
		{"known fields", "metadata: {name: x, labels: {a: b}}", nil},
		{"a field that metadata has not", "metadata: {name: x, secret: y}", []string{"spec.f.a.metadata.secret: the field would be pruned"}},
		{"metadata of another type", "metadata: secret", []string{"spec.f.a.metadata: Invalid value"}},
		{"labels of another type", "metadata: {name: x, labels: {a: {secret: b}}}", []string{"spec.f.a.metadata: Invalid value"}},
		{"a time that is none", "metadata: {name: x, creationTimestamp: secret}", []string{"spec.f.a.metadata: Invalid value"}},
	} {
		crd := parse(t, definition(schema))
		found, err := Validate(t.Context(), crd, crd, &pages{objects: []map[string]any{widget(t, "w", "{a: {"+head+tc.object+"}}")}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range found.Objects {
			got = append(got, o.Problems...)
		}
		if len(got) != len(tc.want) || len(got) > 0 && !strings.HasPrefix(got[0], tc.want[0]) {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
		if tc.reason != "a field that metadata has not" && strings.Contains(strings.Join(got, " "), "secret") {
			t.Errorf("%s: the value is shown: %q", tc.reason, got)
		}
	}
}
