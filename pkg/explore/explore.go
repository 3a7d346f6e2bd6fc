// Package explore asks the layers of an interpreter about objects of kinds that kudo does not know: is it healthy, what does it
// depend on, which of its fields belong to other clients.
package explore

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/text"
)

// Operation is a question about an object.
type Operation = v1alpha1.OperationType

// The operations. Each says which fields of the Request are set, and which of the Answer it has.
const (
	// Packing: Object -> Object.
	Packing = v1alpha1.ExplorePacking
	// Retaining: Object (desired), Observed -> Object.
	Retaining = v1alpha1.ExploreRetaining
	// Healthy: Object (observed) -> Healthy, Failed, Message.
	Healthy = v1alpha1.ExploreHealthy
	// Dependencies: Object -> Dependencies.
	Dependencies = v1alpha1.ExploreDependencies
	// Replica: Object -> Replicas, Requirements.
	Replica = v1alpha1.ExploreReplica
	// Components: Object -> Components.
	Components = v1alpha1.ExploreComponents
	// ReplicaRevising: Object, Replicas -> Object.
	ReplicaRevising = v1alpha1.ExploreReplicaRevising
	// Status: Object (observed) -> Status.
	Status = v1alpha1.ExploreStatus
	// StatusAggregating: Object, Items -> Object.
	StatusAggregating = v1alpha1.ExploreStatusAggregating
)

// Operations are all of them, in the order in which a plan asks.
func Operations() []Operation {
	return []Operation{Packing, Retaining, Healthy, Dependencies, Replica, Components, ReplicaRevising, Status, StatusAggregating}
}

// Layer is who answers.
type Layer string

// The layers, in the order in which a Chain asks.
const (
	// User layer: the fields and scripts of Configs.
	User Layer = "user"
	// Webhook layer.
	Webhook Layer = "webhook"
	// Library layer: rules for well-known kinds that come with kudo.
	Library Layer = "library"
	// Native layer: Go code for the kinds of Kubernetes itself.
	Native Layer = "native"
)

// Request asks one Operation about one object.
type Request struct {
	Operation Operation
	// Object is asked about. It is never nil, and a layer must not change it.
	Object *unstructured.Unstructured
	// Observed is the object in the cluster (Retaining only). A layer must not change it.
	Observed *unstructured.Unstructured
	// Replicas to write into the object, 0 or more (ReplicaRevising only).
	Replicas int32
	// Items are the statuses of the object's copies (StatusAggregating only), or nil if nothing is known of any.
	Items []v1alpha1.AggregatedStatusItem
}

// Answer is a value. Only the fields of the request's operation are set.
type Answer struct {
	// Object (Packing, Retaining, ReplicaRevising, StatusAggregating) is never nil and shares nothing that the caller
	// could not change: it is the caller's.
	Object *unstructured.Unstructured
	// Healthy (Healthy).
	Healthy bool
	// Failed (Healthy) is set if an object that is not healthy does not become so by waiting.
	Failed bool
	// Message (Healthy) says what an unhealthy object waits for, or why it failed; it may be empty. It does not name the object.
	Message string
	// Dependencies (Dependencies), in a stable order.
	Dependencies []v1alpha1.DependentObjectReference
	// Replicas (Replica), 0 or more.
	Replicas int32
	// Requirements (Replica) of each replica; nil if nothing is known of them.
	Requirements *v1alpha1.ReplicaRequirements
	// Components (Components) have unique names; none if the object has none.
	Components []v1alpha1.Component
	// Status (Status) is of JSON types with int64 for whole numbers; nil if the object has none.
	Status any
	// Ignored lists the parts of the layer's answer that are not used, such as changes outside of status (StatusAggregating). Chain sets it.
	Ignored []string

	// Layer answered. Chain sets it.
	Layer Layer
	// Who in the layer answered, such as `Config/deployments`; empty if the layer has but one.
	Who string
}

// Explorer is one layer. It is safe for concurrent use.
type Explorer interface {
	// Layer names it.
	Layer() Layer
	// Explore answers (true), has no opinion (false), or cannot answer: an error. An error never counts as no opinion.
	// It must not change the request, keep parts of it, or run on after the context ends.
	Explore(ctx context.Context, r Request) (Answer, bool, error)
}

// UnknownError is the error of a layer that has, or may have, an opinion, and cannot answer it: a time-out, an error of a script,
// an answer that cannot be used. What depends on the answer waits.
type UnknownError struct {
	Layer Layer
	// Who in the layer was asked, such as `Config/deployments` or a webhook's name; it may be empty.
	Who       string
	Operation Operation
	// Object names the object, as `Kind namespace/name`.
	Object string
	Err    error
}

// Error names the layer, who was asked, and the object.
func (u *UnknownError) Error() string {
	who := string(u.Layer)
	if u.Who != "" {
		who += " " + u.Who
	}
	return fmt.Sprintf("%s of %s is unknown: %s: %v", u.Operation, u.Object, who, u.Err)
}

// Unwrap returns the cause.
func (u *UnknownError) Unwrap() error { return u.Err }

// IsUnknown reports whether an error means that a layer could not tell, and returns it.
func IsUnknown(err error) (*UnknownError, bool) {
	var u *UnknownError
	ok := errors.As(err, &u)
	return u, ok
}

// NewUnknown makes the error of a layer that cannot answer a request.
func (r Request) NewUnknown(layer Layer, who string, err error) *UnknownError {
	return &UnknownError{Layer: layer, Who: who, Operation: r.Operation, Object: NameOf(r.Object), Err: err}
}

// Outcome is the outcome of a Healthy answer.
func (a Answer) Outcome() v1alpha1.HealthOutcome {
	switch {
	case a.Healthy:
		return v1alpha1.HealthHealthy
	case a.Failed:
		return v1alpha1.HealthFailed
	}
	return v1alpha1.HealthProgressing
}

// SetOutcome sets Healthy and Failed of an answer from an outcome; an empty one changes nothing. An outcome that contradicts Healthy is
// an error.
func (a *Answer) SetOutcome(outcome v1alpha1.HealthOutcome) error {
	switch outcome {
	case "":
		return nil
	case v1alpha1.HealthHealthy, v1alpha1.HealthProgressing, v1alpha1.HealthFailed:
	default:
		return fmt.Errorf("health %s is unknown: use Healthy, Progressing or Failed", text.Quote(string(outcome), 64))
	}
	if a.Healthy != (outcome == v1alpha1.HealthHealthy) {
		return fmt.Errorf("health %s contradicts healthy %v", outcome, a.Healthy)
	}
	a.Failed = outcome == v1alpha1.HealthFailed
	return nil
}

// NameOf is `Kind namespace/name`, for messages.
func NameOf(object *unstructured.Unstructured) string {
	if object == nil {
		return "nothing"
	}
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}
