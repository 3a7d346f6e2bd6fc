// Package lua answers explore operations with scripts. Its sub-package sandbox runs them. What a script may call is in docs/explore.md.
package lua

import (
	"fmt"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// entryOf returns the function of an operation; its name is empty for an operation that does not exist.
func entryOf(operation explore.Operation) sandbox.Entry {
	desired, observed := []string{"desiredObj"}, []string{"observedObj"}
	switch operation {
	case explore.Packing:
		return sandbox.Entry{Name: "Pack", Parameters: desired}
	case explore.Retaining:
		// Scripts of this family call the second argument by either name.
		return sandbox.Entry{
			Name: "Retain", Parameters: []string{"desiredObj", "runtimeObj"}, Aliases: map[string]string{"observedObj": "runtimeObj"},
		}
	case explore.Healthy:
		return sandbox.Entry{Name: "InterpretHealth", Parameters: observed}
	case explore.Dependencies:
		return sandbox.Entry{Name: "GetDependencies", Parameters: desired}
	case explore.Replica:
		return sandbox.Entry{Name: "GetReplicas", Parameters: desired}
	case explore.Components:
		return sandbox.Entry{Name: "GetComponents", Parameters: desired}
	case explore.ReplicaRevising:
		return sandbox.Entry{Name: "ReviseReplica", Parameters: []string{"desiredObj", "desiredReplica"}}
	case explore.Status:
		return sandbox.Entry{Name: "ReflectStatus", Parameters: observed}
	case explore.StatusAggregating:
		return sandbox.Entry{Name: "AggregateStatus", Parameters: []string{"desiredObj", "statusItems"}}
	}
	return sandbox.Entry{}
}

// Script is a compiled script. It is immutable and may run in many goroutines at once.
type Script struct {
	operation explore.Operation
	compiled  *sandbox.Script
}

// Operation that the script answers.
func (s *Script) Operation() explore.Operation { return s.operation }

// Warnings say what is likely wrong, such as globals that the script does not define, in the order of the script's lines.
func (s *Script) Warnings() []string { return s.compiled.Warnings() }

// Compile reads a script in either form: the body of the operation's function, or a chunk that defines this function.
// Errors give the line. A script has at most 256 KiB, which is also the bound in the schema of Config.
func Compile(operation explore.Operation, source string) (*Script, error) {
	entry := entryOf(operation)
	if entry.Name == "" {
		return nil, fmt.Errorf("operation %q has no script: use one of %v", operation, explore.Operations())
	}
	compiled, err := sandbox.Compile(source, entry, kube())
	if err != nil {
		return nil, err
	}
	return &Script{operation, compiled}, nil
}
