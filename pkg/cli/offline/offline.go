// Package offline is a cluster without objects, inside the process, for commands that are not to ask any cluster. It serves the kinds of
// Kubernetes and of kudo, and refuses writes.
package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/rights"
)

// Config returns what clients of the cluster connect with. Nothing is sent to its host.
func Config() *rest.Config {
	return &rest.Config{Host: "http://offline.invalid", Transport: transport{}}
}

// errOffline refuses writes, and reviews of rights.
var errOffline = errors.New("no cluster is asked")

// served are the kinds of the cluster, by API.
var served = sync.OnceValue(func() map[schema.GroupVersion][]metav1.APIResource {
	out := map[schema.GroupVersion][]metav1.APIResource{}
	add := func(gvk schema.GroupVersionKind) {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		out[gvk.GroupVersion()] = append(out[gvk.GroupVersion()], metav1.APIResource{Name: plural.Resource, Kind: gvk.Kind,
			Namespaced: rights.IsNamespaced(gvk.GroupKind()), Verbs: metav1.Verbs{"get", "list", "create", "patch", "delete"}})
	}
	for gvk, t := range clientgoscheme.Scheme.AllKnownTypes() {
		_, hasMeta := t.FieldByName("ObjectMeta")
		isStable := !strings.Contains(gvk.Version, "alpha") && !strings.Contains(gvk.Version, "beta") && gvk.Version != "__internal"
		if hasMeta && isStable {
			add(gvk)
		}
	}
	for _, kind := range []string{"Operator", "OperatorVersion", "Instance", "Installation"} {
		add(v1beta1.GroupVersion.WithKind(kind))
	}
	add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	add(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	return out
})

// transport answers requests as an API server does.
type transport struct{}

// RoundTrip implements http.RoundTripper.
func (transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	code, content := answer(request)
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}, nil
}

// answer returns the code and the content of the answer to a request: discovery, objects that do not exist, empty lists, and refused
// writes.
func answer(request *http.Request) (code int, content any) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case request.Method != http.MethodGet:
		return fail(apierrors.NewForbidden(schema.GroupResource{}, "", errOffline))
	case parts[0] == "api" && len(parts) == 1:
		return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case parts[0] == "apis" && len(parts) == 1:
		return http.StatusOK, groups()
	case parts[0] == "api":
		return answerAPI(request, schema.GroupVersion{Version: parts[1]}, parts[2:])
	case parts[0] == "apis" && len(parts) > 2:
		return answerAPI(request, schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:])
	}
	return fail(apierrors.NewNotFound(schema.GroupResource{}, request.URL.Path))
}

// answerAPI answers a request for the resources of an API, or for objects of one.
func answerAPI(request *http.Request, gv schema.GroupVersion, path []string) (code int, content any) {
	resources, known := served()[gv]
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	if known && len(path) == 0 {
		return http.StatusOK, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: gv.String(), APIResources: resources}
	}
	at := slices.IndexFunc(resources, func(r metav1.APIResource) bool { return len(path) > 0 && r.Name == path[0] })
	switch {
	case at < 0:
		return fail(apierrors.NewNotFound(schema.GroupResource{Group: gv.Group}, request.URL.Path))
	case gv.Group == "" && path[0] == "namespaces" && len(path) == 2 && path[1] == metav1.NamespaceSystem: // it owns guards
		return http.StatusOK, corev1.Namespace{TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: path[1], UID: types.UID(path[1])}}
	case len(path) > 1:
		return fail(apierrors.NewNotFound(gv.WithResource(path[0]).GroupResource(), path[1]))
	}
	list := metav1.TypeMeta{Kind: resources[at].Kind + "List", APIVersion: gv.String()}
	if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		list = metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: metav1.SchemeGroupVersion.String()}
	}
	return http.StatusOK, map[string]any{"kind": list.Kind, "apiVersion": list.APIVersion, "metadata": map[string]any{}, "items": []any{}}
}

// groups are the APIs that have a group.
func groups() metav1.APIGroupList {
	byName := map[string]*metav1.APIGroup{}
	for gv := range served() {
		if gv.Group == "" {
			continue
		}
		group := byName[gv.Group]
		if group == nil {
			group = &metav1.APIGroup{Name: gv.Group}
			byName[gv.Group] = group
		}
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
	}
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range byName {
		slices.SortFunc(group.Versions, func(a, b metav1.GroupVersionForDiscovery) int { // the newest first
			return strings.Compare(b.Version, a.Version)
		})
		group.PreferredVersion = group.Versions[0]
		out.Groups = append(out.Groups, *group)
	}
	slices.SortFunc(out.Groups, func(a, b metav1.APIGroup) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func fail(err *apierrors.StatusError) (code int, content any) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return int(status.Code), status
}
