package testsuite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// stepObserver sees the objects that a step speaks of. Its watches are open before the step's commands run, and what they show
// stays in order, so that a state that lasts a moment only is seen.
type stepObserver struct {
	cluster   *Cluster
	namespace string
	step      *Step

	cancel  context.CancelFunc
	done    sync.WaitGroup
	changed chan change
	objects map[string]map[string]*unstructured.Unstructured
	// since is the resourceVersion up to which changes lie before the moments that count, by place.
	since map[string]string
	// unopened are expectations of kinds that the cluster did not know when the step began.
	unopened map[string]*unstructured.Unstructured
}

// change is what a watch has shown; a nil event is a fresh list.
type change struct {
	place string
	event watch.Event
	list  []unstructured.Unstructured
	// version is the resourceVersion of the list.
	version string
}

// placeOf is what is watched for an expectation: a kind in a namespace.
func placeOf(obj *unstructured.Unstructured, namespace string) string {
	if obj.GetNamespace() != "" {
		namespace = obj.GetNamespace()
	}
	return obj.GroupVersionKind().String() + " in " + namespace
}

func observe(ctx context.Context, cluster *Cluster, step *Step, namespace string) (*stepObserver, error) {
	ctx, cancel := context.WithCancel(ctx)
	v := &stepObserver{
		cluster: cluster, namespace: namespace, step: step, cancel: cancel, changed: make(chan change, 256),
		objects: map[string]map[string]*unstructured.Unstructured{}, since: map[string]string{},
		unopened: map[string]*unstructured.Unstructured{},
	}
	for _, obj := range step.expectations() {
		if err := v.open(ctx, obj); err != nil {
			v.stop()
			return nil, err
		}
	}
	return v, nil
}

// expectations are the objects that a step speaks of.
func (s *Step) expectations() []*unstructured.Unstructured {
	out := slices.Concat(s.Asserts, s.Errors)
	for _, e := range s.Expressions {
		for _, r := range e.refs {
			out = append(out, r.object())
		}
	}
	return out
}

// open watches the place of an expectation, once. A kind that is not known yet is tried again later.
func (v *stepObserver) open(ctx context.Context, obj *unstructured.Unstructured) error {
	place := placeOf(obj, v.namespace)
	if _, open := v.objects[place]; open {
		return nil
	}
	resource, err := v.cluster.resource(obj, v.namespace)
	if meta.IsNoMatchError(err) {
		v.unopened[place] = obj
		return nil
	}
	if err != nil {
		return err
	}
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", place, err)
	}
	delete(v.unopened, place)
	v.take(change{place: place, list: list.Items, version: list.GetResourceVersion()})
	v.done.Add(1)
	go func() {
		defer v.done.Done()
		v.follow(ctx, place, resource, list.GetResourceVersion())
	}()
	return nil
}

// follow watches, and lists again when the watch breaks, until the context ends.
func (v *stepObserver) follow(ctx context.Context, place string, resource dynamic.ResourceInterface, version string) {
	send := func(c change) {
		select {
		case v.changed <- c:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		events, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		for err == nil {
			e, open := <-events.ResultChan()
			if !open || e.Type == watch.Error {
				events.Stop()
				break
			}
			if obj, ok := e.Object.(*unstructured.Unstructured); ok {
				version = obj.GetResourceVersion()
				send(change{place: place, event: e})
			}
		}
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err == nil {
			version = list.GetResourceVersion()
			send(change{place: place, list: list.Items, version: version})
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// refresh looks at all places anew: what the step's commands did lies behind, and only later moments count.
func (v *stepObserver) refresh(ctx context.Context) error {
	for _, obj := range v.step.expectations() {
		place := placeOf(obj, v.namespace)
		if v.since[place] != "" {
			continue
		}
		if _, open := v.objects[place]; !open {
			if err := v.open(ctx, obj); err != nil {
				return err
			}
			continue
		}
		resource, err := v.cluster.resource(obj, v.namespace)
		if err != nil {
			return err
		}
		now, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s: %w", place, err)
		}
		v.take(change{place: place, list: now.Items, version: now.GetResourceVersion()})
		v.since[place] = now.GetResourceVersion()
	}
	return nil
}

// past reports whether a change lies before the moments that count.
func (v *stepObserver) past(c change) bool {
	version := c.version
	if obj, isEvent := c.event.Object.(*unstructured.Unstructured); isEvent {
		version = obj.GetResourceVersion()
	}
	order, err := resourceversion.CompareResourceVersion(version, v.since[c.place])
	return err == nil && order <= 0
}

func (v *stepObserver) take(c change) {
	obj, isEvent := c.event.Object.(*unstructured.Unstructured)
	switch {
	case v.past(c):
	case !isEvent:
		v.objects[c.place] = map[string]*unstructured.Unstructured{}
		for i := range c.list {
			v.objects[c.place][c.list[i].GetName()] = &c.list[i]
		}
	case c.event.Type == watch.Deleted:
		delete(v.objects[c.place], obj.GetName())
	case c.event.Type == watch.Added, c.event.Type == watch.Modified:
		v.objects[c.place][obj.GetName()] = obj
	}
}

func (v *stepObserver) stop() {
	v.cancel()
	v.done.Wait()
}

// recheck is how often commands that must succeed, and kinds that were unknown, are tried again.
const recheck = 500 * time.Millisecond

// firstRead is by how much an assert may exceed its timeout while its objects are read for the first time.
const firstRead = 30 * time.Second

// await waits for a moment at which all asserts hold, all errors are absent and all checks succeed.
func (v *stepObserver) await(ctx context.Context, timeout time.Duration, check func(context.Context) []string) error {
	bounded, end := context.WithTimeout(ctx, firstRead+timeout)
	defer end()
	unread := v.refresh(bounded)
	limited, cancel := context.WithTimeout(bounded, timeout)
	defer cancel()
	again := time.NewTicker(recheck)
	defer again.Stop()
	var failed []string // what the last commands that have ended said
	for {
		problems := v.problems()
		switch {
		case unread != nil:
			problems = []string{unread.Error()}
		case len(problems) == 0:
			if problems = check(limited); len(problems) == 0 {
				return nil
			}
			if limited.Err() != nil && failed != nil { // the end of the time has ended a command, which says nothing of what does not hold
				problems = failed
			}
			failed = problems
		}
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return &UnmetError{After: timeout, Problems: problems}
		case <-again.C:
			unread = v.catchUp(limited, unread)
		case c := <-v.changed:
			v.take(c)
		}
	}
}

// catchUp reads again what could not be read, and opens kinds that were unknown.
func (v *stepObserver) catchUp(ctx context.Context, unread error) error {
	if unread != nil {
		return v.refresh(ctx)
	}
	for _, obj := range v.unopened {
		if err := v.open(ctx, obj); err != nil {
			return nil // It stays unknown, and is tried again.
		}
	}
	return nil
}

// UnmetError says what did not hold in time.
type UnmetError struct {
	After    time.Duration
	Problems []string
}

// Error implements error.
func (u *UnmetError) Error() string {
	return fmt.Sprintf("does not hold after %s:\n%s", u.After, indent(strings.Join(u.Problems, "\n")))
}

// problems lists what does not hold now.
func (v *stepObserver) problems() []string {
	var out []string
	for _, want := range v.step.Asserts {
		out = append(out, v.unmet(want)...)
	}
	for _, unwanted := range v.step.Errors {
		if len(v.unmet(unwanted)) == 0 {
			out = append(out, fmt.Sprintf("%s must not be there, and is", title(unwanted)))
		}
	}
	for _, e := range v.step.Expressions {
		out = append(out, e.unmet(v.find)...)
	}
	return out
}

// find returns the object of a name that is there now, or why there is none.
func (v *stepObserver) find(want *unstructured.Unstructured) (*unstructured.Unstructured, string) {
	if obj := v.objects[placeOf(want, v.namespace)][want.GetName()]; obj != nil {
		return obj, ""
	}
	return nil, v.whyAbsent(want)
}

func title(obj *unstructured.Unstructured) string {
	if obj.GetName() == "" {
		return obj.GetKind() + " (of any name)"
	}
	return obj.GetKind() + " " + obj.GetName()
}

// unmet says why no object meets an expectation, with the differences of the nearest one.
func (v *stepObserver) unmet(want *unstructured.Unstructured) []string {
	var nearest []Difference
	found := ""
	objects := v.objects[placeOf(want, v.namespace)]
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if want.GetName() != "" && want.GetName() != name {
			continue
		}
		differences := Differences(want.Object, objects[name].Object, "")
		if len(differences) == 0 {
			return nil
		}
		if found == "" || distance(differences) < distance(nearest) {
			nearest, found = differences, name
		}
	}
	if found != "" {
		out := []string{fmt.Sprintf("%s %s is not as expected:", want.GetKind(), found)}
		for _, d := range nearest {
			out = append(out, "  "+d.String())
		}
		return out
	}
	return []string{v.whyAbsent(want)}
}

// whyAbsent says that no object of an expectation exists, and what does.
func (v *stepObserver) whyAbsent(want *unstructured.Unstructured) string {
	place := placeOf(want, v.namespace)
	names := slices.Sorted(maps.Keys(v.objects[place]))
	switch {
	case v.unopened[place] != nil:
		return fmt.Sprintf("%s: the cluster does not know the kind %s of %s", title(want), want.GetKind(), want.GetAPIVersion())
	case len(names) > 0:
		return fmt.Sprintf("%s does not exist; there are %s", title(want), strings.Join(names[:min(len(names), 10)], ", "))
	}
	return fmt.Sprintf("%s does not exist", title(want))
}

// indent puts text under a line.
func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
