package restore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/env"
)

// excluded are the resources that a backup leaves out: kudo or Kubernetes makes their objects anew.
var excluded = []string{"events", "endpoints", "endpointslices", "leases", "pods", "replicasets", "installations", "persistentvolumes", "nodes",
	"csinodes", "apiservices", "flowschemas", "prioritylevelconfigurations", "priorityclasses", "ipaddresses", "servicecidrs",
	"componentstatuses", "podtemplates"}

// backup is a set of objects, as they were.
type backup struct {
	objects []*unstructured.Unstructured
}

// options say how a backup is restored.
type options struct {
	// status is kept for kudo's kinds.
	status bool
	// annotate marks all Instances as restored.
	annotate bool
	// to is the namespace for the objects of each namespace; the same one if there is none.
	to map[string]string
	// random is the order.
	random *rand.Rand
	// between is called after each object; nil does nothing.
	between func()
}

// export reads all objects of namespaces, these themselves, and the cluster-scoped objects that names select.
func export(t testing.TB, c *env.Cluster, namespaces []string, clusterScoped func(*unstructured.Unstructured) bool) *backup {
	t.Helper()
	served, err := discovery.NewDiscoveryClientForConfig(c.Config)
	env.Must(t, err)
	groups, err := served.ServerPreferredResources()
	env.Must(t, err)
	out := &backup{}
	for _, group := range groups {
		for _, r := range group.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "create") || slices.Contains(excluded, r.Name) {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(schema.FromAPIVersionAndKind(group.GroupVersion, r.Kind+"List"))
			err := c.List(ctx, list)
			if apierrors.IsNotFound(err) { // another test has deleted the definition, and all objects of the kind
				continue
			}
			env.Must(t, err)
			for i := range list.Items {
				obj := &list.Items[i]
				inside := slices.Contains(namespaces, obj.GetNamespace()) || obj.GetKind() == "Namespace" && slices.Contains(namespaces, obj.GetName())
				if inside && isExported(obj) || !r.Namespaced && clusterScoped(obj) {
					out.objects = append(out.objects, obj)
				}
			}
		}
	}
	return out
}

// isExported reports whether an object is to be restored: what controllers of Kubernetes have made, they make anew.
func isExported(obj *unstructured.Unstructured) bool {
	if kind, _, _ := unstructured.NestedString(obj.Object, "type"); obj.GetKind() == "Secret" && kind == "kubernetes.io/service-account-token" {
		return false
	}
	if obj.GetName() == "kube-root-ca.crt" || obj.GetKind() == "ServiceAccount" && obj.GetName() == "default" {
		return false
	}
	controller := metav1.GetControllerOf(obj)
	return controller == nil || strings.HasPrefix(controller.APIVersion, v1beta1.GroupVersion.Group+"/")
}

// restored is an object as Velero creates it: without what belongs to the cluster of before.
func restored(obj *unstructured.Unstructured, o options) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "ownerReferences", "managedFields", "creationTimestamp", "generation", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(out.Object, "status")
	if to, moved := o.to[out.GetNamespace()]; moved {
		out.SetNamespace(to)
	}
	if to, moved := o.to[out.GetName()]; moved && out.GetKind() == "Namespace" {
		out.SetName(to)
		out.SetLabels(nil)
	}
	switch out.GetKind() {
	case "Service":
		if ip, _, _ := unstructured.NestedString(out.Object, "spec", "clusterIP"); ip == corev1.ClusterIPNone {
			break
		}
		unstructured.RemoveNestedField(out.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(out.Object, "spec", "clusterIPs")
	case "PersistentVolumeClaim":
		unstructured.RemoveNestedField(out.Object, "spec", "volumeName")
		annotations := out.GetAnnotations()
		for key := range annotations {
			if strings.HasPrefix(key, "pv.kubernetes.io/") || strings.HasPrefix(key, "volume.") {
				delete(annotations, key)
			}
		}
		out.SetAnnotations(annotations)
	case "RoleBinding":
		subjects, _, _ := unstructured.NestedSlice(out.Object, "subjects")
		for _, s := range subjects {
			subject := s.(map[string]any)
			if to, moved := o.to[stringOf(subject["namespace"])]; moved {
				subject["namespace"] = to
			}
		}
		_ = unstructured.SetNestedSlice(out.Object, subjects, "subjects")
	case "Instance":
		if o.annotate {
			annotations := out.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1beta1.RestoredAnnotation] = "true"
			out.SetAnnotations(annotations)
		}
	}
	return out
}

func stringOf(value any) string {
	text, _ := value.(string)
	return text
}

// restore creates the objects in random order. What cannot be created yet, since a definition or a namespace is missing, is tried
// again in the next round.
func (b *backup) restore(t testing.TB, c *env.Cluster, o options) {
	t.Helper()
	left := slices.Clone(b.objects)
	env.Eventually(t, "the restore", func() string {
		o.random.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		var why string
		left = slices.DeleteFunc(left, func(obj *unstructured.Unstructured) bool {
			created := restored(obj, o)
			err := c.Create(ctx, created)
			if err != nil && !apierrors.IsAlreadyExists(err) {
				why = err.Error()
				return false
			}
			if err == nil && o.status {
				restoreStatus(t, c, obj, created)
			}
			if o.between != nil {
				o.between()
			}
			return true
		})
		return why
	})
}

// restoreStatus writes the status of one of kudo's objects, as it was.
func restoreStatus(t testing.TB, c *env.Cluster, obj, created *unstructured.Unstructured) {
	t.Helper()
	if obj.GroupVersionKind().Group != v1beta1.GroupVersion.Group || obj.Object["status"] == nil {
		return
	}
	env.Eventually(t, "the status of "+created.GetName(), func() string {
		now := &unstructured.Unstructured{}
		now.SetGroupVersionKind(created.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(created), now); err != nil {
			return err.Error()
		}
		now.Object["status"] = obj.Object["status"]
		if err := c.Status().Update(ctx, now); err != nil {
			return err.Error()
		}
		return ""
	})
}

// find reads the restored object of a backup; it returns nil if the object does not exist.
func find(t testing.TB, c *env.Cluster, obj *unstructured.Unstructured, o options) *unstructured.Unstructured {
	t.Helper()
	want := restored(obj, o)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(want.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	env.Must(t, err)
	return live
}
