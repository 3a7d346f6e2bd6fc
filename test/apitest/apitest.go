// Package apitest plays an API server in memory, for unit tests of what a real one does not do at will: errors at a chosen
// request, and changes by others between two requests. It stores objects and checks uids, resourceVersions and finalizers as the
// real one does, and answers with its bodies. It neither validates nor admits, and an apply knows no owners of fields: these are
// for the suites, which run on a real control plane.
package apitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
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

// Hook may answer a request instead of the server: with an error, with an object, or with an io.Reader, whose bytes are sent as they are
// read. It returns neither to let it pass.
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
	"v1":                              {"ConfigMap", "Secret", "ServiceAccount", "Namespace", "PersistentVolumeClaim", "Pod", "Event", "Service", "Node", "ResourceQuota"},
	"apps/v1":                         {"Deployment", "ControllerRevision", "StatefulSet"},
	"batch/v1":                        {"Job"},
	"rbac.authorization.k8s.io/v1":    {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
	"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"},
	"authorization.k8s.io/v1":         {"SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview"},
	"admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	v1beta1.GroupVersion.String():     {"Operator", "OperatorVersion", "Instance", "Installation"},
	"policy/v1":                       {"PodDisruptionBudget"},
	"coordination.k8s.io/v1":          {"Lease"},
	"discovery.k8s.io/v1":             {"EndpointSlice"},
}

var clusterScoped = []string{
	"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "SubjectAccessReview", "SelfSubjectAccessReview", "Installation",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
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

// Kubeconfig writes a file for commands, whose context is named staging, and returns its name.
func (s *Server) Kubeconfig(tb testing.TB, namespace string) string {
	tb.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: s.config.Host}
	config.Contexts["staging"] = &clientcmdapi.Context{Cluster: "c", Namespace: namespace}
	config.CurrentContext = "staging"
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		tb.Fatal(err)
	}
	return file
}

// Scheme returns the types of Kubernetes and of kudo.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme), configv1alpha1.AddToScheme(scheme)))
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

// Get returns an object as it is stored, or nil if it is not there.
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
