// Package apitest plays an API server in memory, for unit tests of what a real one does not do at will: errors at a chosen
// request, and changes by others between two requests. It stores objects and checks uids, resourceVersions and finalizers as the
// real one does, and answers with its bodies. It neither validates nor admits, and an apply knows no owners of fields: these are
// for the suites, which run on a real control plane.
package apitest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Request is what a client has asked for.
type Request struct {
	// Verb is get, list, watch, create, update, patch, apply or delete; "" for a request that is for no object.
	Verb string
	// Kind, and the object if the request is for one.
	schema.GroupVersionKind
	types.NamespacedName
	Subresource string
	Query       url.Values
	Body        []byte
	// Accept is what the client accepts as the answer.
	Accept string
	path   string
}

// String returns the request as tests compare it, like `patch Instance default/web/status`.
func (r Request) String() string {
	if r.Verb == "" {
		return r.path
	}
	name := strings.TrimPrefix(r.NamespacedName.String(), "/")
	if r.Subresource != "" {
		name += "/" + r.Subresource
	}
	text := strings.TrimSuffix(r.Verb+" "+r.Kind+" "+name, " ")
	if len(r.Query["dryRun"]) > 0 {
		text += " (dry run)"
	}
	return text
}

// Decode reads the body of a request.
func (r Request) Decode(tb testing.TB, into any) {
	tb.Helper()
	if err := json.Unmarshal(r.Body, into); err != nil {
		tb.Errorf("%s: %v", r, err)
	}
}

// Hook may answer a request instead of the server: with an error, or with an object. It returns neither to let it pass.
type Hook func(Request) (answer any, err error)

// Server is the API server.
type Server struct {
	tb     testing.TB
	config *rest.Config

	mu            sync.Mutex
	kinds         []kind
	objects       map[string]*unstructured.Unstructured
	version       int
	requests      []Request
	before, after Hook
	events        []event
	changed       chan struct{} // closed and replaced with each event
}

type kind struct {
	schema.GroupVersionKind
	plural     string
	namespaced bool
}

type event struct {
	kind   schema.GroupVersionKind
	typ    string
	object *unstructured.Unstructured
}

// standard kinds; those in clusterScoped have no namespace.
var standard = map[string][]string{
	"v1":                              {"ConfigMap", "Secret", "ServiceAccount", "Namespace", "PersistentVolumeClaim", "Pod", "Event", "Service"},
	"apps/v1":                         {"Deployment", "ControllerRevision", "StatefulSet"},
	"batch/v1":                        {"Job"},
	"rbac.authorization.k8s.io/v1":    {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
	"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"},
	"authorization.k8s.io/v1":         {"SubjectAccessReview", "SelfSubjectAccessReview"},
	"admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	v1beta1.GroupVersion.String():     {"Operator", "OperatorVersion", "Instance", "Installation"},
	"policy/v1":                       {"PodDisruptionBudget"},
	"coordination.k8s.io/v1":          {"Lease"},
	"discovery.k8s.io/v1":             {"EndpointSlice"},
	"scheduling.k8s.io/v1":            {"PriorityClass"},
}

var clusterScoped = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "SubjectAccessReview", "SelfSubjectAccessReview", "Installation",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "PriorityClass",
}

// Start runs a server with objects until the test ends.
func Start(tb testing.TB, objects ...client.Object) *Server {
	tb.Helper()
	s := &Server{tb: tb, objects: map[string]*unstructured.Unstructured{}, version: 100, changed: make(chan struct{})}
	for _, apiVersion := range slices.Sorted(maps.Keys(standard)) {
		for _, name := range standard[apiVersion] {
			s.AddKind(schema.FromAPIVersionAndKind(apiVersion, name), !slices.Contains(clusterScoped, name))
		}
	}
	for _, object := range objects {
		s.Put(object)
	}
	server := httptest.NewServer(s)
	s.config = &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, QPS: -1}
	tb.Cleanup(func() {
		server.CloseClientConnections() // ends watches
		server.Close()
	})
	return s
}

// AddKind serves one more kind.
func (s *Server) AddKind(gvk schema.GroupVersionKind, namespaced bool) {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = append(s.kinds, kind{gvk, plural.Resource, namespaced})
}

// RemoveKind stops to serve a kind.
func (s *Server) RemoveKind(gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds = slices.DeleteFunc(s.kinds, func(k kind) bool { return k.GroupVersionKind == gvk })
}

// Config returns what clients connect with.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Scheme returns the types of Kubernetes and of kudo.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)))
	return scheme
})

// Mapper maps the kinds that are served now.
func (s *Server) Mapper() *meta.DefaultRESTMapper {
	s.mu.Lock()
	defer s.mu.Unlock()
	var versions []schema.GroupVersion
	for _, k := range s.kinds {
		versions = append(versions, k.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, k := range s.kinds {
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		resource := k.GroupVersion().WithResource(k.plural)
		mapper.AddSpecific(k.GroupVersionKind, resource, resource, scope)
	}
	return mapper
}

// Client returns a client of the server, without a cache.
func (s *Server) Client() client.Client {
	s.tb.Helper()
	c, err := client.New(s.Config(), client.Options{Scheme: Scheme(), Mapper: s.Mapper()})
	if err != nil {
		s.tb.Fatal(err)
	}
	return c
}

// Before sets what sees each request before the server does.
func (s *Server) Before(hook Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = hook
}

// After sets what sees each request once it is done, and may replace its answer: so an answer is lost.
func (s *Server) After(hook Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after = hook
}

// Requests returns the requests since the last call, as text.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]string, len(s.requests))
	for i, r := range s.requests {
		out[i] = r.String()
	}
	s.requests = nil
	return out
}

// Put writes an object as another client would.
func (s *Server) Put(object client.Object) *unstructured.Unstructured {
	s.tb.Helper()
	obj := s.unstructured(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.key(obj)
	if old := s.objects[key]; old != nil && obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	return s.store(key, obj).DeepCopy()
}

// Remove deletes an object as another client would, whatever its finalizers.
func (s *Server) Remove(object client.Object) {
	s.tb.Helper()
	obj := s.unstructured(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.key(obj))
}

// Get returns an object as it is stored; nil if it is not there.
func (s *Server) Get(object client.Object) *unstructured.Unstructured {
	s.tb.Helper()
	obj := s.unstructured(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[s.key(obj)].DeepCopy()
}

// Read reads an object as it is stored into itself, and fails the test if it is not there.
func (s *Server) Read(object client.Object) {
	s.tb.Helper()
	stored := s.Get(object)
	if stored == nil {
		s.tb.Fatalf("%T %s is not there", object, client.ObjectKeyFromObject(object))
		return
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, object); err != nil {
		s.tb.Fatal(err)
	}
}

// unstructured returns a copy of an object, with its kind.
func (s *Server) unstructured(object client.Object) *unstructured.Unstructured {
	s.tb.Helper()
	if obj, ok := object.(*unstructured.Unstructured); ok {
		return obj.DeepCopy()
	}
	text, err := json.Marshal(object)
	obj := &unstructured.Unstructured{}
	if err == nil {
		err = utiljson.Unmarshal(text, &obj.Object)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	gvks, _, err := Scheme().ObjectKinds(object)
	if err != nil {
		s.tb.Fatal(err)
	}
	obj.SetGroupVersionKind(gvks[0])
	return obj
}

func (s *Server) key(obj *unstructured.Unstructured) string {
	return obj.GroupVersionKind().GroupKind().String() + " " + obj.GetNamespace() + "/" + obj.GetName()
}

// store writes an object, and returns it with its new metadata.
func (s *Server) store(key string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	old := s.objects[key]
	typ := "MODIFIED"
	if old == nil {
		typ = "ADDED"
		if obj.GetUID() == "" {
			obj.SetUID(types.UID("uid-" + strconv.Itoa(s.version+1)))
		}
	} else {
		obj.SetResourceVersion(old.GetResourceVersion())
		if equal(old, obj) {
			return old
		}
	}
	s.version++
	obj.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[key] = obj
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		s.drop(key)
		return obj
	}
	s.publish(event{obj.GroupVersionKind(), typ, obj})
	return obj
}

func (s *Server) drop(key string) {
	obj := s.objects[key]
	if obj == nil {
		return
	}
	delete(s.objects, key)
	s.version++
	gone := obj.DeepCopy()
	gone.SetResourceVersion(strconv.Itoa(s.version))
	s.publish(event{gone.GroupVersionKind(), "DELETED", gone})
}

func (s *Server) publish(e event) {
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

func equal(a, b *unstructured.Unstructured) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	s.mu.Lock()
	request, found := s.parse(r, body)
	s.requests = append(s.requests, request)
	before, after := s.before, s.after
	s.mu.Unlock()
	var answer any
	if before != nil {
		answer, err = before(request)
	}
	switch {
	case answer != nil || err != nil:
	case request.Verb == "":
		if answer = s.discover(r.URL.Path); answer == nil {
			http.NotFound(w, r)
			return
		}
	case !found:
		http.NotFound(w, r) // as a server answers for a path that it does not serve
		return
	case request.Verb == "watch":
		s.watch(w, r, request)
		return
	default:
		answer, err = s.serve(request)
	}
	if after != nil && err == nil {
		replaced, lost := after(request)
		if replaced != nil || lost != nil {
			answer, err = replaced, lost
		}
	}
	respond(w, request, answer, err)
}

func respond(w http.ResponseWriter, r Request, answer any, err error) {
	code := http.StatusOK
	if r.Verb == "create" {
		code = http.StatusCreated
	}
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		body := status.Status()
		body.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer, code = body, int(body.Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// parse finds out what a request is for. found is false if the kind is not served.
func (s *Server) parse(r *http.Request, body []byte) (request Request, found bool) {
	request = Request{Query: r.URL.Query(), Body: body, Accept: r.Header.Get("Accept"), path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	gv := schema.GroupVersion{}
	switch {
	case parts[0] == "api" && len(parts) > 2:
		gv.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return request, true
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Subresource = parts[2]
	}
	request.Verb = map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}[r.Method]
	switch {
	case request.Query.Get("watch") == "true" || request.Query.Get("watch") == "1":
		request.Verb = "watch"
	case r.Method == http.MethodGet && request.Name == "":
		request.Verb = "list"
	case r.Header.Get("Content-Type") == string(types.ApplyPatchType), r.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType):
		request.Verb = "apply"
	case r.Method == http.MethodPatch:
		request.Query.Set("patchType", r.Header.Get("Content-Type"))
	}
	for _, k := range s.kinds {
		if k.GroupVersion() == gv && k.plural == parts[0] {
			request.GroupVersionKind = k.GroupVersionKind
			return request, true
		}
	}
	request.GroupVersionKind = gv.WithKind(parts[0])
	return request, false
}

// discover answers the requests by which clients find out what is served.
func (s *Server) discover(path string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	lists := map[string]*metav1.APIResourceList{}
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, k := range s.kinds {
		gv := k.GroupVersion().String()
		if lists[gv] == nil {
			lists[gv] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
			if k.Group != "" {
				version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: k.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		lists[gv].APIResources = append(lists[gv].APIResources, metav1.APIResource{
			Name: k.plural, Kind: k.Kind, Namespaced: k.namespaced, Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
		})
	}
	switch path {
	case "/api":
		return &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		return groups
	case "/version":
		return map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.2"}
	}
	if list := lists[strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")]; list != nil {
		return list
	}
	return nil
}

// objectsOf lists the objects of a kind in order of their names.
func (s *Server) objectsOf(r Request) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range s.objects {
		if obj.GroupVersionKind().GroupKind() == r.GroupKind() && matches(r, obj) {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(s.key(a), s.key(b)) })
	return out
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, request Request) {
	w.Header().Set("Content-Type", "application/json")
	s.mu.Lock()
	at := len(s.events)
	var first []any
	send := func(typ string, obj *unstructured.Unstructured) any {
		return map[string]any{"type": typ, "object": present(request, obj)}
	}
	if request.Query.Get("sendInitialEvents") == "true" {
		for _, obj := range s.objectsOf(request) {
			first = append(first, send("ADDED", obj))
		}
		end := &unstructured.Unstructured{}
		end.SetGroupVersionKind(request.GroupVersionKind)
		end.SetResourceVersion(strconv.Itoa(s.version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		first = append(first, send("BOOKMARK", end))
	} else if since, err := strconv.Atoi(request.Query.Get("resourceVersion")); err == nil {
		at = slices.IndexFunc(s.events, func(e event) bool {
			version, _ := strconv.Atoi(e.object.GetResourceVersion())
			return version > since
		})
		if at < 0 {
			at = len(s.events)
		}
	}
	s.mu.Unlock()
	encoder, flusher := json.NewEncoder(w), w.(http.Flusher)
	for {
		for _, item := range first {
			_ = encoder.Encode(item)
		}
		flusher.Flush()
		first = nil
		s.mu.Lock()
		for ; at < len(s.events); at++ {
			if e := s.events[at]; e.kind.GroupKind() == request.GroupKind() && matches(request, e.object) {
				first = append(first, send(e.typ, e.object))
			}
		}
		changed := s.changed
		s.mu.Unlock()
		if len(first) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
