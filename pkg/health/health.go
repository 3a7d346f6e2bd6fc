// Package health says whether an object is ready, still moving, or failed permanently, and what it waits for.
package health

import (
	"fmt"

	"kudo.dev/kudo/pkg/text"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State is what an object's own fields say of it. The zero value is none of the four: a Result always has one.
type State string

const (
	// Ready objects are done; a step that waits for them may continue.
	Ready State = "Ready"
	// Progressing objects are expected to become ready by themselves.
	Progressing State = "Progressing"
	// Failed objects do not become ready by waiting, only by a change of spec or by replacing them.
	Failed State = "Failed"
	// Unknown objects cannot be judged, since a field that decides has the wrong type. Waiting may help: the next
	// version of the object may be well-formed.
	Unknown State = "Unknown"
)

// Result is the state of an object and the reason.
type Result struct {
	// State of the object.
	State State
	// Serving is set if an object that progresses serves as its spec says: only pods that it does not need any more have not ended.
	Serving bool
	// External is set if the interpreter has judged, and not a rule of this package.
	External bool
	// Message says what is waited for, or what failed. It does not name the object, is stable as long as nothing
	// happens (no times, no random order), and is empty for Ready. It has at most 300 characters.
	Message string
}

// check is the rule of a kind.
type check func(object *unstructured.Unstructured) Result

// ruleFor goes by group and kind: any version has the same rule. A kind that is not here is ready once it is applied,
// unless it reports conditions or an observed generation (see checkOther).
//
// Sources: KUDO's rules, as docs/design/engine.md 16 to 18 mends them.
func ruleFor(kind schema.GroupKind) check {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "extensions", Kind: "Deployment"}:
		return typed(checkDeployment)
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return typed(checkStatefulSet)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "extensions", Kind: "DaemonSet"}:
		return typed(checkDaemonSet)
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "extensions", Kind: "ReplicaSet"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return typed(checkReplicaSet)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return typed(checkJob)
	case schema.GroupKind{Kind: "Pod"}:
		return typed(checkPod)
	case schema.GroupKind{Kind: "Service"}:
		return typed(checkService)
	case schema.GroupKind{Kind: "Namespace"}:
		return typed(checkNamespace)
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return typed(checkClaim)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return typed(checkCustomResourceDefinition)
	case schema.GroupKind{Group: "kudo.dev", Kind: "Instance"}:
		return typed(checkInstance)
	default:
		return checkOther
	}
}

// Check judges a live object by its own fields. It reads nothing else and changes nothing.
func Check(object *unstructured.Unstructured) Result {
	if object == nil || len(object.Object) == 0 {
		return Result{State: Unknown, Message: "is empty"}
	}
	if isDeleted(object) {
		return progressing("is being deleted")
	}
	result := ruleFor(object.GroupVersionKind().GroupKind())(object)
	result.Message = text.Plain(result.Message, maxMessage)
	return result
}

// isDeleted looks at the bare field: one that is no valid time still says that the object goes.
func isDeleted(object *unstructured.Unstructured) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, "metadata", "deletionTimestamp")
	return err == nil && found && value != nil && value != ""
}

// typed makes a check of a rule over the fields that it needs. T declares these fields only, so that a field that
// decides nothing, malformed or large, costs nothing.
func typed[T any](rule func(*T) Result) check {
	return func(object *unstructured.Unstructured) Result {
		var fields T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &fields); err != nil {
			return unknown("has a malformed field: %v", err)
		}
		return rule(&fields)
	}
}

func ready() Result { return Result{State: Ready} }

func progressing(format string, args ...any) Result {
	return Result{State: Progressing, Message: fmt.Sprintf(format, args...)}
}

func failed(format string, args ...any) Result {
	return Result{State: Failed, Message: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Result {
	return Result{State: Unknown, Message: fmt.Sprintf(format, args...)}
}

// maxMessage is the longest message in bytes: it goes into conditions and events.
const maxMessage = 300
