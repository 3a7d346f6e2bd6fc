package culprit

import (
	"regexp"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// Selector returns the labels of the pods that an object may have. found is false if the kind has no pods, or if its selector is malformed.
func Selector(object *unstructured.Unstructured) (selector string, found bool) {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return labels.Set{batchv1.ControllerUidLabel: string(object.GetUID())}.String(), object.GetUID() != ""
	case schema.GroupKind{Kind: "ReplicationController"}:
		fields, _, err := unstructured.NestedStringMap(object.Object, "spec", "selector")
		return labels.Set(fields).String(), err == nil && len(fields) > 0
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "extensions", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "extensions", Kind: "DaemonSet"}:
		fields, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
		parsed := &metav1.LabelSelector{}
		if len(fields) == 0 || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, parsed) != nil {
			return "", false
		}
		s, err := metav1.LabelSelectorAsSelector(parsed)
		if err != nil || s.Empty() {
			return "", false
		}
		return s.String(), true
	}
	return "", false
}

// Owned returns the pods of a list that belong to an object, by their controller: the object, or a ReplicaSet of the Deployment, whose name
// the Deployment controller makes of the names of the two and of the hash in the labels of the pods.
func Owned(object *unstructured.Unstructured, pods []corev1.Pod) []corev1.Pod {
	deployment := object.GetKind() == "Deployment"
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool {
		owner := metav1.GetControllerOf(&pod)
		switch {
		case owner == nil:
			return true
		case deployment:
			return owner.Kind != "ReplicaSet" || owner.Name != object.GetName()+"-"+pod.Labels["pod-template-hash"]
		}
		return owner.UID != object.GetUID()
	})
}

// condition is what all kinds' conditions have in common.
type condition struct {
	Type               string                 `json:"type"`
	Status             corev1.ConditionStatus `json:"status"`
	Reason             string                 `json:"reason"`
	Message            string                 `json:"message"`
	LastTransitionTime metav1.Time            `json:"lastTransitionTime"`
}

// failures are the conditions that name a cause, with the status that does so, the most telling ones first.
var failures = []condition{
	{Type: "ReplicaFailure", Status: corev1.ConditionTrue},
	{Type: "FailureTarget", Status: corev1.ConditionTrue},
	{Type: "Failed", Status: corev1.ConditionTrue},
	{Type: "Stalled", Status: corev1.ConditionTrue},
	{Type: "ControllerResizeError", Status: corev1.ConditionTrue},
	{Type: "NodeResizeError", Status: corev1.ConditionTrue},
	{Type: "NamesAccepted", Status: corev1.ConditionFalse},
	{Type: "NamespaceDeletionDiscoveryFailure", Status: corev1.ConditionTrue},
	{Type: "NamespaceDeletionContentFailure", Status: corev1.ConditionTrue},
	{Type: "NamespaceFinalizersRemaining", Status: corev1.ConditionTrue},
	{Type: "NamespaceContentRemaining", Status: corev1.ConditionTrue},
	{Type: "Progressing", Status: corev1.ConditionFalse},
	{Type: "Synced", Status: corev1.ConditionFalse},
	{Type: "Ready", Status: corev1.ConditionFalse},
}

// ofObject returns what an object says of itself, and whether that is why it has no pods.
func ofObject(object *unstructured.Unstructured) (f Finding, explained bool) {
	f.events = subject{uid: object.GetUID(), namespace: object.GetNamespace()}
	if isInstance(object) {
		return ofChild(object, f), false
	}
	var status struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &status) != nil {
		return f, false
	}
	for _, failure := range failures {
		for _, c := range status.Status.Conditions {
			if c.Type != failure.Type || c.Status != failure.Status || c.Reason == "" && c.Message == "" {
				continue
			}
			f.Reason, f.Message, f.Since = c.Reason, stable(c.Message), at(c.LastTransitionTime)
			explained = c.Type == "ReplicaFailure"
			f.complete = explained && c.Message != ""
			return f, explained
		}
	}
	return f, false
}

func isInstance(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}
}

// ofChild returns the culprit of an Instance's own plan.
func ofChild(object *unstructured.Unstructured, f Finding) Finding {
	child := &v1beta1.Instance{}
	f.complete = true
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, child) != nil {
		return f
	}
	_, run := plans.LatestRun(child.Status.PlanStatus)
	if all := plans.Culprits(run); len(all) > 0 {
		f.Culprit = *all[0].Task.Culprit
	}
	return f
}

// unstable are the names of pods that a controller has made up for each attempt, and what stands before the cause.
var unstable = regexp.MustCompile(`^(?:Error creating: |create Pod \S+ in StatefulSet \S+ failed error: )?` +
	`(?:[Pp]ods? "[^"]*" is (?:forbidden|invalid): )?`)

// stable returns a message without what differs at each attempt.
func stable(message string) string { return unstable.ReplaceAllString(message, "") }
