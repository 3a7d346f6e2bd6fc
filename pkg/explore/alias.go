package explore

import (
	"fmt"
	"strings"
)

// ParseOperation understands the names of operations, and the short ones that Karmada's interpreter framework has for
// them: Retain, InterpretReplica, ReviseReplica, InterpretStatus, AggregateStatus, InterpretHealth,
// InterpretDependency and InterpretComponent. Case does not matter.
func ParseOperation(name string) (Operation, error) {
	switch strings.TrimPrefix(strings.ToLower(name), "explore") {
	case "packing", "pack":
		return Packing, nil
	case "retaining", "retain", "retention":
		return Retaining, nil
	case "healthy", "health", "interprethealth":
		return Healthy, nil
	case "dependencies", "dependency", "interpretdependency", "getdependencies":
		return Dependencies, nil
	case "replica", "replicas", "interpretreplica", "getreplicas":
		return Replica, nil
	case "components", "component", "interpretcomponent", "getcomponents":
		return Components, nil
	case "replicarevising", "revisereplica", "replicarevision":
		return ReplicaRevising, nil
	case "status", "interpretstatus", "reflectstatus", "statusreflection":
		return Status, nil
	case "statusaggregating", "aggregatestatus", "statusaggregation":
		return StatusAggregating, nil
	}
	return "", fmt.Errorf("operation %q is unknown: use one of %v", name, Operations())
}
