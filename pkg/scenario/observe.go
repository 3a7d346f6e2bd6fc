package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// view sees the objects that a step speaks of. Its watches are open before the step's commands run, so that a state that
// lasts a moment only is seen.
type view struct {
	step    *Step
	stops   []func()
	events  chan change
	objects map[string]map[string]*unstructured.Unstructured
	// kinds that the cluster does not serve (yet).
	missing []string
}

type change struct {
	place string
	event watch.Event
}

// placeOf is what is watched for an expectation: a kind in a namespace.
func placeOf(obj *unstructured.Unstructured, namespace string) string {
	if obj.GetNamespace() != "" {
		namespace = obj.GetNamespace()
	}
	return obj.GroupVersionKind().String() + " in " + namespace
}

func (r *Runner) observe(ctx context.Context, step *Step, namespace string) (*view, error) {
	v := &view{step: step, events: make(chan change, 256), objects: map[string]map[string]*unstructured.Unstructured{}}
	for _, list := range [][]*unstructured.Unstructured{step.Asserts, step.Errors} {
		for _, obj := range list {
			place := placeOf(obj, namespace)
			if _, open := v.objects[place]; open {
				continue
			}
			resource, err := r.resource(obj, namespace)
			if meta.IsNoMatchError(err) {
				v.missing = append(v.missing, place)
				continue
			}
			if err != nil {
				v.stop()
				return nil, err
			}
			if err := v.open(ctx, place, resource); err != nil {
				v.stop()
				return nil, err
			}
		}
	}
	for i := range step.Asserts {
		step.Asserts[i] = expectation(step.Asserts[i], namespace)
	}
	for i := range step.Errors {
		step.Errors[i] = expectation(step.Errors[i], namespace)
	}
	return v, nil
}

// expectation remembers the namespace that an object is expected in.
func expectation(obj *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	if len(out.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	if out.GetNamespace() == "" {
		out.SetNamespace(namespace)
	}
	return out
}

func (v *view) open(ctx context.Context, place string, resource dynamic.ResourceInterface) error {
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", place, err)
	}
	v.objects[place] = map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		v.objects[place][list.Items[i].GetName()] = &list.Items[i]
	}
	events, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return fmt.Errorf("watch %s: %w", place, err)
	}
	done := make(chan struct{})
	v.stops = append(v.stops, func() { close(done); events.Stop() })
	go func() {
		for e := range events.ResultChan() {
			select {
			case v.events <- change{place, e}:
			case <-done:
				return
			}
		}
	}()
	return nil
}

func (v *view) stop() {
	for _, stop := range v.stops {
		stop()
	}
	v.stops = nil
}

// await waits for a moment at which all asserts hold and all errors are absent.
func (v *view) await(ctx context.Context, timeout time.Duration) error {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	problems := v.problems()
	for len(problems) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("after %s:\n%s", timeout, indent(strings.Join(problems, "\n")))
		case c := <-v.events:
			obj, ok := c.event.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if c.event.Type == watch.Deleted {
				delete(v.objects[c.place], obj.GetName())
			} else if c.event.Type != watch.Bookmark {
				v.objects[c.place][obj.GetName()] = obj
			}
			problems = v.problems()
		}
	}
	return nil
}

// problems lists what does not hold now.
func (v *view) problems() []string {
	var out []string
	for _, want := range v.step.Asserts {
		out = append(out, v.unmet(want)...)
	}
	for _, unwanted := range v.step.Errors {
		if len(v.unmet(unwanted)) == 0 {
			out = append(out, fmt.Sprintf("%s %s must not be there, and is", unwanted.GetKind(), unwanted.GetName()))
		}
	}
	return out
}

// unmet says why no object meets an expectation, with the differences of the nearest one.
func (v *view) unmet(want *unstructured.Unstructured) []string {
	var nearest []string
	found := ""
	for name, live := range v.objects[placeOf(want, "")] {
		if want.GetName() != "" && want.GetName() != name {
			continue
		}
		expected := want.DeepCopy()
		if live.GetNamespace() == "" {
			unstructured.RemoveNestedField(expected.Object, "metadata", "namespace")
		}
		differences := Differences(expected.Object, live.Object, "")
		if len(differences) == 0 {
			return nil
		}
		if nearest == nil || len(differences) < len(nearest) {
			nearest, found = differences, name
		}
	}
	if nearest == nil {
		return []string{fmt.Sprintf("%s %s does not exist", want.GetKind(), want.GetName())}
	}
	return append([]string{fmt.Sprintf("%s %s is not as expected:", want.GetKind(), found)}, nearest...)
}
