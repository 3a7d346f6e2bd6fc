package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bounds of ResourceExploringWebhook.timeoutSeconds.
const (
	// DefaultTimeoutSeconds is the budget of a call if nothing is said.
	DefaultTimeoutSeconds = 10
	// MaxTimeoutSeconds is the largest budget of a call.
	MaxTimeoutSeconds = 30
)

// ResourceExploringWebhookConfiguration names webhooks that kudo asks about kinds of objects, and when it asks them.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rewc,categories=kudo
// +kubebuilder:printcolumn:name="Webhooks",type=string,JSONPath=`.webhooks[*].name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceExploringWebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are the webhooks, and the objects and operations that each is asked about. Where several match, the one
	// whose configuration, and then whose own name, comes first in the alphabet is asked first.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Webhooks []ResourceExploringWebhook `json:"webhooks"`

	// Status says whether the webhooks can be asked. kudo writes it.
	// +optional
	Status WebhookConfigurationStatus `json:"status,omitzero"`
}

// ResourceExploringWebhookConfigurationList is a list of ResourceExploringWebhookConfigurations.
// +kubebuilder:object:root=true
type ResourceExploringWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ResourceExploringWebhookConfiguration `json:"items"`
}

// WebhookConfigurationStatus is what kudo has seen of the webhooks.
type WebhookConfigurationStatus struct {
	// Conditions of the configuration. `Ready` is false while a webhook is not asked, since it timed out again and
	// again, or since its configuration cannot be used; the message names it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ResourceExploringWebhook describes a webhook, and the objects and operations that it is asked about.
// +kubebuilder:validation:XValidation:rule="has(self.clientConfig.url) != has(self.clientConfig.service)",message="clientConfig must have exactly one of url and service"
// +kubebuilder:validation:XValidation:rule="!has(self.clientConfig.url) || self.clientConfig.url.startsWith('https://')",message="clientConfig.url must begin with https://"
type ResourceExploringWebhook struct {
	// Name of the webhook, fully qualified and unique in the configuration, such as `foo.example.com`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// ClientConfig says where the webhook is: a `url`, or a `service` in the cluster. It is called over TLS only;
	// `caBundle` verifies its certificate, or the system's roots if that is empty.
	// +required
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules say what the webhook is asked about: an object and operation that match any of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// FailurePolicy says what a webhook that cannot be asked, or whose answer cannot be used, means. With `Fail` the
	// answer is unknown, and what depends on it waits. With `Ignore` the next in line is asked.
	// +optional
	// +kubebuilder:default=Fail
	// +kubebuilder:validation:Enum=Fail;Ignore
	FailurePolicy *admissionregistrationv1.FailurePolicyType `json:"failurePolicy,omitempty"`

	// TimeoutSeconds is the time that a whole call may take, from looking up the name to the last byte of the answer.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// ExploreReviewVersions are the versions of ExploreReview that the webhook understands, the best first. kudo sends
	// the first that it knows; if it knows none, the failure policy decides. `v1alpha1` is known.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.exists(v, v == 'v1alpha1')",message="must hold a version that kudo knows: v1alpha1"
	ExploreReviewVersions []string `json:"exploreReviewVersions"`

	// ObjectSelector restricts the webhook to objects with labels. An empty one matches every object. For
	// ExploreRetaining either the desired or the observed object has to match.
	// +optional
	ObjectSelector *metav1.LabelSelector `json:"objectSelector,omitempty"`

	// MatchConditions are CEL expressions, all of which have to be true for the webhook to be asked. `object` is the
	// object, `oldObject` the observed one (ExploreRetaining only), and `request` the request without the objects.
	// An expression that fails is decided by the failure policy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	MatchConditions []admissionregistrationv1.MatchCondition `json:"matchConditions,omitempty"`
}

// RuleWithOperations matches operations on objects of some resources.
type RuleWithOperations struct {
	// Operations that the webhook answers. `*` stands for all, and has to be alone.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(o, o == '*')",message="* must be alone"
	Operations []OperationType `json:"operations"`

	// Rule holds apiGroups, apiVersions, resources and scope, as in admission webhooks: `*` matches any, and an absent
	// scope is `*`.
	admissionregistrationv1.Rule `json:",inline"`
}
