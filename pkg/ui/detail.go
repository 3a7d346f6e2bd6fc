package ui

import (
	"context"
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
)

// maxKinds bounds how many kinds of an Instance's objects are watched for its page.
const maxKinds = 32

// podKind is watched for each Instance: pods have its labels, and are in no inventory.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// detail watches what the page of one Instance shows besides the Instance: its objects, a kind each, its events and the records of its
// runs, and the logs of what has failed. It is stopped some seconds after the last page of the Instance was closed.
type detail struct {
	server *Server
	key    client.ObjectKey
	ctx    context.Context
	stop   context.CancelFunc
	events *feed
	runs   *feed

	mu      sync.Mutex
	kinds   map[schema.GroupVersionKind]*feed
	users   int
	closing *time.Timer

	logsMu sync.Mutex
	logs   map[logKey]*podLog
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

// close ends one use of a detail. The last one stops its watches after a time.
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
	d := &detail{server: s, key: key, kinds: map[schema.GroupVersionKind]*feed{}, logs: map[logKey]*podLog{}}
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
		f, err := d.server.newObjectFeed(kind, d.key)
		if err != nil {
			continue
		}
		d.kinds[kind] = f
		go f.run(d.ctx)
	}
}

// feedOf returns the feed of a kind, or nil if the page has none.
func (d *detail) feedOf(kind schema.GroupVersionKind) *feed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kinds[kind]
}

// newObjectFeed returns a feed of the objects of a kind that an Instance has written. Of Secrets, only metadata is asked for. Its list
// and watch functions find out what the kind is called in addresses: that may ask the cluster, and is tried again as they are.
func (s *Server) newObjectFeed(kind schema.GroupVersionKind, of client.ObjectKey) (*feed, error) {
	choose := func(o *metav1.ListOptions) {
		o.LabelSelector = labels.SelectorFromSet(labels.Set{v1beta1.InstanceLabel: of.Name, v1beta1.HeritageLabel: v1beta1.Heritage}).String()
	}
	secret := kind.GroupKind() == (schema.GroupKind{Kind: "Secret"})
	mapped := func() (source, error) {
		mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return source{}, err
		}
		if secret {
			secrets := s.metadata.Resource(mapping.Resource).Namespace(of.Namespace)
			return sourceOf(secrets.List, secrets.Watch, choose), nil
		}
		objects := s.dynamic.Resource(mapping.Resource).Namespace(of.Namespace)
		return sourceOf(objects.List, objects.Watch, choose), nil
	}
	from := source{
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			now, err := mapped()
			if err != nil {
				return nil, err
			}
			return now.list(ctx, o)
		},
		watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			now, err := mapped()
			if err != nil {
				return nil, err
			}
			return now.watch(ctx, o)
		},
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind) // for messages only
	if secret {
		return newFeed(plural.Resource, &metav1.PartialObjectMetadata{}, from, reduceObject, s.Clock, s.changes.notify)
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(kind)
	return newFeed(plural.Resource, example, from, reduceObject, s.Clock, s.changes.notify)
}

// reduceObject removes data and annotations, which no page shows. It keeps the one annotation that pkg/health reads.
func reduceObject(obj any) {
	if o, ok := obj.(client.Object); ok {
		suspended, set := o.GetAnnotations()[v1beta1.SuspendedAnnotation]
		o.SetAnnotations(nil)
		if set {
			o.SetAnnotations(map[string]string{v1beta1.SuspendedAnnotation: suspended})
		}
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
