package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ExploreReview is what kudo posts to a webhook, with a request, and what it gets back, with a response.
type ExploreReview struct {
	metav1.TypeMeta `json:",inline"`
	// Request is what kudo asks.
	// +optional
	Request *ExploreRequest `json:"request,omitempty"`
	// Response is the webhook's answer.
	// +optional
	Response *ExploreResponse `json:"response,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (in *ExploreReview) DeepCopyObject() runtime.Object {
	if in == nil {
		return nil
	}
	return in.DeepCopy()
}

// ExploreRequest is a question about an object.
type ExploreRequest struct {
	// UID identifies the request. It tracks the call, not an object, and has to be copied to the response.
	// +required
	UID types.UID `json:"uid"`
	// Kind is the group, version and kind of the object.
	// +required
	Kind metav1.GroupVersionKind `json:"kind"`
	// Name of the object.
	// +required
	Name string `json:"name"`
	// Namespace of the object; empty for objects that have none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Operation is what is asked.
	// +required
	Operation OperationType `json:"operation"`
	// Object is the object that is asked about; for ExploreRetaining, the desired one.
	// +optional
	Object runtime.RawExtension `json:"object,omitempty"`
	// ObservedObject is the object as it is in the cluster. It is set for ExploreRetaining only.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`
	// DesiredReplicas is the number of replicas to write into the object. It is set for ExploreReplicaRevising only.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`
	// AggregatedStatus holds the status of each running copy of the object. It is set for ExploreStatusAggregating only.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is the status of one running copy of an object.
type AggregatedStatusItem struct {
	// ClusterName is the cluster that the copy runs in.
	// +required
	ClusterName string `json:"clusterName"`
	// Status of the copy.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`
	// Applied reports whether the object was written to the cluster.
	// +optional
	Applied bool `json:"applied,omitempty"`
	// AppliedMessage says why it was not.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`
	// Health of the copy, as the cluster reports it: Healthy, Unhealthy or Unknown.
	// +optional
	Health CopyHealth `json:"health,omitempty"`
}

// CopyHealth is the health of a running copy of an object.
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
type CopyHealth string

// The values of CopyHealth.
const (
	// CopyHealthy copies are done.
	CopyHealthy CopyHealth = "Healthy"
	// CopyUnhealthy copies are not done.
	CopyUnhealthy CopyHealth = "Unhealthy"
	// CopyUnknown is the health of a copy that cannot be judged.
	CopyUnknown CopyHealth = "Unknown"
)

// ExploreResponse is an answer. Besides uid, it holds the fields of the operation that was asked:
//
//	ExplorePacking, ExploreRetaining, ExploreReplicaRevising, ExploreStatusAggregating   patch, patchType (none: no change)
//	ExploreHealthy                                                                       healthy or health
//	ExploreDependencies                                                                  dependencies (none: none)
//	ExploreReplica                                                                       replicas, replicaRequirements
//	ExploreComponents                                                                    components (none: none)
//	ExploreStatus                                                                        status
type ExploreResponse struct {
	// UID is that of the request.
	// +required
	UID types.UID `json:"uid"`
	// Patch turns the request's object into the answer: a JSON patch (RFC 6902).
	// +optional
	Patch []byte `json:"patch,omitempty"`
	// PatchType is the type of the patch: JSONPatch.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`
	// ReplicaRequirements are what each replica needs.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`
	// Replicas is the number of pods that the object declares. It is a pointer, to tell zero from not said.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Components are the kinds of pods that the object runs. Their names are unique.
	// +optional
	Components []Component `json:"components,omitempty"`
	// Dependencies are the objects that the object needs.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`
	// Status is the object's status.
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`
	// Healthy reports whether the object is done.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
	// Health is the outcome: Healthy, Progressing or Failed. It must not contradict healthy, and may stand in its place. Failed
	// objects do not become healthy by waiting: a plan that waits for one ends.
	// +optional
	Health HealthOutcome `json:"health,omitempty"`
	// Result refuses to answer, if its status is Failure; its message is the reason. With ExploreHealthy and
	// `healthy: false`, its message says what the object waits for, or why it failed.
	// +optional
	Result *metav1.Status `json:"result,omitempty"`
}

// HealthOutcome is what is said of an object's health.
// +kubebuilder:validation:Enum=Healthy;Progressing;Failed
type HealthOutcome string

// The outcomes.
const (
	// HealthHealthy objects are done.
	HealthHealthy HealthOutcome = "Healthy"
	// HealthProgressing objects are expected to become healthy by themselves.
	HealthProgressing HealthOutcome = "Progressing"
	// HealthFailed objects do not become healthy by waiting.
	HealthFailed HealthOutcome = "Failed"
)

// PatchType is the type of a patch.
// +kubebuilder:validation:Enum=JSONPatch
type PatchType string

// PatchTypeJSONPatch is a JSON patch as in RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"

// ReplicaRequirements are what each replica of an object needs.
type ReplicaRequirements struct {
	// NodeClaim says which nodes a replica may run on.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`
	// ResourceRequest is the sum of the resources that a replica requests.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`
	// Namespace of the replicas. Scripts of older configurations set it; nothing depends on it.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// PriorityClassName of the replicas. Scripts of older configurations set it; nothing depends on it.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// MaxComponentName is the length of the longest name of a component, in bytes.
const MaxComponentName = 32

// Component is one kind of pods of an object that runs several, such as the job manager and the task managers of a job.
type Component struct {
	// Name of the component, unique in the object, with at most 32 characters.
	// +required
	Name string `json:"name"`
	// Replicas is the number of its pods.
	// +required
	Replicas int32 `json:"replicas"`
	// ReplicaRequirements are what each of its pods needs.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// NodeClaim says which nodes a replica may run on.
type NodeClaim struct {
	// HardNodeAffinity is spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution of the pods.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`
	// NodeSelector is spec.nodeSelector of the pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations are spec.tolerations of the pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// DependentObjectReference names an object that another needs: one by name, or all that a selector matches.
type DependentObjectReference struct {
	// APIVersion of the object.
	// +required
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	// +required
	Kind string `json:"kind"`
	// Namespace of the object; empty if its kind has none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// LabelSelector matches the objects, if there is no name.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
