package apitest

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

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
	if text, is := answer.(io.Reader); is {
		_, _ = io.Copy(w, text)
		return
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
	case r.Method == http.MethodDelete: // clients send the options of a deletion in its body
		var options metav1.DeleteOptions
		if json.Unmarshal(body, &options) == nil && len(options.DryRun) > 0 {
			request.Query["dryRun"] = options.DryRun
		}
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
