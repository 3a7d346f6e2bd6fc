package apply

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/test/env"
)

// wire is a side's way to the apiserver. It notes the requests, and can hold back what watches say.
type wire struct {
	http.RoundTripper

	mu   sync.Mutex
	held chan struct{}
	sent []string
	// deleting is called once, before the next DELETE is sent.
	deleting func()
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Get("watch") != ""
	var before func()
	w.mu.Lock()
	if !watch {
		w.sent = append(w.sent, r.Method+" "+r.URL.Path)
	}
	if r.Method == http.MethodDelete {
		before, w.deleting = w.deleting, nil
	}
	w.mu.Unlock()
	if before != nil {
		before()
	}
	answer, err := w.RoundTripper.RoundTrip(r)
	if err == nil && watch {
		answer.Body = &late{answer.Body, w, r.Context()}
	}
	return answer, err
}

// hold lets watches say nothing until it is ended.
func (w *wire) hold(t testing.TB) (release func()) {
	held := make(chan struct{})
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	release = sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	return release
}

// since empties the notes, and returns those about a resource.
func (w *wire) since(resource string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, request := range w.sent {
		if strings.Contains(request, "/"+resource) {
			out = append(out, request)
		}
	}
	w.sent = nil
	return out
}

// late is the body of a watch.
type late struct {
	io.ReadCloser
	wire *wire
	ctx  context.Context
}

// Read implements io.Reader.
func (l *late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.wire.mu.Lock()
	held := l.wire.held
	l.wire.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-l.ctx.Done():
		}
	}
	return n, err
}

// side is an engine with all that it rests on, and the inventory of one Instance.
type side struct {
	t      testing.TB
	name   string
	engine *apply.Engine
	mirror *apply.Mirror
	kinds  *apply.Kinds
	mapper meta.RESTMapper
	metas  metadata.Interface
	wire   *wire
	known  map[apply.ID]apply.Record
}

func newSide(t testing.TB, name string) *side {
	t.Helper()
	s := &side{t: t, name: name, wire: &wire{}, known: map[apply.ID]apply.Record{}}
	config := rest.CopyConfig(cluster.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.wire.RoundTripper = next
		return s.wire
	})
	web, err := rest.HTTPClientFor(config)
	env.Must(t, err)
	dyn, err := dynamic.NewForConfigAndClient(config, web)
	env.Must(t, err)
	metas, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), web)
	env.Must(t, err)
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, web)
	env.Must(t, err)
	s.mapper, err = apiutil.NewDynamicRESTMapper(config, web)
	env.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	s.kinds = apply.NewKinds(s.mapper, disco, dyn)
	s.mirror = apply.NewMirror(ctx, dyn, s.mapper, logr.Discard(), func(*unstructured.Unstructured) {})
	s.engine, s.metas = apply.New(dyn, metas, s.kinds, s.mirror, nil), metas
	return s
}

// options of the side's Instance: labeled objects are its own, cluster-scoped ones of kudo are shared.
func (s *side) options() apply.Options {
	return apply.Options{
		Manager: "kudo/test/" + s.name, Known: s.known,
		Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage, v1beta1.InstanceLabel: s.name},
		Claim: func(_ context.Context, live *unstructured.Unstructured) (apply.Claim, string) {
			labels := live.GetLabels()
			switch {
			case labels[v1beta1.HeritageLabel] == v1beta1.Heritage && labels[v1beta1.InstanceLabel] == s.name:
				return apply.Ours, ""
			case labels[v1beta1.HeritageLabel] == v1beta1.Heritage && live.GetNamespace() == "":
				return apply.Shared, "Instance " + labels[v1beta1.InstanceLabel]
			}
			return apply.Foreign, "another client"
		},
	}
}

// watch waits until the mirror shows the objects.
func (s *side) watch(objs ...*unstructured.Unstructured) {
	for _, obj := range objs {
		s.mirror.Watch(context.Background(), obj.GroupVersionKind())
	}
}

// apply writes objects with the side's labels, and keeps the records.
func (s *side) apply(objs ...*unstructured.Unstructured) apply.ChangeSet {
	s.t.Helper()
	changes := s.engine.Apply(context.Background(), s.own(objs...), s.options())
	for _, c := range changes {
		if c.Record.UID != "" {
			s.known[c.ID] = c.Record
		}
	}
	return changes
}

// preflight looks for what must not be written.
func (s *side) preflight(objs ...*unstructured.Unstructured) apply.ChangeSet {
	return s.engine.Preflight(context.Background(), s.own(objs...), s.options())
}

func (s *side) delete(objs ...*unstructured.Unstructured) []apply.Removal {
	return s.engine.Delete(context.Background(), objs, s.options())
}

// own labels copies of objects as the side's.
func (s *side) own(objs ...*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objs {
		obj = obj.DeepCopy()
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1beta1.HeritageLabel], labels[v1beta1.InstanceLabel] = v1beta1.Heritage, s.name
		obj.SetLabels(labels)
		out = append(out, obj)
	}
	return out
}

// does applies one object, and wants an action.
func (s *side) does(t testing.TB, reason string, want apply.Action, obj *unstructured.Unstructured) apply.Change {
	t.Helper()
	c := s.apply(obj)[0]
	if c.Action != want {
		t.Fatalf("%s: action %d, want %d; error: %v", reason, c.Action, want, c.Err)
	}
	return c
}

// shows waits until the side's mirror shows what the cluster has.
func (s *side) shows(obj *unstructured.Unstructured) {
	s.t.Helper()
	env.Eventually(s.t, "what the mirror shows of "+apply.IDOf(obj).String(), env.Condition(func() bool {
		seen, _ := s.mirror.Get(apply.IDOf(obj))
		now := live(s.t, obj)
		if seen == nil || now == nil {
			return seen == nil && now == nil
		}
		return seen.GetResourceVersion() == now.GetResourceVersion()
	}))
}

// object of YAML-like content.
func object(apiVersion, kind, ns, name string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		obj.Object[key] = value
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(ns)
	obj.SetName(name)
	return obj
}

func configMap(ns, name string, data map[string]any) *unstructured.Unstructured {
	return object("v1", "ConfigMap", ns, name, map[string]any{"data": data})
}

// live reads an object as the administrator; it returns nil if it is not there.
func live(t testing.TB, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(obj.GroupVersionKind())
	err := cluster.Get(context.Background(), client.ObjectKeyFromObject(obj), out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	env.Must(t, err)
	return out
}

// create makes an object as another client.
func create(t testing.TB, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	obj = obj.DeepCopy()
	env.Must(t, cluster.Create(context.Background(), obj))
	t.Cleanup(func() { _ = cluster.Delete(context.Background(), obj) })
	return obj
}

// edit changes an object as another client.
func edit(t testing.TB, obj *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	t.Helper()
	now := live(t, obj)
	before := now.DeepCopy()
	change(now)
	env.Must(t, cluster.Patch(context.Background(), now, client.MergeFrom(before)))
}

// remove deletes an object as another client, at once.
func remove(t testing.TB, obj *unstructured.Unstructured) {
	t.Helper()
	env.Must(t, cluster.Delete(context.Background(), obj.DeepCopy()))
	env.Eventually(t, "gone: "+apply.IDOf(obj).String(), env.Condition(func() bool { return live(t, obj) == nil }))
}
