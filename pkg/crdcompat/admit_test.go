package crdcompat

import (
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
            x-kubernetes-validations: [{rule: "self.lid || self.size < 3", message: a large pot has a lid}]
            properties: {size: {type: integer}, lid: {type: boolean, default: true}}
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
			pot := object("apiVersion: example.com/" + tc.version + "\nkind: Pot\nmetadata: {name: p}\nspec: " + tc.spec)
			before := pot.DeepCopy()
			got, err := Admit(t.Context(), definition, pot)
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
