// Package lua answers explore operations with scripts. Its sub-package sandbox runs them. What a script may call is in docs/explore.md.
package lua

import (
	"fmt"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
)

// entries are the functions that scripts define, by operation.
var entries = map[explore.Operation]sandbox.Entry{
	explore.Packing: {Name: "Pack", Parameters: []string{"desiredObj"}},
	// Scripts of this family call the second argument by either name.
	explore.Retaining: {
		Name: "Retain", Parameters: []string{"desiredObj", "runtimeObj"}, Aliases: map[string]string{"observedObj": "runtimeObj"},
	},
	explore.Healthy:           {Name: "InterpretHealth", Parameters: []string{"observedObj"}},
	explore.Dependencies:      {Name: "GetDependencies", Parameters: []string{"desiredObj"}},
	explore.Replica:           {Name: "GetReplicas", Parameters: []string{"desiredObj"}},
	explore.Components:        {Name: "GetComponents", Parameters: []string{"desiredObj"}},
	explore.ReplicaRevising:   {Name: "ReviseReplica", Parameters: []string{"desiredObj", "desiredReplica"}},
	explore.Status:            {Name: "ReflectStatus", Parameters: []string{"observedObj"}},
	explore.StatusAggregating: {Name: "AggregateStatus", Parameters: []string{"desiredObj", "statusItems"}},
}

// EntryOf returns the function that a script of an operation defines.
func EntryOf(operation explore.Operation) (sandbox.Entry, error) {
	entry, known := entries[operation]
	if !known {
		return entry, fmt.Errorf("operation %q has no script: use one of %v", operation, explore.Operations())
	}
	return entry, nil
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
	entry, err := EntryOf(operation)
	if err != nil {
		return nil, err
	}
	compiled, err := sandbox.Compile(source, entry, kube)
	if err != nil {
		return nil, err
	}
	return &Script{operation, compiled}, nil
}
