// Package explore asks the layers of an interpreter about objects of kinds that kudo does not know: is it healthy, what does it
// depend on, which of its fields belong to other clients.
package explore

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// Operation is a question about an object.
type Operation = v1alpha1.OperationType

// The operations. Each says which fields of the Request are set, and which of the Answer it has.
const (
	// Packing: Object -> Object.
	Packing = v1alpha1.ExplorePacking
	// Retaining: Object (desired), Observed -> Object.
	Retaining = v1alpha1.ExploreRetaining
	// Healthy: Object (observed) -> Healthy, Message.
	Healthy = v1alpha1.ExploreHealthy
	// Dependencies: Object -> Dependencies.
	Dependencies = v1alpha1.ExploreDependencies
	// Replica: Object -> Replicas, Requirements.
	Replica = v1alpha1.ExploreReplica
	// ReplicaRevising: Object, Replicas -> Object.
	ReplicaRevising = v1alpha1.ExploreReplicaRevising
	// Status: Object (observed) -> Status.
	Status = v1alpha1.ExploreStatus
	// StatusAggregating: Object, Items -> Object.
	StatusAggregating = v1alpha1.ExploreStatusAggregating
)

// Operations are all of them, in the order in which a plan asks.
func Operations() []Operation {
	return []Operation{Packing, Retaining, Healthy, Dependencies, Replica, ReplicaRevising, Status, StatusAggregating}
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
	// Items are the statuses of the object's copies (StatusAggregating only); nil if nothing is known of any.
	Items []v1alpha1.AggregatedStatusItem
}

// Answer is a value. Only the fields of the request's operation are set.
type Answer struct {
	// Object (Packing, Retaining, ReplicaRevising, StatusAggregating) is never nil and shares nothing that the caller
	// could not change: it is the caller's.
	Object *unstructured.Unstructured
	// Healthy (Healthy).
	Healthy bool
	// Message (Healthy) says what an unhealthy object waits for; it may be empty. It does not name the object.
	Message string
	// Dependencies (Dependencies), in a stable order.
	Dependencies []v1alpha1.DependentObjectReference
	// Replicas (Replica), 0 or more.
	Replicas int32
	// Requirements (Replica) of each replica; nil if nothing is known of them.
	Requirements *v1alpha1.ReplicaRequirements
	// Status (Status) is of JSON types with int64 for whole numbers; nil if the object has none.
	Status any

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
