package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxCulprit bounds a culprit in a status, in bytes of JSON.
const MaxCulprit = 1024

// CulpritUnread is the reason of a culprit that names the object only: the account of the run may list neither pods nor events, so that
// the cause is not known.
const CulpritUnread = "Unread"

// Culprit is what keeps a task from being done: the object that it waits for or that has failed and, as far as the account of the run may
// read this, the pod and the container that are the cause.
type Culprit struct {
	// APIVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the object, empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner is the controller of the pod if that is not the object itself, such as `ReplicaSet web-5d4f`.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Pod of the object that is not as it should be; empty if none is.
	// +optional
	Pod string `json:"pod,omitempty"`
	// Container of the pod; empty if the cause concerns the whole pod.
	// +optional
	Container string `json:"container,omitempty"`
	// Reason in one word, as Kubernetes reports it: ImagePullBackOff, CrashLoopBackOff, OOMKilled, Unschedulable, FailedCreate and others.
	// +optional
	Reason string `json:"reason,omitempty"`
	// ExitCode of the container, if it has ended.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Since is when this was so first, as far as it is known.
	// +optional
	// +nullable
	Since *metav1.Time `json:"since,omitempty"`
	// Message for people, without the values of sensitive parameters. It holds no line of a log.
	// +optional
	Message string `json:"message,omitempty"`
}
