// Package paramsource reads the Secrets and ConfigMaps that give values to parameters, and says when they change.
package paramsource

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
)

// Values is what sources give.
type Values struct {
	// Given maps parameters to values.
	Given map[string]string
	// Sensitive are the parameters whose values come from Secrets, sorted.
	Sensitive []string
}

// MissingError says that a source, or a key of it, is not there, or must not be read. What is waited for may come.
type MissingError struct{ Message string }

// Error implements error.
func (e *MissingError) Error() string { return e.Message }

// Reference names a source.
type Reference struct {
	// Kind is Secret or ConfigMap.
	Kind string
	types.NamespacedName
}

// Reader reads sources once a change: their metadata is watched, from the first use on.
type Reader struct {
	ctx     context.Context
	meta    metadata.Interface
	client  client.Client
	changed func(Reference)

	clock clock.PassiveClock

	mu      sync.Mutex
	watches map[string]cache.SharedIndexInformer
	read    map[reader]content
}

// reader is a source as an account may read it.
type reader struct {
	Reference
	account types.NamespacedName
}

// maxDecisionAge is how long the decision that an account may read a source counts: rights that were taken back count
// after that.
const maxDecisionAge = 30 * time.Second

// content is what a source held at a resourceVersion.
type content struct {
	version string
	data    map[string]string
	// allowed is when the account was last seen to be allowed to read it.
	allowed time.Time
}

// New returns sources that are read with the client, and watched until the context ends. What changes is passed on,
// also if no Instance has asked for it.
func New(ctx context.Context, meta metadata.Interface, c client.Client, clock clock.PassiveClock, changed func(Reference)) *Reader {
	return &Reader{ctx: ctx, meta: meta, client: c, clock: clock, changed: changed, watches: map[string]cache.SharedIndexInformer{},
		read: map[reader]content{}}
}

// Values reads what the sources of an Instance give, as the ServiceAccount may read them. Later sources win over earlier ones. The error
// is a *MissingError if the Instance has to wait.
func (s *Reader) Values(ctx context.Context, instance *v1beta1.Instance, account types.NamespacedName,
	defs []v1beta1.Parameter) (Values, error) {
	return collectValues(instance, defs, func(r Reference) (map[string]string, error) { return s.data(ctx, reader{r, account}) })
}

// Read reads what the sources of an Instance give once, for tools: nothing is watched.
func Read(ctx context.Context, c client.Reader, instance *v1beta1.Instance, defs []v1beta1.Parameter) (Values, error) {
	return collectValues(instance, defs, func(r Reference) (map[string]string, error) {
		now, err := get(ctx, c, r)
		if apierror.IsObjectNotFound(err) {
			return nil, nil
		}
		return now.data, err
	})
}

// collectValues puts together what sources give. A source that is not there has no data.
func collectValues(instance *v1beta1.Instance, defs []v1beta1.Parameter, read func(Reference) (map[string]string, error)) (Values, error) {
	out := Values{Given: map[string]string{}}
	secret := map[string]bool{}
	for i, from := range instance.Spec.ParametersFrom {
		data, err := read(Reference{from.Kind, types.NamespacedName{Namespace: instance.Namespace, Name: from.Name}})
		if err != nil {
			return Values{}, err
		}
		if data == nil && !from.Optional {
			return Values{}, &MissingError{fmt.Sprintf("waits for %s %s/%s, which spec.parametersFrom[%d] names and which does not exist: create "+
				"it, correct the name, or set optional", from.Kind, instance.Namespace, from.Name, i)}
		}
		values, missing := selectKeys(from, data, defs)
		if missing != "" && !from.Optional {
			return Values{}, &MissingError{fmt.Sprintf("waits for key %q of %s %s/%s, which spec.parametersFrom[%d].keys names and which is not "+
				"there: add it, correct the name, or set optional", missing, from.Kind, instance.Namespace, from.Name, i)}
		}
		for name, value := range values {
			out.Given[name], secret[name] = value, from.Kind == "Secret"
		}
	}
	for name, hidden := range secret {
		if _, open := instance.Spec.Parameters[name]; hidden && !open {
			out.Sensitive = append(out.Sensitive, name)
		}
	}
	slices.Sort(out.Sensitive)
	return out, nil
}

// selectKeys takes the values of parameters from a source's data, and names the first key that is not there.
func selectKeys(from v1beta1.ParametersSource, data map[string]string,
	defs []v1beta1.Parameter) (values map[string]string, missing string) {
	values = map[string]string{}
	if len(from.Keys) == 0 {
		for _, def := range defs {
			if value, has := data[def.Name]; has {
				values[def.Name] = value
			}
		}
		return values, ""
	}
	for name, key := range from.Keys {
		value, has := data[key]
		switch {
		case has:
			values[name] = value
		case missing == "" || key < missing:
			missing = key
		}
	}
	return values, missing
}

// data returns what a source holds, or nil if it is not there.
func (s *Reader) data(ctx context.Context, r reader) (map[string]string, error) {
	version := s.version(r.Reference)
	s.mu.Lock()
	known, ok := s.read[r]
	s.mu.Unlock()
	current := ok && version != "" && known.version == version
	if since := s.clock.Since(known.allowed); current && since >= 0 && since < maxDecisionAge {
		return known.data, nil
	}
	if err := s.allowed(ctx, r); err != nil {
		return nil, err
	}
	allowed := s.clock.Now()
	if current {
		known.allowed = allowed
		s.mu.Lock()
		s.read[r] = known
		s.mu.Unlock()
		return known.data, nil
	}
	now, err := get(ctx, s.client, r.Reference)
	if apierror.IsObjectNotFound(err) {
		s.forget(r.Reference)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.Kind, r.NamespacedName, err)
	}
	now.allowed = allowed
	s.mu.Lock()
	s.read[r] = now
	s.mu.Unlock()
	return now.data, nil
}

// allowed fails if an account may not read a source: a plan that writes with the rights of an account reads with them.
func (s *Reader) allowed(ctx context.Context, r reader) error {
	if r.account.Namespace == "" || r.account.Name == "" {
		return fmt.Errorf("%s %s must not be read without a ServiceAccount", r.Kind, r.NamespacedName)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   serviceaccount.MakeUsername(r.account.Namespace, r.account.Name),
		Groups: append(serviceaccount.MakeGroupNames(r.account.Namespace), "system:authenticated"),
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: resources[r.Kind], Namespace: r.Namespace,
			Name: r.Name},
	}}
	if err := s.client.Create(ctx, review); err != nil {
		return fmt.Errorf("ask whether ServiceAccount %s may read %s %s: %w", r.account, r.Kind, r.Name, err)
	}
	if !review.Status.Allowed {
		return &MissingError{fmt.Sprintf("ServiceAccount %s, with whose rights the plans run, must not read %s %s, which spec.parametersFrom "+
			"names: give it the verb get on %s",
			r.account, r.Kind, r.Name, resources[r.Kind])}
	}
	return nil
}

func get(ctx context.Context, c client.Reader, r Reference) (content, error) {
	out := content{data: map[string]string{}}
	if r.Kind == "Secret" {
		secret := &corev1.Secret{}
		err := c.Get(ctx, r.NamespacedName, secret)
		for key, value := range secret.Data {
			out.data[key] = string(value)
		}
		out.version = secret.ResourceVersion
		return out, err
	}
	config := &corev1.ConfigMap{}
	err := c.Get(ctx, r.NamespacedName, config)
	for key, value := range config.BinaryData {
		out.data[key] = string(value)
	}
	for key, value := range config.Data {
		out.data[key] = value
	}
	out.version = config.ResourceVersion
	return out, err
}

var resources = map[string]string{"Secret": "secrets", "ConfigMap": "configmaps"}

// version is the resourceVersion of a source as the watch knows it; empty if it does not know it (yet).
func (s *Reader) version(r Reference) string {
	informer := s.watch(r.Kind)
	if !informer.HasSynced() {
		return ""
	}
	item, exists, err := informer.GetStore().GetByKey(r.String())
	if err != nil || !exists {
		return ""
	}
	return item.(*metav1.PartialObjectMetadata).ResourceVersion
}

// watch begins to watch a kind, once.
func (s *Reader) watch(kind string) cache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if informer, watched := s.watches[kind]; watched {
		return informer
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: resources[kind]}
	informer := metadatainformer.NewFilteredMetadataInformer(s.meta, resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	// Both fail only on informers that run already.
	_ = informer.SetTransform(trimMetadata)
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { s.handleEvent(kind, o) },
		UpdateFunc: func(before, o any) {
			if before.(*metav1.PartialObjectMetadata).ResourceVersion != o.(*metav1.PartialObjectMetadata).ResourceVersion {
				s.handleEvent(kind, o)
			}
		},
		DeleteFunc: func(o any) {
			if r, ok := reference(kind, o); ok {
				s.forget(r) // without a further read, what was read would stay
				s.changed(r)
			}
		},
	})
	s.watches[kind] = informer
	go informer.RunWithContext(s.ctx)
	return informer
}

// trimMetadata keeps of metadata what is used: there may be tens of thousands of Secrets.
func trimMetadata(o any) (any, error) {
	full, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: full.Namespace, Name: full.Name,
		ResourceVersion: full.ResourceVersion}}, nil
}

func (s *Reader) handleEvent(kind string, o any) {
	if r, ok := reference(kind, o); ok {
		s.changed(r)
	}
}

// reference is that of an object of a watch.
func reference(kind string, o any) (Reference, bool) {
	key, err := cache.DeletionHandlingObjectToName(o)
	return Reference{kind, types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}, err == nil
}

// forget drops what was read of a source that was deleted.
func (s *Reader) forget(r Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for known := range s.read {
		if known.Reference == r {
			delete(s.read, known)
		}
	}
}
