package rights

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// resource is where the objects of a kind are.
type resource struct {
	group, name string
	namespaced  bool
}

// configGroup is the API of kudo's own configuration.
const configGroup = "config.kudo.dev"

// clusterScoped are the kinds of Kubernetes and of kudo whose objects have no namespace.
var clusterScoped = map[string]string{
	"Namespace": "", "Node": "", "PersistentVolume": "", "ComponentStatus": "",
	"ClusterRole": "rbac.authorization.k8s.io", "ClusterRoleBinding": "rbac.authorization.k8s.io",
	"CustomResourceDefinition": "apiextensions.k8s.io", "APIService": "apiregistration.k8s.io",
	"MutatingWebhookConfiguration": "admissionregistration.k8s.io", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
	"ValidatingAdmissionPolicy": "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
	"MutatingAdmissionPolicy": "admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
	"StorageClass": "storage.k8s.io", "CSIDriver": "storage.k8s.io", "CSINode": "storage.k8s.io", "VolumeAttachment": "storage.k8s.io",
	"VolumeAttributesClass": "storage.k8s.io", "PriorityClass": "scheduling.k8s.io", "RuntimeClass": "node.k8s.io",
	"IngressClass": "networking.k8s.io", "IPAddress": "networking.k8s.io", "ServiceCIDR": "networking.k8s.io",
	"CertificateSigningRequest": "certificates.k8s.io", "ClusterTrustBundle": "certificates.k8s.io",
	"FlowSchema": "flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration": "flowcontrol.apiserver.k8s.io",
	"DeviceClass": "resource.k8s.io", "ResourceSlice": "resource.k8s.io", "DeviceTaintRule": "resource.k8s.io",
	"ResourcePoolStatusRequest": "resource.k8s.io",
	"StorageVersion":            "internal.apiserver.k8s.io", "StorageVersionMigration": "storagemigration.k8s.io",
	"TokenReview": "authentication.k8s.io", "SelfSubjectReview": "authentication.k8s.io",
	"SubjectAccessReview": "authorization.k8s.io", "SelfSubjectAccessReview": "authorization.k8s.io",
	"SelfSubjectRulesReview": "authorization.k8s.io",
	"Installation":           v1beta1.GroupVersion.Group, "Config": configGroup, "PackagePolicy": configGroup,
	"ResourceExploringWebhookConfiguration": configGroup,
}

// IsNamespaced reports whether the objects of a kind of Kubernetes or of kudo have a namespace.
func IsNamespaced(kind schema.GroupKind) bool {
	group, found := clusterScoped[kind.Kind]
	return !found || group != kind.Group
}

// kinds finds the resources of kinds: those of CustomResourceDefinitions that the package has, those of Kubernetes itself,
// and those that a cluster serves.
type kinds struct {
	definitions []*unstructured.Unstructured
	// served finds a kind on a cluster; nil without one.
	served func(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
	// guessed are the kinds that neither knows.
	guessed map[string]bool
}

// define takes the CustomResourceDefinitions among objects.
func (k *kinds) define(objects []*unstructured.Unstructured) {
	k.definitions = append(k.definitions, apply.Definitions(objects)...)
}

// find returns the resource of a kind. One that is not known is taken as namespaced, with the usual plural as its name.
func (k *kinds) find(gvk schema.GroupVersionKind) resource {
	for _, crd := range k.definitions {
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		if group != gvk.Group || kind != gvk.Kind {
			continue
		}
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
		return resource{group, plural, scope != "Cluster"}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	out := resource{gvk.Group, plural.Resource, IsNamespaced(gvk.GroupKind())}
	if !out.namespaced {
		return out
	}
	if clientgoscheme.Scheme.Recognizes(gvk) || gvk.Group == v1beta1.GroupVersion.Group {
		return out
	}
	if k.served != nil {
		mapping, err := k.served(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			return resource{mapping.Resource.Group, mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
		case !meta.IsNoMatchError(err) && !errors.As(err, new(*apiutil.ErrResourceDiscoveryFailed)):
			k.served = nil // a cluster that does not answer is not asked again; a group that is down is no reason for the others
		}
	}
	k.guessed[fmt.Sprintf("kind %s of %s is not known here: it is taken as namespaced, with the resource %s", gvk.Kind, gvk.GroupVersion(),
		ResourceName(gvk.Group, out.name))] = true
	return out
}

// ResourceName is how people name a resource of a group: `deployments.apps`, `pods/exec`.
func ResourceName(group, name string) string {
	if group == "" {
		return name
	}
	name, sub, below := strings.Cut(name, "/")
	name += "." + group
	if below {
		name += "/" + sub
	}
	return name
}
