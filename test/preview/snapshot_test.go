package preview

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// snapshot holds the objects of a namespace by kind and name, the cluster-scoped objects whose names contain that of the namespace, and the
// objects of such namespaces. It leaves out objects that Kubernetes itself creates, Instance i, and of kudo all but its children.
type snapshot map[string]*unstructured.Unstructured

// ignoredResources are those that Kubernetes and kudo write for themselves: events, addresses, leases and records.
var ignoredResources = map[string]bool{
	"events": true, "endpoints": true, "endpointslices": true, "leases": true, "controllerrevisions": true, "apiservices": true, "flowschemas": true,
	"prioritylevelconfigurations": true, "persistentvolumes": true, "nodes": true, "csinodes": true, "volumeattachments": true,
}

// takeSnapshot reads the objects of all kinds that are served.
func takeSnapshot(t *testing.T, ns string) snapshot {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(suite.Config)
	env.Must(t, err)
	reader, err := dynamic.NewForConfig(suite.Config)
	env.Must(t, err)
	lists, err := discoverer.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	out := snapshot{}
	namespaces := []string{ns}
	for name := range listed(t, reader.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})) {
		if name != ns && strings.Contains(name, ns) {
			namespaces = append(namespaces, name)
		}
	}
	for _, list := range lists {
		for _, kind := range list.APIResources {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			env.Must(t, err)
			ofKudo := group.Group == v1beta1.GroupVersion.Group && kind.Name != "instances"
			if ignoredResources[kind.Name] || ofKudo || !slices.Contains(kind.Verbs, "list") {
				continue
			}
			resource := reader.Resource(group.WithResource(kind.Name))
			if !kind.Namespaced {
				out.addNamed(listed(t, resource), ns)
				continue
			}
			for _, namespace := range namespaces {
				out.add(listed(t, resource.Namespace(namespace)))
			}
			delete(out, "Instance "+ns+"/i")
		}
	}
	return out
}

// listed lists objects by their names; none of a kind that is not served any more.
func listed(t *testing.T, of dynamic.ResourceInterface) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := of.List(t.Context(), metav1.ListOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil
	}
	env.Must(t, err)
	out := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		out[list.Items[i].GetName()] = &list.Items[i]
	}
	return out
}

// addNamed adds objects of the cluster that have a word in their names.
func (w snapshot) addNamed(objects map[string]*unstructured.Unstructured, word string) {
	for name, obj := range objects {
		if name != word && strings.Contains(name, word) {
			w[obj.GetKind()+" "+name] = obj
		}
	}
}

// add adds objects of a namespace but for the dependents of others, and for what each namespace has.
func (w snapshot) add(objects map[string]*unstructured.Unstructured) {
	for name, obj := range objects {
		of := metav1.GetControllerOf(obj)
		if name == "kube-root-ca.crt" || name == "default" && obj.GetKind() == "ServiceAccount" || of != nil && !v1beta1.OwnedBy(*of, "Instance") {
			continue
		}
		w[obj.GetKind()+" "+obj.GetNamespace()+"/"+name] = obj
	}
}

// leaveClaims drops the claims that the controller of StatefulSets creates for StatefulSets of the snapshots, and not those of a plan.
func (w snapshot) leaveClaims(snapshots ...snapshot) {
	for _, of := range snapshots {
		for _, set := range of {
			templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
			for _, template := range templates {
				name, _, _ := unstructured.NestedString(template.(map[string]any), "metadata", "name")
				made := regexp.MustCompile("^PersistentVolumeClaim " + regexp.QuoteMeta(set.GetNamespace()+"/"+name+"-"+set.GetName()) + `-\d+$`)
				maps.DeleteFunc(w, func(id string, claim *unstructured.Unstructured) bool {
					return made.MatchString(id) && claim.GetAnnotations()[v1beta1.PlanAnnotation] == ""
				})
			}
		}
	}
}

// withoutStatus returns the content of the objects without what controllers write.
func (w snapshot) withoutStatus() map[string]any {
	out := map[string]any{}
	for id, obj := range w {
		fields := obj.DeepCopy()
		if _, has := fields.Object["status"]; has {
			unstructured.RemoveNestedField(fields.Object, "status")
			fields.SetResourceVersion("")
			fields.SetManagedFields(nil)
		}
		out[id] = fields.Object
	}
	return out
}

// checkSame fails the test if two snapshots differ.
func checkSame(t *testing.T, what string, before, after snapshot) {
	t.Helper()
	if diff := cmp.Diff(before.withoutStatus(), after.withoutStatus()); diff != "" {
		t.Fatalf("%s has changed objects: %s", what, diff)
	}
}
