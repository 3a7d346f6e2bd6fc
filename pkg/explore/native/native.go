// Package native is the last layer of package explore: what Kubernetes' own documentation says of its built-in kinds,
// in Go.
package native

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore"
)

// Health judges a live object. Known is false if there is no rule for its kind; the message says what an unhealthy one
// waits for, and does not name the object. It must not change the object.
type Health func(object *unstructured.Unstructured) (healthy, known bool, message string)

// Autoscalers know which objects an autoscaler scales.
type Autoscalers interface {
	// Scales reports whether the kind of an object has a scale subresource over spec.replicas, and an autoscaler has the
	// object as its target. An error means that it cannot answer now. It must not change the object.
	Scales(ctx context.Context, object *unstructured.Unstructured) (bool, error)
}

// Layer answers for built-in kinds, by group and kind: all versions of a kind have the same rules. It keeps no state.
//
//	Retaining          Service, Pod, ServiceAccount, PersistentVolumeClaim, PersistentVolume, Job, Secret (token),
//	                   webhook configurations, CustomResourceDefinition; spec.replicas of what an autoscaler scales
//	Healthy            what Health knows
//	Dependencies       kinds that hold a pod template, Ingress, HorizontalPodAutoscaler
//	Replica            Deployment, StatefulSet, ReplicaSet, ReplicationController, Job, CronJob, Pod; DaemonSet if counted
//	ReplicaRevising    the same without Pod and DaemonSet
//	Status             kinds with a row in statusOf
//	StatusAggregating  the same
type Layer struct {
	health      Health
	autoscalers Autoscalers
}

var _ explore.Explorer = &Layer{}

// New makes the layer. Without health it has no opinion on health; without autoscalers nothing counts as scaled.
func New(health Health, autoscalers Autoscalers) *Layer {
	return &Layer{health: health, autoscalers: autoscalers}
}

// Layer is explore.Native.
func (l *Layer) Layer() explore.Layer { return explore.Native }

// Explore answers by the object's kind. Errors are about fields of the wrong type, or of the Autoscalers.
func (l *Layer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	answer, known, err := l.answer(ctx, r)
	if err != nil {
		return explore.Answer{}, false, r.NewUnknown(explore.Native, "", err)
	}
	return answer, known, nil
}

func (l *Layer) answer(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	kind := r.Object.GroupVersionKind().GroupKind()
	switch r.Operation {
	case explore.Healthy:
		if l.health == nil {
			return explore.Answer{}, false, nil
		}
		healthy, known, message := l.health(r.Object)
		return explore.Answer{Healthy: healthy, Message: message}, known, nil
	case explore.Retaining:
		return l.retain(ctx, kind, r)
	case explore.Dependencies:
		return dependencies(kind, r.Object)
	case explore.Replica:
		return replicas(kind, r.Object)
	case explore.ReplicaRevising:
		return revise(kind, r.Object, r.Replicas)
	case explore.Status:
		return reflectStatus(kind, r.Object)
	case explore.StatusAggregating:
		return aggregate(kind, r)
	default:
		return explore.Answer{}, false, nil
	}
}

// built names a built-in kind, or is empty. Several groups may have served a kind: those of extensions moved elsewhere
// by Kubernetes 1.14.
func built(kind schema.GroupKind) string {
	var groups [2]string
	switch kind.Kind {
	case "Pod", "PodTemplate", "ReplicationController", "Service", "ServiceAccount", "Secret", "PersistentVolume", "PersistentVolumeClaim":
		groups = [2]string{"", ""}
	case "Deployment", "ReplicaSet", "DaemonSet":
		groups = [2]string{"apps", "extensions"}
	case "StatefulSet":
		groups = [2]string{"apps", "apps"}
	case "Job", "CronJob":
		groups = [2]string{"batch", "batch"}
	case "Ingress":
		groups = [2]string{"networking.k8s.io", "extensions"}
	case "HorizontalPodAutoscaler":
		groups = [2]string{"autoscaling", "autoscaling"}
	case "PodDisruptionBudget":
		groups = [2]string{"policy", "policy"}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		groups = [2]string{"admissionregistration.k8s.io", "admissionregistration.k8s.io"}
	case "CustomResourceDefinition":
		groups = [2]string{"apiextensions.k8s.io", "apiextensions.k8s.io"}
	default:
		return ""
	}
	if kind.Group != groups[0] && kind.Group != groups[1] {
		return ""
	}
	return kind.Kind
}

// malformed is an error about a field.
func malformed(field string, err error) error {
	return fmt.Errorf("%s is malformed: %w", field, err)
}
