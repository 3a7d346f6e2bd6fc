package ui

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/health"
)

// maxKinds bounds how many kinds of an Instance's objects are watched for its page.
const maxKinds = 32

// podKind is watched for each Instance: pods have its labels, and are in no inventory.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// detail watches what the page of one Instance shows besides the Instance: its objects, a kind each, its events and the records of its
// runs. It is stopped some seconds after the last page of the Instance was closed.
type detail struct {
	server *Server
	key    client.ObjectKey
	ctx    context.Context
	stop   context.CancelFunc
	events *feed
	runs   *feed

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*feed
	// unmapped are kinds that the cluster did not serve when their watch was to begin.
	unmapped map[schema.GroupVersionKind]feedStatus
	users    int
	closing  *time.Timer
}

// openDetail returns the detail of an Instance, which is to be closed. It is nil before Run.
func (s *Server) openDetail(key client.ObjectKey) *detail {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil || s.running.Err() != nil {
		return nil
	}
	d := s.details[key]
	if d == nil {
		var err error
		if d, err = s.newDetail(key); err != nil {
			return nil
		}
		s.details[key] = d
	}
	d.users++
	if d.closing != nil {
		d.closing.Stop()
		d.closing = nil
	}
	return d
}

// close gives a detail back.
func (d *detail) close() {
	if d == nil {
		return
	}
	d.server.mu.Lock()
	defer d.server.mu.Unlock()
	if d.users--; d.users > 0 {
		return
	}
	d.closing = time.AfterFunc(linger, func() {
		d.server.mu.Lock()
		defer d.server.mu.Unlock()
		if d.users == 0 && d.server.details[d.key] == d {
			delete(d.server.details, d.key)
			d.stop()
		}
	})
}

// newDetail begins to watch events and records. The feeds of objects follow by kind.
func (s *Server) newDetail(key client.ObjectKey) (*detail, error) {
	d := &detail{server: s, key: key, kinds: map[schema.GroupVersionKind]*feed{}, unmapped: map[schema.GroupVersionKind]feedStatus{}}
	about := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.kind", "Instance"),
		fields.OneTermEqualSelector("involvedObject.name", key.Name)).String()
	of := labels.SelectorFromSet(labels.Set{v1beta1.InstanceLabel: key.Name}).String()
	events, runs := s.typed.CoreV1().Events(key.Namespace), s.typed.AppsV1().ControllerRevisions(key.Namespace)
	var err error
	if d.events, err = newFeed("events", &corev1.Event{}, sourceOf(events.List, events.Watch, func(o *metav1.ListOptions) {
		o.FieldSelector = about
	}), func(any) {}, s.Clock, s.changes.notify); err != nil {
		return nil, err
	}
	if d.runs, err = newFeed("controllerrevisions", &appsv1.ControllerRevision{}, sourceOf(runs.List, runs.Watch, func(o *metav1.ListOptions) {
		o.LabelSelector = of
	}), reduceRun, s.Clock, s.changes.notify); err != nil {
		return nil, err
	}
	d.ctx, d.stop = context.WithCancel(s.running)
	go d.events.run(d.ctx)
	go d.runs.run(d.ctx)
	return d, nil
}

// sourceOf returns a source of typed objects, whose options choose has completed.
func sourceOf[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error),
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error), choose func(*metav1.ListOptions)) source {
	return source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			choose(&o)
			return list(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			choose(&o)
			return watching(ctx, o)
		},
	}
}

// observe begins to watch the kinds of the Instance's inventory that are not watched yet.
func (d *detail) observe(resources []v1beta1.ResourceStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pods := v1beta1.ResourceStatus{APIVersion: podKind.GroupVersion().String(), Kind: podKind.Kind, Namespace: d.key.Namespace}
	for _, r := range append([]v1beta1.ResourceStatus{pods}, resources...) {
		kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		if r.Namespace != d.key.Namespace || d.kinds[kind] != nil || len(d.kinds) >= maxKinds {
			continue
		}
		if _, failed := d.unmapped[kind]; failed {
			continue
		}
		mapping, err := d.server.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			d.unmapped[kind] = feedStatus{State: notServed, Message: err.Error(), Since: d.server.Clock.Now()}
			continue
		}
		f, err := d.server.newObjectFeed(mapping, d.key)
		if err != nil {
			continue
		}
		d.kinds[kind] = f
		go f.run(d.ctx)
	}
}

// newObjectFeed returns a feed of the objects of a kind that an Instance has written. Of Secrets, only metadata is asked for (U9).
func (s *Server) newObjectFeed(mapping *meta.RESTMapping, of client.ObjectKey) (*feed, error) {
	choose := func(o *metav1.ListOptions) {
		o.LabelSelector = labels.SelectorFromSet(labels.Set{v1beta1.InstanceLabel: of.Name, v1beta1.HeritageLabel: v1beta1.Heritage}).String()
	}
	if mapping.GroupVersionKind.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		secrets := s.metadata.Resource(mapping.Resource).Namespace(of.Namespace)
		return newFeed(mapping.Resource.Resource, &metav1.PartialObjectMetadata{}, sourceOf(secrets.List, secrets.Watch, choose), reduceObject,
			s.Clock, s.changes.notify)
	}
	objects := s.dynamic.Resource(mapping.Resource).Namespace(of.Namespace)
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(mapping.GroupVersionKind)
	return newFeed(mapping.Resource.Resource, example, sourceOf(objects.List, objects.Watch, choose), reduceObject, s.Clock, s.changes.notify)
}

// reduceObject removes data and annotations, which no page shows.
func reduceObject(obj any) {
	if o, ok := obj.(client.Object); ok {
		o.SetAnnotations(nil)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		for _, field := range []string{"data", "binaryData", "stringData"} {
			delete(u.Object, field)
		}
	}
}

// reduceRun keeps of a record what the history shows.
func reduceRun(obj any) {
	if r, ok := obj.(*appsv1.ControllerRevision); ok {
		r.Data.Object = nil
	}
}

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
			row.Name = r.Namespace + "/" + r.Name
		}
		row.State, row.Message = d.judge(r)
		row.Message = show(row.Message)
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

// pods returns the pods of the Instance that are not in its inventory.
func (d *detail) pods(i *v1beta1.Instance, show func(string) string) []objectRow {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	f := d.kinds[podKind]
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	var out []objectRow
	for _, pod := range objectsOf[*unstructured.Unstructured](f) {
		if slices.ContainsFunc(i.Status.Resources, func(r v1beta1.ResourceStatus) bool {
			return r.Kind == podKind.Kind && r.Name == pod.GetName()
		}) {
			continue
		}
		row := objectRow{Kind: podKind.Kind, Name: pod.GetName()}
		row.State, row.Message = healthOf(pod)
		row.Message = show(row.Message)
		out = append(out, row)
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
func (d *detail) judge(r v1beta1.ResourceStatus) (state, string) {
	if d == nil {
		return objectUnknown, ""
	}
	kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	d.mu.Lock()
	f, unmapped := d.kinds[kind], d.unmapped[kind]
	d.mu.Unlock()
	status := unmapped
	if f != nil {
		status = f.Status()
	}
	switch {
	case r.Namespace != d.key.Namespace, f == nil && unmapped.Message == "":
		return objectUnknown, "it is not in the namespace of the Instance: this page does not watch it"
	case status.State == loading:
		return objectUnknown, "loading"
	case status.State == forbidden:
		return objectUnknown, "you have no right to list and watch " + f.kind
	case status.State != current:
		return objectUnknown, status.Message
	}
	live, found := objectOf[client.Object](f, r.Namespace, r.Name)
	if !found {
		return objectMissing, ""
	}
	u, whole := live.(*unstructured.Unstructured)
	if !whole {
		return objectThere, "only its metadata is read"
	}
	return healthOf(u)
}

// healthOf returns the state of a live object.
func healthOf(u *unstructured.Unstructured) (state, string) {
	switch result := health.Check(u); result.State {
	case health.Ready:
		return objectReady, ""
	case health.Failed:
		return objectFailed, result.Message
	case health.Progressing:
		return objectMoving, result.Message
	default:
		return objectUnknown, result.Message
	}
}
