package v1beta1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CRDDownloadPolicy says when a tarball of CRDs is fetched. Empty means DownloadIfNotPresent.
// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
type CRDDownloadPolicy string

const (
	// DownloadAlways asks the source each time whether its tarball changed. If that fails and a copy is in the cache,
	// the copy is used, and the status says that it is stale.
	DownloadAlways CRDDownloadPolicy = "Always"
	// DownloadIfNotPresent fetches what is not in the cache.
	DownloadIfNotPresent CRDDownloadPolicy = "IfNotPresent"
	// DownloadNever uses the cache only, and no network.
	DownloadNever CRDDownloadPolicy = "Never"
)

// CRDUpdatePolicy says what happens when a CRD on the cluster differs from the tarball's. Empty means UpdateFail.
// +kubebuilder:validation:Enum=Fail;IfSafe
type CRDUpdatePolicy string

const (
	// UpdateFail leaves the CRD on the cluster as it is, and the Instance waits.
	UpdateFail CRDUpdatePolicy = "Fail"
	// UpdateIfSafe changes the CRD on the cluster if no custom resource can be lost or become invalid by it.
	UpdateIfSafe CRDUpdatePolicy = "IfSafe"
)

// CRDTarball says where the CustomResourceDefinitions of an application come from: a gzipped tar of YAML files, each
// document of which is an apiextensions.k8s.io/v1 CustomResourceDefinition. They are installed before the first plan.
//
// Texts marked as template are Go templates over .OperatorName, .OperatorVersion, .AppVersion, .Name and .Namespace of
// the Instance that is installed, so that Instances of different versions get different CRDs.
// +kubebuilder:validation:XValidation:rule="[has(self.httpSource), has(self.ociSource), has(self.configMapSource)].filter(x, x).size() == 1",message="exactly one of httpSource, ociSource and configMapSource must be set"
type CRDTarball struct {
	// HTTPSource downloads the tarball by HTTP or HTTPS.
	// +optional
	HTTPSource *HTTPSource `json:"httpSource,omitempty"`
	// OCISource pulls the tarball from a registry of OCI artifacts.
	// +optional
	OCISource *OCISource `json:"ociSource,omitempty"`
	// ConfigMapSource puts the tarball together from ConfigMaps, for clusters that reach no other source.
	// +optional
	ConfigMapSource *ConfigMapSource `json:"configMapSource,omitempty"`
	// CRDDownloadPolicy says when the tarball is fetched: `Always`, `IfNotPresent` or `Never`. Default `IfNotPresent`.
	// +optional
	// +kubebuilder:default=IfNotPresent
	CRDDownloadPolicy CRDDownloadPolicy `json:"crdDownloadPolicy,omitempty"`
	// CRDUpdatePolicy says what happens when a CRD on the cluster differs: `Fail`, or `IfSafe` to change it if no custom
	// resource can be lost or become invalid. Default `Fail`.
	// +optional
	CRDUpdatePolicy CRDUpdatePolicy `json:"crdUpdatePolicy,omitempty"`
}

// MissingDigest returns the field that would fix what the tarball is, if that is not set; else an empty text. A nil tarball has none.
func (t *CRDTarball) MissingDigest() string {
	switch {
	case t == nil:
	case t.HTTPSource != nil && t.HTTPSource.SHA256 == "":
		return "httpSource.sha256"
	case t.ConfigMapSource != nil && t.ConfigMapSource.SHA256 == "":
		return "configMapSource.sha256"
	}
	return ""
}

// Digest returns the digest of the tarball, or of its manifest in a registry, sha256:<hex>; empty if it is not set.
func (t *CRDTarball) Digest() string {
	const prefix = "sha256:"
	switch {
	case t == nil || t.MissingDigest() != "":
		return ""
	case t.HTTPSource != nil:
		return prefix + t.HTTPSource.SHA256
	case t.ConfigMapSource != nil:
		return prefix + t.ConfigMapSource.SHA256
	case t.OCISource != nil:
		if _, digest, found := strings.Cut(t.OCISource.Ref, "@"); found {
			return digest
		}
	}
	return ""
}

// HTTPSource downloads a tarball by HTTP or HTTPS.
type HTTPSource struct {
	// URL of the tarball; a template. It has no user and password in it: these belong into the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url"`
	// SHA256 is the digest that the tarball must have, in 64 hexadecimal digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
	// ProxyURL is the HTTP proxy to go through. Its user and password belong into the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ProxyURL string `json:"proxyURL,omitempty"`
	// CABundle holds the PEM certificates that the server's certificate must be signed by, in place of the system's.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// SecretRef names a Secret of the same namespace with credentials: `username` and `password` for basic auth, `token`
	// for a bearer token, `tls.crt` and `tls.key` for a client certificate, `proxyUsername` and `proxyPassword` for the
	// proxy.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// OCISource pulls a tarball from a registry of OCI artifacts.
type OCISource struct {
	// Ref is the artifact, `<registry>/<repository>[:<tag>]@sha256:<digest of its manifest>`; a template up to the digest.
	// The manifest has one layer that is a gzipped tar.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`@sha256:[0-9a-f]{64}$`
	Ref string `json:"ref"`
	// ProxyURL is the HTTP proxy to go through. Its user and password belong into the Secret.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ProxyURL string `json:"proxyURL,omitempty"`
	// CABundle holds the PEM certificates that the server's certificate must be signed by, in place of the system's.
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
	// SecretRef names a Secret of the same namespace: a pull secret with `.dockerconfigjson`, or one with the keys that a
	// Secret of httpSource may have.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// ConfigMapSource puts a tarball together from ConfigMaps, each of which holds at most 1 MiB.
type ConfigMapSource struct {
	// ConfigMaps that hold the tarball, in the order in which their bytes are put together.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	ConfigMaps []ConfigMapPart `json:"configMaps"`
	// SHA256 is the digest that the tarball must have, in 64 hexadecimal digits.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256,omitempty"`
}

// ConfigMapPart is a part of a tarball.
type ConfigMapPart struct {
	// Name of a ConfigMap of the same namespace; a template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key of its binaryData. It may be left out if the ConfigMap has one key only.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// CRDTarballStatus says which tarball of CRDs an Instance uses.
type CRDTarballStatus struct {
	// URL that was resolved for this Instance, without its query, which may be secret. For other sources than HTTP it
	// begins with `oci://` or `configmap://`.
	// +optional
	URL string `json:"url,omitempty"`
	// Digest of the tarball that is used, `sha256:` and 64 hexadecimal digits.
	// +optional
	Digest string `json:"digest,omitempty"`
	// CachedAt is when the tarball that is used was fetched.
	// +optional
	// +nullable
	CachedAt *metav1.Time `json:"cachedAt,omitempty"`
	// CRDs are the names of the CustomResourceDefinitions in it, in the tarball's order.
	// +optional
	// +listType=atomic
	CRDs []string `json:"crds,omitempty"`
	// Stale is set if the source was to be asked for a newer tarball and did not answer; what was fetched before is used.
	// +optional
	Stale bool `json:"stale,omitempty"`
	// StaleReason says why the source could not be asked.
	// +optional
	StaleReason string `json:"staleReason,omitempty"`
	// Download is the fetch that is under way; absent while idle.
	// +optional
	Download *CRDDownloadStatus `json:"download,omitempty"`
}

// CRDDownloadStatus is a fetch that is under way.
type CRDDownloadStatus struct {
	// Attempt counts from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// Bytes that have come in this attempt.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// TotalBytes as the source announced them; 0 if it did not.
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`
}
