package health

import corev1 "k8s.io/api/core/v1"

// meta holds the metadata that rules read.
type meta struct {
	Generation      int64             `json:"generation"`
	Annotations     map[string]string `json:"annotations"`
	OwnerReferences []owner           `json:"ownerReferences"`
}

type owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Controller bool   `json:"controller"`
}

// condition is what all kinds' conditions have in common.
type condition struct {
	Type    string                 `json:"type"`
	Status  corev1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

type conditions []condition

// with returns the first condition of a type and status.
func (c conditions) with(kind string, status corev1.ConditionStatus) (condition, bool) {
	for _, one := range c {
		if one.Type == kind && one.Status == status {
			return one, true
		}
	}
	return condition{}, false
}

func (c conditions) isTrue(kind string) bool {
	_, found := c.with(kind, corev1.ConditionTrue)
	return found
}

// String is "reason: message", or what there is of it.
func (c condition) String() string { return explain(c.Reason, c.Message, c.Type) }

// explain joins a reason and a message; without both, the fallback stands in.
func explain(reason, message, fallback string) string {
	switch {
	case reason != "" && message != "":
		return reason + ": " + message
	case message != "":
		return message
	case reason != "":
		return reason
	default:
		return fallback
	}
}

// orOne is the default of spec.replicas and of spec.completions.
func orOne(count *int32) int32 {
	if count == nil {
		return 1
	}
	return *count
}
