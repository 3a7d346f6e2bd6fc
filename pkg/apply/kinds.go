package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// crds is the resource of CustomResourceDefinitions.
var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Kinds knows which kinds the cluster serves, and their schemas.
type Kinds struct {
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface
	client    dynamic.Interface
	schemas   schemas
}

// NewKinds returns the kinds of a cluster. The mapper must run discovery again when it does not know a kind.
func NewKinds(mapper meta.RESTMapper, d discovery.DiscoveryInterface, client dynamic.Interface) *Kinds {
	return &Kinds{mapper: mapper, discovery: d, client: client, schemas: schemas{discovery: d}}
}

// Namespaced reports whether objects of the kind live in namespaces. The definitions are CRDs of the same task, which the
// cluster may not have yet.
func (k *Kinds) Namespaced(gk schema.GroupKind, definitions []*unstructured.Unstructured) (bool, error) {
	for _, crd := range definitions {
		if defines(crd, gk) {
			scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
			return scope == "Namespaced", nil
		}
	}
	mapping, err := k.mapper.RESTMapping(gk)
	if err != nil {
		return false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Resource returns the resource of a kind, and whether its objects live in namespaces.
func (k *Kinds) Resource(gvk schema.GroupVersionKind) (resource schema.GroupResource, namespaced bool, err error) {
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupResource{}, false, err
	}
	return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// Served reports whether the cluster knows the kind. The error says that this cannot be determined now.
func (k *Kinds) Served(gvk schema.GroupVersionKind) (bool, error) {
	_, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// NamespacedKind is a kind whose objects live in namespaces.
type NamespacedKind struct {
	Resource schema.GroupVersionResource
	Kind     string
}

// ListNamespaced returns the namespaced kinds that can be listed and deleted, each in its preferred version. A discovery
// that is not complete is an error: what it does not show is unknown, and not absent.
func (k *Kinds) ListNamespaced(_ context.Context) ([]NamespacedKind, error) {
	lists, err := k.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var out []NamespacedKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				out = append(out, NamespacedKind{gv.WithResource(r.Name), r.Kind})
			}
		}
	}
	return out, nil
}

// Definitions returns the CustomResourceDefinitions among objects.
func Definitions(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objs {
		if obj.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: crds.Group, Kind: "CustomResourceDefinition"}) {
			out = append(out, obj)
		}
	}
	return out
}

func defines(crd *unstructured.Unstructured, gk schema.GroupKind) bool {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return group == gk.Group && kind == gk.Kind
}

// ExplainNoMatch returns a *FatalError if a kind that the mapper does not know is unknown permanently (engine rule 15): a fresh and
// complete discovery does not have it, and no CRD defines it. Else it returns a transient error.
func (k *Kinds) ExplainNoMatch(ctx context.Context, obj *unstructured.Unstructured, cause error) error {
	gvk := obj.GroupVersionKind()
	_, lists, err := k.discovery.ServerGroupsAndResources()
	if err != nil {
		var failed *discovery.ErrGroupDiscoveryFailed
		if !errors.As(err, &failed) || failedGroup(failed, gvk.Group) {
			return fmt.Errorf("%s: look up the API %s: %w", IDOf(obj), gvk.GroupVersion(), err)
		}
	}
	if isDiscoveryOutage(lists, gvk.GroupVersion()) {
		return fmt.Errorf("%s: the API %s, which every Kubernetes has, is not served", IDOf(obj), gvk.GroupVersion())
	}
	served := versions(lists, gvk)
	if slices.Contains(served, gvk.GroupVersion().String()) {
		return fmt.Errorf("%s: the API %s was unknown when it was last looked up: %w", IDOf(obj), gvk.GroupVersion(), cause)
	}
	list, err := k.client.Resource(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("%s: find the CustomResourceDefinition of its kind: %w", IDOf(obj), err)
	}
	for i := range list.Items {
		if crd := &list.Items[i]; defines(crd, gvk.GroupKind()) && (len(served) == 0 || MappingOf(crd, gvk.GroupKind(), gvk.Version) != nil) {
			return fmt.Errorf("%s: waiting for CustomResourceDefinition %s to be served", IDOf(obj), list.Items[i].GetName())
		}
	}
	return &FatalError{fmt.Errorf("%s: %s", IDOf(obj), k.remedy(gvk, served))}
}

// alwaysServed are APIs that every Kubernetes serves: where one is not, discovery is incomplete, and the error is transient.
var alwaysServed = []schema.GroupVersion{
	{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"}, {Group: "apiextensions.k8s.io", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"}, {Group: "networking.k8s.io", Version: "v1"}, {Group: "policy", Version: "v1"},
	{Group: "autoscaling", Version: "v2"}, {Group: "storage.k8s.io", Version: "v1"}, {Group: "admissionregistration.k8s.io", Version: "v1"},
}

// isDiscoveryOutage reports whether a complete discovery lacks an API that every Kubernetes serves.
func isDiscoveryOutage(lists []*metav1.APIResourceList, gv schema.GroupVersion) bool {
	return slices.Contains(alwaysServed, gv) &&
		!slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool { return l.GroupVersion == gv.String() })
}

// remedy says what to do about a kind that is not served.
func (k *Kinds) remedy(gvk schema.GroupVersionKind, served []string) string {
	cluster := "this cluster"
	if version, err := k.discovery.ServerVersion(); err == nil {
		cluster += " (Kubernetes " + version.GitVersion + ")"
	}
	if len(served) > 0 {
		return fmt.Sprintf("the API %s is not served by %s, which serves %s as %s: change apiVersion in the package's template, or use a "+
			"version of the package made for this Kubernetes",
			gvk.GroupVersion(), cluster, gvk.Kind, strings.Join(served, ", "))
	}
	return fmt.Sprintf("the kind %s of API %s is not known to %s: install the CustomResourceDefinition that defines it, or correct "+
		"apiVersion and kind in the package's template",
		gvk.Kind, gvk.GroupVersion(), cluster)
}

// versions lists the group versions in which a kind of the group is served.
func versions(lists []*metav1.APIResourceList, gvk schema.GroupVersionKind) []string {
	var out []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group != gvk.Group {
			continue
		}
		for _, r := range list.APIResources {
			if r.Kind == gvk.Kind && !strings.Contains(r.Name, "/") {
				out = append(out, list.GroupVersion)
			}
		}
	}
	return out
}

func failedGroup(failed *discovery.ErrGroupDiscoveryFailed, group string) bool {
	for gv := range failed.Groups {
		if gv.Group == group {
			return true
		}
	}
	return false
}

// MappingOf returns the resource of a kind by its CustomResourceDefinition, in the first of the versions that it is to serve, or in the
// first of all if none is named; nil if the definition is of another kind, or is to serve none of them.
func MappingOf(crd *unstructured.Unstructured, kind schema.GroupKind, versions ...string) *meta.RESTMapping {
	if !defines(crd, kind) {
		return nil
	}
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range list {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true || len(versions) > 0 && !slices.Contains(versions, name) {
			continue
		}
		gv := schema.GroupVersion{Group: kind.Group, Version: name}
		out := &meta.RESTMapping{GroupVersionKind: gv.WithKind(kind.Kind), Resource: gv.WithResource(plural), Scope: meta.RESTScopeNamespace}
		if scope == "Cluster" {
			out.Scope = meta.RESTScopeRoot
		}
		return out
	}
	return nil
}
