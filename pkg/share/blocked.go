package share

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// ReleaseBlock says why an object must not be deleted.
type ReleaseBlock struct {
	// Reason is one of the reasons of the condition Released.
	Reason string
	// Found says what is in the way, like `has 3 objects of kind Ship`.
	Found string
	// Message names the object, what is in its way, and the remedy.
	Message string
}

// Blocked returns what blocks a release, or nil: custom resources of a definition that would be deleted, content of a namespace that kudo
// did not create, or claims. Nothing is released while anything blocks the release, so that the held objects continue to work.
func (s *Session) Blocked(ctx context.Context) (*ReleaseBlock, error) {
	for _, r := range slices.Backward(s.inventory) {
		if block, err := s.findBlock(ctx, r); block != nil || err != nil {
			return block, err
		}
	}
	return nil, nil
}

// findBlock returns what blocks the release of one object, or nil. An object that the release would not delete does not block it.
func (s *Session) findBlock(ctx context.Context, r v1beta1.HeldResource) (*ReleaseBlock, error) {
	obj := IDOf(r).Object()
	if !needsGuardOwner(obj.GroupVersionKind().GroupKind()) || r.State == v1beta1.HoldExisting {
		return nil, nil
	}
	resource, err := s.objects.Resource(obj)
	if err != nil {
		return nil, err
	}
	live, err := apply.GetOrNil(ctx, resource, r.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", IDOf(r), err)
	}
	if live == nil || !s.ours(r, live) || !isDeletable(live) || live.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	if other, err := s.otherOwner(ctx, live); err != nil || other != nil {
		return nil, err
	}
	block, err := s.deletionBlock(ctx, live)
	if err != nil || block == nil {
		return nil, err
	}
	return block, s.unfence(ctx, resource, live) // a fence may be left of a manager that was stopped
}

const remedy = "Delete its content, or keep %s by removing its annotation " + v1beta1.ManagedAnnotation +
	", or delete both by kubectl kudo uninstall-version --force"

// deletionBlock says why an object is not deleted, though no other owner holds it; it returns nil if it may be deleted.
func (s *Session) deletionBlock(ctx context.Context, live *unstructured.Unstructured) (*ReleaseBlock, error) {
	block := func(reason, found string, err error) (*ReleaseBlock, error) {
		if found == "" || err != nil {
			return nil, err
		}
		id := apply.IDOf(live)
		return &ReleaseBlock{Reason: reason, Found: found, Message: fmt.Sprintf("%s %s. "+remedy, id, found, id)}, nil
	}
	switch live.GroupVersionKind().GroupKind() {
	case claimKind:
		return block(v1beta1.ReasonPersistentVolumeClaimKept, "holds data", nil)
	case crdKind:
		left, err := s.customResources(ctx, live)
		return block(v1beta1.ReasonCustomResourcesExist, left, err)
	case namespaceKind:
		left, err := s.content(ctx, live.GetName())
		return block(v1beta1.ReasonNamespaceNotEmpty, left, err)
	}
	return nil, nil
}

// customResources names the custom resources of a definition, as they are in etcd now; empty if there are none.
func (s *Session) customResources(ctx context.Context, crd *unstructured.Unstructured) (string, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		list, err := s.objects.List(ctx, schema.GroupVersionResource{Group: group, Version: name, Resource: plural}, "", 1, "")
		if apierrors.IsNotFound(err) && !established(crd) {
			return "", nil // it never was in force, so that it has none
		}
		if err != nil {
			return "", fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
		return describeCount(list, kind), nil
	}
	return "has objects of kind " + kind + " that cannot be listed, since no version of it is served", nil
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Established" && c["status"] == "True"
	})
}

func describeCount(list *metav1.PartialObjectMetadataList, kind string) string {
	if len(list.Items) == 0 {
		return ""
	}
	count := int64(len(list.Items))
	if rest := list.RemainingItemCount; rest != nil {
		count += *rest
	}
	first := list.Items[0].Name
	if ns := list.Items[0].Namespace; ns != "" {
		first = ns + "/" + first
	}
	if count == 1 {
		return fmt.Sprintf("has one object of kind %s (%s)", kind, first)
	}
	return fmt.Sprintf("has %d objects of kind %s (one is %s)", count, kind, first)
}

// most is how many objects of a kind are looked at in one request, named how many are named in a message.
const most, named = 500, 3

// content names the objects of a namespace except those that Kubernetes creates there, those of the holder, and those that other objects of
// the namespace control.
func (s *Session) content(ctx context.Context, namespace string) (string, error) {
	kinds, err := s.kinds.ListNamespaced(ctx)
	if err != nil {
		return "", fmt.Errorf("list the kinds of Namespace %s: %w", namespace, err)
	}
	var left []string
	for _, kind := range kinds {
		names, err := s.contentOf(ctx, kind, namespace)
		if err != nil {
			return "", fmt.Errorf("list %s of Namespace %s: %w", kind.Resource.Resource, namespace, err)
		}
		left = append(left, names...)
	}
	slices.Sort(left)
	left = slices.Compact(left) // one object is served in several groups
	if len(left) > named {
		left = append(left[:named:named], fmt.Sprintf("and %d more", len(left)-named))
	}
	if len(left) == 0 {
		return "", nil
	}
	return "has content that kudo did not create: " + strings.Join(left, ", "), nil
}

// contentOf names the objects of a kind that isContent counts. It reads page by page, and stops after the first page with such objects.
func (s *Session) contentOf(ctx context.Context, kind apply.NamespacedKind, namespace string) ([]string, error) {
	var out []string
	for token := ""; ; {
		list, err := s.objects.List(ctx, kind.Resource, namespace, most, token)
		switch {
		case apierrors.IsMethodNotSupported(err):
			return nil, nil
		case apierrors.IsNotFound(err): // its definition may have gone since, with all of the kind; else it is unknown
			crd := apply.ID{GroupVersionKind: crdKind.WithVersion("v1")}
			crd.Name = kind.Resource.GroupResource().String()
			if live, failed := s.objects.Live(ctx, crd); failed == nil && live == nil {
				return nil, nil
			}
			return nil, err
		case err != nil:
			return nil, err
		}
		for i := range list.Items {
			counts, err := s.isContent(schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind}, &list.Items[i])
			if err != nil {
				return nil, err
			}
			if counts {
				out = append(out, kind.Kind+" "+list.Items[i].Name)
			}
		}
		if token = list.Continue; token == "" || len(out) > 0 {
			return out, nil
		}
	}
}

// isContent reports whether an object blocks the deletion of its namespace: neither Kubernetes nor the holder has created it, and no other
// object of the namespace controls it.
func (s *Session) isContent(kind schema.GroupKind, item *metav1.PartialObjectMetadata) (bool, error) {
	if item.DeletionTimestamp != nil {
		return false, nil
	}
	switch kind.String() {
	case "ConfigMap":
		if item.Name == "kube-root-ca.crt" {
			return false, nil
		}
	case "ServiceAccount":
		if item.Name == "default" {
			return false, nil
		}
	case "Event", "Event.events.k8s.io", "Endpoints", "EndpointSlice.discovery.k8s.io":
		return false, nil
	}
	// The holder does not delete a kept object, but the deletion of the namespace would. A ReplicaSet has the annotations of its Deployment.
	if v1beta1.IsKept(item.Annotations) && metav1.GetControllerOf(item) == nil {
		return true, nil
	}
	if v1beta1.HasOwner(item, s.holder.UID) {
		return false, nil
	}
	if s.inventory.has(item) {
		return false, nil
	}
	controller := metav1.GetControllerOf(item)
	if controller == nil {
		return true, nil
	}
	gvk := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
	namespaced, err := s.kinds.Namespaced(gvk.GroupKind(), nil)
	if meta.IsNoMatchError(err) {
		return true, nil
	}
	return !namespaced, err // a controller in the namespace is content itself, or is terminating
}

// has reports whether the inventory has the object, by uid.
func (i Inventory) has(item *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(i, func(r v1beta1.HeldResource) bool {
		return r.UID == item.UID && r.State != v1beta1.HoldExisting
	})
}
