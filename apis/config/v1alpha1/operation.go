package v1alpha1

// OperationType is a question about an object that a script, a webhook, or kudo itself can answer.
// +kubebuilder:validation:Enum="*";ExplorePacking;ExploreRetaining;ExploreHealthy;ExploreDependencies;ExploreReplica;ExploreComponents;ExploreReplicaRevising;ExploreStatus;ExploreStatusAggregating
type OperationType string

// The operations.
const (
	// ExplorePacking asks for the object to apply in place of one that was rendered.
	ExplorePacking OperationType = "ExplorePacking"
	// ExploreRetaining asks for the desired object with those values of the observed one that must be kept, because a
	// controller in the cluster owns them.
	ExploreRetaining OperationType = "ExploreRetaining"
	// ExploreHealthy asks whether an object is done.
	ExploreHealthy OperationType = "ExploreHealthy"
	// ExploreDependencies asks which other objects an object needs.
	ExploreDependencies OperationType = "ExploreDependencies"
	// ExploreReplica asks how many replicas an object declares, and what each needs.
	ExploreReplica OperationType = "ExploreReplica"
	// ExploreComponents asks for the kinds of pods that an object runs, each with its replicas and what each replica needs.
	ExploreComponents OperationType = "ExploreComponents"
	// ExploreReplicaRevising asks for the object with another number of replicas.
	ExploreReplicaRevising OperationType = "ExploreReplicaRevising"
	// ExploreStatus asks for the part of an object that is its status.
	ExploreStatus OperationType = "ExploreStatus"
	// ExploreStatusAggregating asks for an object whose status sums up those of its running copies.
	ExploreStatusAggregating OperationType = "ExploreStatusAggregating"
	// AnyOperation in a webhook's rule stands for all operations.
	AnyOperation OperationType = "*"
)
