package kudoinit

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Difference is what an installation would change of an object.
type Difference struct {
	// APIVersion, Kind, Namespace and Name of the object.
	APIVersion, Kind, Namespace, Name string
	// Before is the object on the cluster, and After what it would be, both without what the API server keeps and without the values of
	// Secrets. Before is nil for an object that would be created, and both are for one that would be deleted.
	Before, After map[string]any
}

// Preview returns what Apply would change, by dry runs, in the order in which it would. It writes nothing.
func (p *Change) Preview(ctx context.Context, c client.Client) ([]Difference, error) {
	var out []Difference
	for _, obj := range p.Objects {
		diff := newDifference(obj)
		live := p.live[obj]
		if live == nil { // its namespace may be missing, too, so that a dry run could not create it
			if diff.After = previewContent(prepare(obj, true)); obj.GetKind() == "Secret" {
				hideSecrets(map[string]any{}, diff.After)
			}
			out = append(out, diff)
			continue
		}
		sent := prepare(obj, live.GetAnnotations()[createdAnnotation] == manager)
		if err := put(ctx, c, sent, append(p.options(obj), client.DryRunAll)); err != nil {
			return nil, fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), refuseDenied(err))
		}
		diff.Before, diff.After = previewContent(live), previewContent(sent)
		if obj.GetKind() == "Secret" {
			hideSecrets(diff.Before, diff.After)
		}
		if !reflect.DeepEqual(diff.Before, diff.After) {
			out = append(out, diff)
		}
	}
	return out, nil
}

func newDifference(obj client.Object) Difference {
	apiVersion, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return Difference{APIVersion: apiVersion, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// previewContent returns an object without the fields that the API server sets, and without the rules of ClusterRoles that the ConfigMap of
// the Values records: a change of these shows in the ClusterRoles.
func previewContent(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy().Object
	for _, name := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(out, "metadata", name)
	}
	delete(out, "status")
	if obj.GetKind() == "ConfigMap" && obj.GetName() == ValuesConfigMap {
		unstructured.RemoveNestedField(out, "data", rulesKey)
	}
	return out
}

// hideSecrets replaces the values of a Secret, and says which ones would change.
func hideSecrets(before, after map[string]any) {
	old, _ := before["data"].(map[string]any)
	now, _ := after["data"].(map[string]any)
	for key, value := range now {
		now[key] = "<hidden>"
		if known, kept := old[key]; kept && known != value {
			now[key] = "<hidden: another value>"
		}
	}
	for key := range old {
		old[key] = "<hidden>"
	}
}

// PreviewPrune returns what Prune would delete.
func PreviewPrune(ctx context.Context, c client.Client, version string) ([]Difference, error) {
	obsolete, err := listObsolete(ctx, c, version)
	out := make([]Difference, len(obsolete))
	for n, obj := range obsolete {
		out[n] = newDifference(obj)
	}
	return out, err
}

// PreviewReplace returns what Replace would delete.
func PreviewReplace(ctx context.Context, c client.Client, live *InstalledState) ([]Difference, error) {
	if live.Predecessor == "" {
		return nil, nil
	}
	var out []Difference
	for _, obj := range predecessorObjects(live.Predecessor) {
		gvk, err := c.GroupVersionKindFor(obj)
		if err != nil {
			return nil, err
		}
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(gvk)
		switch err := c.Get(ctx, client.ObjectKeyFromObject(obj), found); {
		case absent(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("read %s %s: %w", gvk.Kind, obj.GetName(), err)
		}
		out = append(out, newDifference(found))
	}
	return out, nil
}
