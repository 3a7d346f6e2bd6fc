// Package clusters decides how an Instance of a hub is placed on clusters, and what its status there adds up to. It decides on values: the
// engine that carries the Instance to the clusters stands behind the interface Engine.
package clusters

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// FieldManager writes the objects that place Instances.
const FieldManager = "kudo-hub"

// Engine carries Instances to clusters. Its methods may be called at the same time for different Instances.
type Engine interface { //nolint:interfacebloat // the five are the duties of one backend, and its only user needs each
	// Place writes what places an Instance. It is idempotent. A *RefusedError is not tried again before something changes.
	Place(ctx context.Context, placed Placed) error
	// Observe returns what the engine shows of an Instance. It reads caches, which may be old, but never older than what Place has written.
	Observe(ctx context.Context, instance *v1beta1.Instance) (Observation, error)
	// Remove takes an Instance from all clusters, and returns the clusters that have a copy left.
	Remove(ctx context.Context, instance *v1beta1.Instance) (left []string, err error)
	// Events returns a channel of names of Instances. The engine sends a name when it may show something new about the Instance.
	Events() <-chan types.NamespacedName
	// Access returns how to reach a cluster.
	Access(ctx context.Context, cluster string) (*rest.Config, error)
}

// Placed is an Instance with what each cluster gets of it.
type Placed struct {
	// Instance of the hub, whose status has what its decision has come to.
	Instance *v1beta1.Instance
	// Clusters in the order of spec.placement, or of the decision.
	Clusters []Target
}

// Target is what one cluster gets.
type Target struct {
	Name string
	// Weight of the cluster; Share of the divided parameter, or nil if none is divided.
	Weight int64
	Share  *int64
	// Parameters that differ in this cluster.
	Parameters map[string]string
	// Released is the template that the cluster may act upon, or "" to hold it.
	Released string
}

// RefusedError says that an object stands in the way which the hub must not change, or that the hub must not read one.
type RefusedError struct {
	// Reason of the condition Ready: ForeignPolicy, PolicyRefused or WaitingForParameters.
	Reason  string
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// HoldError says why a decision is not acted upon: what is placed stays as it is.
type HoldError struct{ Message string }

func (e *HoldError) Error() string { return e.Message }

// Observation is what an engine shows of a placed Instance.
type Observation struct {
	// Undecided says why the clusters that the Instance runs on may be others than those that its decision names, or is "".
	Undecided string
	// Silent says why the engine's reports are not fresh, or is "".
	Silent string
	// Unschedulable says why the engine has found no cluster, or is "".
	Unschedulable string
	// Refused says that another policy has the Instance, or is nil.
	Refused *RefusedError
	// Settled is set if the engine has acted upon what Place has written last, apart from releases.
	Settled bool
	// Bound are the clusters that the engine has chosen, with their shares; a share is nil if nothing is divided.
	Bound map[string]*int64
	// Members by cluster. A cluster that is not there is not known to the engine.
	Members map[string]Member
}

// Member is what an engine shows of one cluster.
type Member struct {
	// Unreachable says why the cluster cannot be reached, or is "" if it can.
	Unreachable string
	// Applied is set if the cluster has accepted the Instance; AppliedMessage says why it has not.
	Applied        bool
	AppliedMessage string
	// Leaving is set if the cluster is no longer to have a copy, and still has one, or is not known not to.
	Leaving bool
	// Suspended is the reason why the engine does not write to the cluster, since a user has suspended it. It is "" if none has.
	Suspended string
	// Report is what the cluster's manager has reported, or nil.
	Report *Report
}

// Report is what a cluster says of its copy of an Instance. The rules of Instances for the engine make it of the copy, at most 4 KiB.
type Report struct {
	// Template that spec comes from, and Released the one that may be acted upon.
	Template string `json:"template,omitempty"`
	Released string `json:"released,omitempty"`
	// Generation of the copy, and the one that its status speaks of.
	Generation         int64 `json:"generation,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready is the status of the condition Ready if that speaks of the generation, else Unknown.
	Ready           metav1.ConditionStatus  `json:"ready,omitempty"`
	Reason          string                  `json:"reason,omitempty"`
	Message         string                  `json:"message,omitempty"`
	Plan            string                  `json:"plan,omitempty"`
	PlanStatus      v1beta1.ExecutionStatus `json:"planStatus,omitempty"`
	Revision        int64                   `json:"revision,omitempty"`
	Queued          int64                   `json:"queued,omitempty"`
	OperatorVersion string                  `json:"operatorVersion,omitempty"`
	// Replicas is the value of the divided parameter, or "" if none is divided.
	Replicas string `json:"replicas,omitempty"`
}
