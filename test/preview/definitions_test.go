package preview

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/test/env"
)

// compareDefinitions compares the definitions of the preview with those of the cluster, and with the answers of the API server about the
// custom resources that existed before (P10). The preview names each definition whose spec changes, and counts its custom resources. As
// many of these as would break by the preview are refused now. The storage version changes, and kudo rewrites the stored objects, as the
// preview says.
func (o outcome) compareDefinitions(t *testing.T) {
	t.Helper()
	for id, obj := range o.before {
		after := o.after[id]
		if obj.GetKind() != "CustomResourceDefinition" || after == nil || cmp.Equal(obj.Object["spec"], after.Object["spec"]) {
			continue
		}
		if !slices.ContainsFunc(o.preview.Definitions, func(d preview.Definition) bool { return d.Name == obj.GetName() }) {
			t.Errorf("%s has changed, and is not among the definitions of the preview\n%s", id, o.texts)
		}
	}
	for _, said := range o.preview.Definitions {
		id := "CustomResourceDefinition " + said.Name
		if o.before[id] == nil || o.after[id] == nil {
			t.Errorf("%s is among the definitions of the preview, and was created or deleted\n%s", id, o.texts)
			continue
		}
		results.addDefinition(said)
		o.compareDefinition(t, said, typed(t, o.before[id]), typed(t, o.after[id]))
	}
}

// typed decodes a definition.
func typed(t *testing.T, obj *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := json.Marshal(obj)
	env.Must(t, err)
	out := &apiextensionsv1.CustomResourceDefinition{}
	env.Must(t, json.Unmarshal(text, out))
	return out
}

func (o outcome) compareDefinition(t *testing.T, said preview.Definition, before, after *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if said.Objects == nil && len(said.BreakingChanges) > 0 {
		t.Errorf("definition %s has breaking changes, and its objects were not checked\n%s", said.Name, o.texts)
	}
	if before.Generation == after.Generation {
		return // it was refused: which objects would have broken cannot be seen
	}
	was, is := storageVersion(before), storageVersion(after)
	var migration *preview.Migration
	if was != is {
		migration = &preview.Migration{From: was, To: is}
	}
	if diff := cmp.Diff(migration, said.Migration); diff != "" {
		t.Errorf("definition %s: other storage versions were said (-happened +said): %s\n%s", said.Name, diff, o.texts)
	}
	if said.Migration != nil {
		env.Eventually(t, "objects of "+said.Name+" rewritten", env.Condition(func() bool {
			now := takeSnapshot(t, o.ns)["CustomResourceDefinition "+said.Name]
			return slices.Equal(typed(t, now).Status.StoredVersions, []string{is})
		}))
	}
	if said.Objects == nil {
		return
	}
	checked, invalid := 0, 0
	for _, obj := range o.living(after) {
		for _, version := range after.Spec.Versions {
			if version.Served && !slices.Contains(said.Objects.Unchecked, version.Name) {
				checked++
				if !o.isValid(t, obj, after.Spec.Group, version.Name) {
					invalid++
				}
			}
		}
	}
	if checked != said.Objects.Checked || invalid != said.Objects.Invalid {
		t.Errorf("definition %s: said %d of %d objects would break, and %d of %d have\n%s",
			said.Name, said.Objects.Invalid, said.Objects.Checked, invalid, checked, o.texts)
	}
}

func storageVersion(of *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range of.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// living returns the custom resources of a definition that were there before.
func (o outcome) living(of *apiextensionsv1.CustomResourceDefinition) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range o.before {
		if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: of.Spec.Group, Kind: of.Spec.Names.Kind}) {
			out = append(out, obj)
		}
	}
	return out
}

// isValid reports whether the API server would create a copy of a custom resource in a version. The object itself would not show this,
// since the API server accepts unchanged fields of an existing object.
func (o outcome) isValid(t *testing.T, obj *unstructured.Unstructured, group, version string) bool {
	t.Helper()
	twin := obj.DeepCopy()
	twin.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: obj.GetKind()})
	twin.SetName(obj.GetName() + "-copy")
	twin.SetUID("")
	twin.SetResourceVersion("")
	twin.SetManagedFields(nil)
	twin.SetOwnerReferences(nil)
	return suite.Create(t.Context(), twin, client.DryRunAll, client.FieldValidation("Strict")) == nil
}
