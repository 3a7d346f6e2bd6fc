package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// matches reports whether a list or a watch is for an object.
func matches(r Request, obj *unstructured.Unstructured) bool {
	selector, err := labels.Parse(r.Query.Get("labelSelector"))
	if err != nil || !selector.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	if field, name, found := strings.Cut(r.Query.Get("fieldSelector"), "="); found && field == "metadata.name" && obj.GetName() != name {
		return false
	}
	return r.Namespace == "" || obj.GetNamespace() == r.Namespace
}

// present returns an object in the form and the version that the client has asked for.
func present(r Request, obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	out.SetGroupVersionKind(r.GroupVersionKind)
	if strings.Contains(r.Accept, "as=PartialObjectMetadata") {
		return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": out.Object["metadata"]}
	}
	return out.Object
}

func (r Request) resource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.resourceName()}
}

func (r Request) resourceName() string {
	parts := strings.Split(strings.Trim(r.path, "/"), "/")
	at := slices.Index(parts, r.Name)
	if r.Name == "" || at < 1 {
		return parts[len(parts)-1]
	}
	return parts[at-1]
}

// serve does a request for objects.
func (s *Server) serve(r Request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.GroupKind().String() + " " + r.Namespace + "/" + r.Name
	old := s.objects[key]
	switch r.Verb {
	case "list":
		return s.list(r), nil
	case "create":
		return s.create(r)
	case "apply":
		return s.apply(r, key, old)
	}
	if old == nil {
		return nil, apierrors.NewNotFound(r.resource(), r.Name)
	}
	switch r.Verb {
	case "get":
		return present(r, old), nil
	case "delete":
		return s.delete(r, key, old)
	}
	next := &unstructured.Unstructured{}
	if r.Verb == "update" {
		if err := json.Unmarshal(r.Body, &next.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else {
		patched, err := patched(r, old)
		if err != nil {
			return nil, err
		}
		next = patched
	}
	return s.replace(r, key, old, next)
}

func (s *Server) list(r Request) any {
	items := []any{}
	found := s.objectsOf(r)
	limit, _ := strconv.Atoi(r.Query.Get("limit"))
	start, _ := strconv.Atoi(r.Query.Get("continue"))
	metadata := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	for i := start; i < len(found); i++ {
		if limit > 0 && i == start+limit {
			metadata["continue"], metadata["remainingItemCount"] = strconv.Itoa(i), len(found)-i
			break
		}
		items = append(items, present(r, found[i]))
	}
	list := map[string]any{"kind": r.Kind + "List", "apiVersion": r.GroupVersion().String(), "metadata": metadata, "items": items}
	if strings.Contains(r.Accept, "as=PartialObjectMetadataList") {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return list
}

func (s *Server) create(r Request) (any, error) {
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(r.Body, &obj.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if obj.GetName() == "" {
		obj.SetName(obj.GetGenerateName() + strconv.Itoa(s.version+1))
	}
	if r.Namespace != "" {
		obj.SetNamespace(r.Namespace)
		if ns := s.objects["Namespace /"+r.Namespace]; ns != nil && ns.GetDeletionTimestamp() != nil {
			return nil, terminating(r, obj.GetName())
		}
	}
	obj.SetUID("")
	key := s.key(obj)
	if s.objects[key] != nil {
		return nil, apierrors.NewAlreadyExists(r.resource(), obj.GetName())
	}
	if len(r.Query["dryRun"]) > 0 {
		return present(r, obj), nil
	}
	return present(r, s.store(key, obj)), nil
}

// terminating is the answer to a creation in a namespace that is being deleted.
func terminating(r Request, name string) error {
	err := apierrors.NewForbidden(r.resource(), name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating", Message: "namespace " + r.Namespace + " is being terminated", Field: "metadata.namespace"}}
	return err
}

// replace writes the next content of an object. Of a request for its status, it keeps all else, and the other way around.
func (s *Server) replace(r Request, key string, old, next *unstructured.Unstructured) (any, error) {
	if version := next.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := next.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, fmt.Errorf("UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	if r.Subresource == "status" {
		whole := old.DeepCopy()
		whole.Object["status"] = next.Object["status"]
		next = whole
	} else if r.Group == "kudo.dev" {
		delete(next.Object, "status")
		if status, set := old.Object["status"]; set {
			next.Object["status"] = status
		}
	}
	next.SetUID(old.GetUID())
	next.SetDeletionTimestamp(old.GetDeletionTimestamp())
	if len(r.Query["dryRun"]) > 0 {
		next.SetResourceVersion(old.GetResourceVersion())
		return present(r, next), nil
	}
	return present(r, s.store(key, next)), nil
}

func (s *Server) delete(r Request, key string, old *unstructured.Unstructured) (any, error) {
	var options metav1.DeleteOptions
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != old.GetUID() {
			return nil, apierrors.NewConflict(r.resource(), r.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, old.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != old.GetResourceVersion() {
			return nil, apierrors.NewConflict(r.resource(), r.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, old.GetResourceVersion()))
		}
	}
	if len(options.DryRun) > 0 {
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
	}
	if len(old.GetFinalizers()) == 0 {
		s.drop(key)
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, nil
	}
	next := old.DeepCopy()
	if next.GetDeletionTimestamp() == nil {
		now := metav1.Now()
		next.SetDeletionTimestamp(&now)
	}
	return present(r, s.store(key, next)), nil
}

// patched returns what a patch makes of an object.
func patched(r Request, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	var after []byte
	if r.Query.Get("patchType") == string(types.JSONPatchType) {
		patch, err := jsonpatch.DecodePatch(r.Body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if after, err = patch.Apply(before); err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	} else if after, err = jsonpatch.MergePatch(before, r.Body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	next := &unstructured.Unstructured{}
	return next, json.Unmarshal(after, &next.Object)
}

// apply merges what a server-side apply sends into the object: fields that are no longer sent stay.
func (s *Server) apply(r Request, key string, old *unstructured.Unstructured) (any, error) {
	body := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(r.Body, &body.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if old == nil {
		if body.GetUID() != "" {
			return nil, apierrors.NewConflict(r.resource(), r.Name, errors.New("the object does not exist"))
		}
		body.SetResourceVersion("")
		if r.Namespace != "" {
			body.SetNamespace(r.Namespace)
		}
		if len(r.Query["dryRun"]) > 0 {
			body.SetUID("dry-run")
			return present(r, body), nil
		}
		return present(r, s.store(key, body)), nil
	}
	if version := body.GetResourceVersion(); version != "" && version != old.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.resource(), r.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	next := &unstructured.Unstructured{Object: merge(old.DeepCopy().Object, body.Object).(map[string]any)}
	return s.replace(r, key, old, next)
}

// merge puts maps together; what is sent replaces all else.
func merge(old, sent any) any {
	a, both := old.(map[string]any)
	b, ok := sent.(map[string]any)
	if !both || !ok {
		return sent
	}
	for key, value := range b {
		if have, set := a[key]; set && !reflect.DeepEqual(have, value) {
			value = merge(have, value)
		}
		a[key] = value
	}
	return a
}
