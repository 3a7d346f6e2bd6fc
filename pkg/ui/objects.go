package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health"
)

// objectRow is a line of the list of an Instance's objects.
type objectRow struct {
	Kind, Name string
	State      state
	Message    string
	Drift      *v1beta1.ObjectDrift
}

// objects returns the objects of the inventory, each as it is now, as far as the user may see it.
func (d *detail) objects(i *v1beta1.Instance, show func(string) string) []objectRow {
	var out []objectRow
	for _, r := range i.Status.Resources {
		row := objectRow{Kind: r.Kind, Name: r.Name}
		if r.Namespace != i.Namespace {
			row.Name = strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
		}
		row.State, row.Message = d.judge(r, show)
		for n, drift := range i.Status.Drift {
			if drift.IsSameObject(v1beta1.ObjectDrift{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}) {
				row.Drift = &i.Status.Drift[n]
			}
		}
		out = append(out, row)
	}
	out = append(out, d.pods(i, show)...)
	slices.SortFunc(out, func(a, b objectRow) int {
		return cmp.Or(cmp.Compare(a.State.rank, b.State.rank), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// pods returns the pods of the Instance that are not in its inventory, or one row that says why they are not known.
func (d *detail) pods(i *v1beta1.Instance, show func(string) string) []objectRow {
	if d == nil {
		return nil
	}
	f := d.feedOf(podKind)
	if f == nil {
		return nil
	}
	var out []objectRow
	why := f.unknown()
	for _, pod := range objectsOf[*unstructured.Unstructured](f) {
		if slices.ContainsFunc(i.Status.Resources, func(r v1beta1.ResourceStatus) bool {
			return r.Kind == podKind.Kind && r.Name == pod.GetName()
		}) {
			continue
		}
		row := objectRow{Kind: podKind.Kind, Name: pod.GetName(), State: objectUnknown, Message: why}
		if why == "" {
			row.State, row.Message = healthOf(pod, show)
		}
		out = append(out, row)
	}
	if len(out) == 0 && why != "" {
		out = append(out, objectRow{Kind: "Pods", State: objectUnknown, Message: why})
	}
	return out
}

// The states of objects.
var (
	objectFailed  = state{"failed", "✗", "bad", 0}
	objectMissing = state{"missing", "∅", "bad", 1}
	objectMoving  = state{"in progress", "↻", "busy", 2}
	objectUnknown = state{"unknown", "?", "idle", 3}
	objectThere   = state{"there", "✓", "good", 4}
	objectReady   = state{"ready", "✓", "good", 5}
)

// judge returns the state of an object of the inventory.
func (d *detail) judge(r v1beta1.ResourceStatus, show func(string) string) (state, string) {
	if d == nil {
		return objectUnknown, ""
	}
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	f := d.feedOf(kind)
	switch {
	case r.Namespace != d.key.Namespace:
		return objectUnknown, "it is not in the namespace of the Instance: this page does not watch it"
	case f == nil:
		return objectUnknown, fmt.Sprintf("the Instance has more kinds of objects than the %d that this page watches", maxKinds)
	}
	if why := f.unknown(); why != "" {
		return objectUnknown, why
	}
	live, found := objectOf[client.Object](f, r.Namespace, r.Name)
	if !found {
		return objectMissing, "it does not exist, or its labels were removed"
	}
	u, whole := live.(*unstructured.Unstructured)
	if !whole {
		return objectThere, "only its metadata is read"
	}
	return healthOf(u, show)
}

// healthOf returns the state of a live object.
func healthOf(u *unstructured.Unstructured, show func(string) string) (state, string) {
	switch result := health.Check(u); result.State {
	case health.Ready:
		return objectReady, ""
	case health.Failed:
		return objectFailed, show(result.Message)
	case health.Progressing:
		return objectMoving, show(result.Message)
	default:
		return objectUnknown, show(result.Message)
	}
}
