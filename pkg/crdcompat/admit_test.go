package crdcompat

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestAdmit checks what becomes of an object by a definition that is not served yet (P6).
func TestAdmit(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		content, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out := &unstructured.Unstructured{}
		if err := out.UnmarshalJSON(content); err != nil {
			t.Fatal(err)
		}
		return out
	}
	definition := object(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pots.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pots, kind: Pot}
  versions:
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.lid || self.size < 3", message: a large pot has a lid}
            - {rule: "self.size > oldSelf.size", message: pots grow}
            properties: {size: {type: integer}, lid: {type: boolean, default: true}}
          status: {type: object, required: [full], properties: {full: {type: boolean}}}
    subresources: {status: {}}
`)
	for name, tc := range map[string]struct {
		reason, version, spec, want, err string
		invalid                          bool
	}{
		"Default":   {"defaults are set", "v1", "{size: 1}", "{size: 1, lid: true}", "", false},
		"Pruned":    {"fields that the schema does not have are left out", "v1", "{size: 1, lid: false, color: red}", "{size: 1, lid: false}", "", false},
		"Missing":   {"a required field is missing", "v1", "{lid: true}", "", "spec.size: Required value", true},
		"Type":      {"a value has another type", "v1", "{size: big}", "", "spec.size", true},
		"Rule":      {"a rule is broken", "v1", "{size: 5, lid: false}", "", "a large pot has a lid", true},
		"NotServed": {"the version is not served", "v1alpha1", "{}", "", "does not serve v1alpha1", false},
		"NoVersion": {"there is no such version", "v2", "{}", "", "does not serve v2", false},
		"NoSchema":  {"the API server would refuse the definition", "v1beta1", "{}", "", "openAPIV3Schema is missing", false},
	} {
		t.Run(name, func(t *testing.T) {
			pot := object("apiVersion: example.com/" + tc.version + "\nkind: Pot\nmetadata: {name: p}\nstatus: {}\nspec: " + tc.spec)
			before := pot.DeepCopy()
			var got *unstructured.Unstructured
			var lost []string
			admission, err := NewAdmission(definition, tc.version)
			if err == nil {
				got, lost, err = admission.Admit(t.Context(), pot, nil)
			}
			if name == "Pruned" != (len(lost) > 0) {
				t.Errorf("%s: left out are %q", tc.reason, lost)
			}
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || apierrors.IsInvalid(err) != tc.invalid):
				t.Errorf("%s: %v, want %s", tc.reason, err, tc.err)
			case tc.err == "" && err != nil:
				t.Errorf("%s: %v", tc.reason, err)
			case tc.err == "":
				if diff := cmp.Diff(object("kind: Pot\nspec: " + tc.want).Object["spec"], got.Object["spec"]); diff != "" {
					t.Errorf("%s: %s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(before, pot); diff != "" {
				t.Errorf("the object has changed: %s", diff)
			}
		})
	}
}

// TestAdmitChange checks that a rule that compares with the former state is asked about a change, and not about a new object, and that names and
// the time are bounded.
func TestAdmitChange(t *testing.T) {
	definition := &unstructured.Unstructured{}
	if err := definition.UnmarshalJSON([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"pots.example.com"},"spec":{"group":"example.com","names":{"kind":"Pot","plural":"pots"},"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"size":{"type":"integer","x-kubernetes-validations":[{"rule":"self > oldSelf"}]},"lids":{"type":"array","items":{"type":"object","properties":{"color":{"type":"string","default":"` + strings.Repeat("red", 1<<14) + `"}}}}}}}}]}}`)); err != nil {
		t.Fatal(err)
	}
	admission, err := NewAdmission(definition, "v1")
	if err != nil {
		t.Fatal(err)
	}
	pot := func(name string, size int64, lids int) *unstructured.Unstructured {
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Pot", "size": size, "metadata": map[string]any{"name": name}}}
		list := []any{}
		for range lids {
			list = append(list, map[string]any{})
		}
		out.Object["lids"] = list
		return out
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tc := range map[string]struct {
		reason   string
		ctx      context.Context
		pot, old *unstructured.Unstructured
		err      string
	}{
		"New":     {"there is nothing to compare with", t.Context(), pot("p", 1, 1), nil, ""},
		"Grown":   {"the rule holds", t.Context(), pot("p", 2, 1), pot("p", 1, 1), ""},
		"Shrunk":  {"the rule is broken", t.Context(), pot("p", 1, 1), pot("p", 2, 1), "self > oldSelf"},
		"Name":    {"the name is none", t.Context(), pot("My_Pot", 1, 1), nil, "metadata.name"},
		"Large":   {"defaults would multiply", t.Context(), pot("p", 1, 1<<14), nil, "too large"},
		"TooLate": {"the time is over", ended, pot("p", 1, 1), nil, "canceled"},
	} {
		_, _, err := admission.Admit(tc.ctx, tc.pot, tc.old)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %s: %v", name, tc.reason, err)
		}
	}
}

// FuzzAdmit must not panic, whatever the definition and the object of a package.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte(`{"kind":"CustomResourceDefinition","spec":{"group":"g","names":{"kind":"K"},"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","default":{"b":1},"x-kubernetes-preserve-unknown-fields":true}}}}}}]}}`),
		[]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},"a":[{},null]}`))
	f.Add([]byte(`{"kind":"K","spec":{"preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-validations":[{"rule":"self.a > oldSelf.a"}]}},"subresources":{"status":{}}}]}}`),
		[]byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"name":1},"status":7}`))
	f.Fuzz(func(t *testing.T, definition, object []byte) {
		crd, obj := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		if crd.UnmarshalJSON(definition) != nil || obj.UnmarshalJSON(object) != nil {
			return
		}
		admission, err := NewAdmission(crd, "v1")
		if err != nil {
			return
		}
		before := obj.DeepCopy()
		stored, _, err := admission.Admit(t.Context(), obj, nil)
		if (stored == nil) != (err != nil) {
			t.Errorf("stored is %v, and the error %v", stored, err)
		}
		if diff := cmp.Diff(before, obj); diff != "" {
			t.Errorf("the object has changed: %s", diff)
		}
	})
}
