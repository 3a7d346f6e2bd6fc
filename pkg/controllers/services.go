package controllers

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// services reads the Services of explore webhooks. Each one that a configuration names has a watch of its own from its first read: a
// cluster has many Services, and few of them are webhooks.
type services struct {
	// ctx ends the watches.
	ctx context.Context
	set kubernetes.Interface
	// changed is called when the spec of a Service has changed, and when one was created or deleted.
	changed func(types.NamespacedName)

	mu sync.Mutex
	// named are those that configurations name.
	named   []types.NamespacedName
	watches map[types.NamespacedName]*serviceWatch
}

// serviceWatch is the watch of one Service.
type serviceWatch struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// Get reads a Service: from its watch, or live until that has listed it.
func (s *services) Get(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	w := s.watch(types.NamespacedName{Namespace: namespace, Name: name})
	if w == nil || !w.informer.HasSynced() {
		return s.set.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	found, exists, err := w.informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
	}
	return found.(*corev1.Service), nil
}

// watch returns the watch of a Service, and starts it if need be, or nil if no configuration names the Service any more.
func (s *services) watch(service types.NamespacedName) *serviceWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.watches[service]; w != nil || !slices.Contains(s.named, service) {
		return w
	}
	ctx, stop := context.WithCancel(s.ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(s.set, 0, informers.WithNamespace(service.Namespace),

		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, service.Name).String()
		}))
	w := &serviceWatch{informer: factory.Core().V1().Services().Informer(), stop: stop}
	_, _ = w.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, first bool) {
			if !first {
				s.changed(service)
			}
		},
		UpdateFunc: func(before, after any) {
			if !equality.Semantic.DeepEqual(before.(*corev1.Service).Spec, after.(*corev1.Service).Spec) {
				s.changed(service)
			}
		},
		DeleteFunc: func(any) { s.changed(service) },
	})
	s.watches[service] = w
	go w.informer.RunWithContext(ctx)
	return w
}

// keep ends the watches of all Services but the named ones.
func (s *services) keep(named []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named = named
	for service, w := range s.watches {
		if !slices.Contains(named, service) {
			w.stop()
			delete(s.watches, service)
		}
	}
}
