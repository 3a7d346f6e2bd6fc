package culprit

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds of what is listed: more pods than that are not looked at.
const (
	MaxPods   = 250
	MaxEvents = 100
)

// Reader lists pods and events. A reader has the rights of the account or the user that sees the answer, and no others.
type Reader interface {
	// Pods lists at most MaxPods pods of a namespace that have the labels.
	Pods(ctx context.Context, namespace, labels string) ([]corev1.Pod, error)
	// Events lists at most MaxEvents events of a namespace that have the fields.
	Events(ctx context.Context, namespace, fields string) ([]corev1.Event, error)
}

// Options of a search.
type Options struct {
	// Known is the pod that was named before; empty if none was.
	Known string
	// Since is when the object began to be awaited: events of it from before are of another cause.
	Since time.Time
}

// eventSlack is how much older an event may be than the wait: the clocks of two machines differ.
const eventSlack = 10 * time.Second

// Search finds what keeps an object from being ready, with two lists at most: its pods, and the events of what was found. An error of
// a list comes with what was found without it.
func Search(ctx context.Context, r Reader, object *unstructured.Unstructured, o Options) (Finding, error) {
	pods, err := PodsOf(ctx, r, object)
	found := Find(object, pods, o.Known)
	found.PodsRead = err == nil
	if err != nil || found.complete || found.events.namespace == "" || found.events.uid == "" && found.events.name == "" {
		return found, err
	}
	events, err := r.Events(ctx, found.events.namespace, found.events.selector())
	if err == nil {
		since := o.Since
		if !since.IsZero() && found.Pod == "" {
			since = since.Add(-eventSlack)
		} else {
			since = time.Time{} // a pod that is not ready now has no other cause than its last warning
		}
		found.explain(events, since)
	}
	return found, err
}

// PodsOf returns the pods of an object, of which a Pod has itself.
func PodsOf(ctx context.Context, r Reader, object *unstructured.Unstructured) ([]corev1.Pod, error) {
	if object.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		pod := corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod) != nil {
			return nil, nil
		}
		return []corev1.Pod{pod}, nil
	}
	selector, found := Selector(object)
	if !found {
		return nil, nil
	}
	pods, err := r.Pods(ctx, object.GetNamespace(), selector)
	return Owned(object, pods), err
}

// selector chooses the events of a subject.
func (s subject) selector() string {
	set := fields.Set{"involvedObject.uid": string(s.uid)}
	if s.uid == "" {
		set = fields.Set{"involvedObject.kind": s.kind, "involvedObject.name": s.name}
	}
	return set.AsSelector().String()
}
