package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperatorSpec describes an operator package, whatever its version.
type OperatorSpec struct {
	// Description says in a sentence what the operator runs.
	// +optional
	Description string `json:"description,omitempty"`
	// KudoVersion is the version of kudo that the package was written for. It is informational.
	// +optional
	KudoVersion string `json:"kudoVersion,omitempty"`
	// KubernetesVersion is the lowest version of Kubernetes that the operator runs on. `kubectl kudo install` checks it.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Maintainers are the people to ask about the package.
	// +optional
	Maintainers []Maintainer `json:"maintainers,omitempty"`
	// URL is the home page of the operator.
	// +optional
	URL string `json:"url,omitempty"`
	// NamespaceManifest names the template that `kubectl kudo install --create-namespace` makes the namespace from.
	// +optional
	NamespaceManifest string `json:"namespaceManifest,omitempty"`
}

// Maintainer is a person who maintains a package.
type Maintainer struct {
	// Name of the maintainer.
	// +optional
	Name string `json:"name,omitempty"`
	// Email address of the maintainer.
	// +optional
	Email string `json:"email,omitempty"`
}

// OperatorStatus is empty: an Operator has no state.
type OperatorStatus struct{}

// Operator describes an application that can be installed; its versions are OperatorVersions.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ko,categories=kudo
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Operator struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the operator.
	// +optional
	Spec OperatorSpec `json:"spec,omitempty"`
	// Status is empty.
	// +optional
	Status OperatorStatus `json:"status,omitempty"`
}

// OperatorList is a list of Operators.
// +kubebuilder:object:root=true
type OperatorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Operator `json:"items"`
}
