package kudoinit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func unstructuredKind(apiVersion, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind)
}

// Scanner looks at all objects of a cluster, whatever their kind.
type Scanner struct {
	Discovery discovery.DiscoveryInterface
	Metadata  metadata.Interface
}

// page is how many objects are asked for at a time.
const page = 500

// scan calls see for each object of a namespace, or of the whole cluster. A kind that cannot be listed is an error, since its objects are
// not known.
func (s *Scanner) scan(ctx context.Context, namespace string, see func(at schema.GroupVersionResource, kind string,
	obj *metav1.PartialObjectMetadata) error) error {
	lists, err := s.Discovery.ServerPreferredResources()
	if err != nil {
		return fmt.Errorf("list the kinds that the API server has: %w", err)
	}
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "patch") || namespace != "" && !r.Namespaced {
				continue
			}
			if err := s.list(ctx, group.WithResource(r.Name), r.Kind, namespace, see); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scanner) list(ctx context.Context, at schema.GroupVersionResource, kind, namespace string,
	see func(schema.GroupVersionResource, string, *metav1.PartialObjectMetadata) error) error {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := s.Metadata.Resource(at).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", at.GroupResource(), err)
		}
		for n := range list.Items {
			if err := see(at, kind, &list.Items[n]); err != nil {
				return err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// Content names the objects in a namespace that neither Kubernetes nor an installation of kudo has created there, except those for which
// goes returns true, since they are deleted anyway.
func (s *Scanner) Content(ctx context.Context, namespace string, goes func(group, kind, name string) bool) ([]string, error) {
	var out []string
	err := s.scan(ctx, namespace, func(at schema.GroupVersionResource, kind string, obj *metav1.PartialObjectMetadata) error {
		switch {
		case kind == "ConfigMap" && obj.Name == "kube-root-ca.crt", kind == "ServiceAccount" && obj.Name == "default",
			kind == "Event", kind == "EndpointSlice", kind == "Endpoints", kind == "Lease" && obj.Name == leaseName,
			obj.DeletionTimestamp != nil, len(obj.OwnerReferences) > 0, goes(at.Group, kind, obj.Name):
			return nil
		}
		out = append(out, kind+" "+obj.Name)
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// isKudoOwner reports whether an owner is one of kudo's objects.
func isKudoOwner(o metav1.OwnerReference) bool {
	return strings.HasPrefix(o.APIVersion, v1beta1.GroupVersion.Group+"/")
}

// owned visits all objects that the garbage collector would delete along with kudo's. Those that mean nothing without
// them, their history, are left out.
func (s *Scanner) owned(ctx context.Context, see func(at schema.GroupVersionResource, kind string,
	obj *metav1.PartialObjectMetadata) error) error {
	return s.scan(ctx, "", func(at schema.GroupVersionResource, kind string, obj *metav1.PartialObjectMetadata) error {
		if at.Group == v1beta1.GroupVersion.Group || obj.Labels[v1beta1.HistoryLabel] != "" || !slices.ContainsFunc(obj.OwnerReferences,
			isKudoOwner) {
			return nil
		}
		return see(at, kind, obj)
	})
}

// detachHeld removes Instances and Installations from the owners of all their objects, and then deletes the Instances and Installations. So
// the garbage collector deletes nothing else when the CRDs are deleted.
func (r *Remover) detachHeld(ctx context.Context) error {
	if err := r.observe(ctx); err != nil {
		return err
	}
	if used := r.inUse(); used != nil && r.Instances != KeepInstances && (!r.DryRun || r.Instances != UninstallInstances) {
		return fmt.Errorf("objects of kudo were created meanwhile: %w", used)
	}
	if r.Instances != KeepInstances {
		if r.DryRun {
			return nil
		}
		return r.deleteKudoObjects(ctx)
	}
	left := 0
	err := r.Scanner.owned(ctx, func(at schema.GroupVersionResource, kind string, obj *metav1.PartialObjectMetadata) error {
		name := strings.TrimPrefix(obj.Namespace+"/"+obj.Name, "/")
		id := idOf(at.GroupVersion().String(), kind, obj.Namespace, obj.Name)
		r.Report(RemovalResult{Object: strings.ToLower(kind) + " " + name, ID: id, Reason: "it is no longer kudo's"})
		if r.DryRun {
			return nil
		}
		left++
		return r.removeKudoOwners(ctx, at, obj)
	})
	if err != nil || r.DryRun {
		return err
	}
	if left > 0 { // what was seen is patched; what was made meanwhile is not
		err := r.Scanner.owned(ctx, func(at schema.GroupVersionResource, kind string, obj *metav1.PartialObjectMetadata) error {
			return fmt.Errorf("%s %s/%s has come to belong to kudo meanwhile: run this again", kind, obj.Namespace, obj.Name)
		})
		if err != nil {
			return err
		}
	}
	return r.deleteKudoObjects(ctx)
}

// tries is how often an object that changes meanwhile is patched.
const tries = 5

// removeKudoOwners removes kudo's objects and the guard owner from the owners of an object, and the annotation by which kudo may delete the
// object.
func (r *Remover) removeKudoOwners(ctx context.Context, at schema.GroupVersionResource, obj *metav1.PartialObjectMetadata) error {
	resource := r.Scanner.Metadata.Resource(at).Namespace(obj.Namespace)
	for n := 0; ; n++ {
		text, err := json.Marshal(removeOwnersPatch(obj))
		if err != nil {
			return err
		}
		_, err = resource.Patch(ctx, obj.Name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: manager})
		if err == nil || absent(err) {
			return nil
		}
		if !conflict(err) || n == tries {
			return fmt.Errorf("release %s %s/%s: %w", at.Resource, obj.Namespace, obj.Name, err)
		}
		now, err := resource.Get(ctx, obj.Name, metav1.GetOptions{})
		if absent(err) || err == nil && now.UID != obj.UID {
			return nil
		}
		if err != nil {
			return err
		}
		obj = now
	}
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// removeOwnersPatch returns the patch of removeKudoOwners, which tests that the owners are as they were read.
func removeOwnersPatch(obj *metav1.PartialObjectMetadata) []operation {
	out := []operation{{"test", "/metadata/uid", obj.UID}}
	managed := obj.Annotations[v1beta1.ManagedAnnotation] != ""
	for n, owner := range slices.Backward(obj.OwnerReferences) {
		beside := managed && owner.Kind == "Namespace" && owner.Name == metav1.NamespaceSystem
		if isKudoOwner(owner) || beside {
			path := fmt.Sprintf("/metadata/ownerReferences/%d", n)
			out = append(out, operation{"test", path + "/uid", owner.UID}, operation{Op: "remove", Path: path})
		}
	}
	if managed {
		key := strings.ReplaceAll(v1beta1.ManagedAnnotation, "/", "~1")
		out = append(out, operation{Op: "remove", Path: "/metadata/annotations/" + key})
	}
	return out
}

// deleteKudoObjects deletes Instances, OperatorVersions and Installations, whose finalizers no manager removes any more.
func (r *Remover) deleteKudoObjects(ctx context.Context) error {
	var all []client.Object
	for n := range r.held.instances {
		all = append(all, &r.held.instances[n])
	}
	for n := range r.held.versions {
		all = append(all, &r.held.versions[n])
	}
	for n := range r.held.installations {
		all = append(all, &r.held.installations[n])
	}
	for _, obj := range all {
		name := obj.GetName()
		patch := []byte(`{"metadata":{"finalizers":null}}`)
		if err := r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch)); err != nil && !absent(err) {
			return fmt.Errorf("take the finalizers off %s: %w", name, err)
		}
		if _, err := deleteAwait(ctx, r.Client, obj, metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}
