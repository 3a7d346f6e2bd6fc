package lua

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/lua/sandbox"
	"kudo.dev/kudo/pkg/explore/pods"
	"kudo.dev/kudo/pkg/text"
)

// maxMessage is the longest message of a script, in characters.
const maxMessage = 300

// resultsOf is how many values the function of an operation returns.
func resultsOf(operation explore.Operation) int {
	switch operation {
	case explore.Healthy:
		return 3
	case explore.Replica:
		return 2
	}
	return 1
}

// answerOf makes an answer of what the function of an operation returned for its arguments.
func answerOf(operation explore.Operation, results []sandbox.Value, arguments []any) (answer explore.Answer, err error) {
	name := entries[operation].Name
	switch operation {
	case explore.Healthy:
		return healthAnswer(name, results)
	case explore.Replica:
		answer.Replicas, err = replicas(name, results[0])
		if err != nil || results[1].IsNil() {
			return answer, err
		}
		answer.Requirements = &v1alpha1.ReplicaRequirements{}
		return answer, decode(results[1], answer.Requirements, name+"'s requirements")
	case explore.Dependencies:
		return answer, decodeList(results[0], &answer.Dependencies, name)
	case explore.Components:
		return answer, decodeList(results[0], &answer.Components, name)
	case explore.Status:
		answer.Status, err = status(name, results[0], arguments[0])
		return answer, err
	}
	answer.Object, err = object(name, results[0], arguments)
	return answer, err
}

// healthAnswer makes an answer of a boolean, a message and an outcome.
func healthAnswer(name string, results []sandbox.Value) (answer explore.Answer, err error) {
	healthy, ok := results[0].Bool()
	if !ok {
		return answer, fmt.Errorf("%s returned a %s: want a boolean", name, results[0].Type())
	}
	answer.Healthy = healthy
	if message, ok := results[1].Text(); ok && !answer.Healthy {
		answer.Message = shortMessage(message)
	}
	if results[2].IsNil() {
		return answer, nil
	}
	outcome, ok := results[2].Text()
	if !ok {
		return answer, fmt.Errorf("%s returned a %s as its third value: want Healthy, Progressing or Failed", name, results[2].Type())
	}
	return answer, answer.SetOutcome(v1alpha1.HealthOutcome(outcome))
}

// object is a table with text keys. Its empty tables are what the arguments have in their place.
func object(name string, value sandbox.Value, arguments []any) (*unstructured.Unstructured, error) {
	if !value.IsTable() {
		return nil, fmt.Errorf("%s returned a %s: want an object", name, value.Type())
	}
	made, err := value.JSON(arguments...)
	if err != nil {
		return nil, err
	}
	fields, ok := made.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s returned a list: want an object", name)
	}
	return &unstructured.Unstructured{Object: fields}, nil
}

// status is a table or nil. Its empty tables are what the object's status has in their place.
func status(name string, value sandbox.Value, object any) (any, error) {
	switch {
	case value.IsNil():
		return nil, nil
	case value.IsTable():
		fields, _ := object.(map[string]any)
		return value.JSON(fields["status"])
	}
	return nil, fmt.Errorf("%s returned a %s: want a table or nil", name, value.Type())
}

func replicas(name string, value sandbox.Value) (int32, error) {
	n, ok := value.Number()
	if !ok {
		return 0, fmt.Errorf("%s returned a %s: want a number of replicas", name, value.Type())
	}
	if n < 0 || n > 1<<31-1 || float64(int32(n)) != n {
		return 0, fmt.Errorf("%s returned %s replicas: want a whole number from 0 to %d", name, value, 1<<31-1)
	}
	return int32(n), nil
}

// decode converts a result to a Go value.
func decode(value sandbox.Value, into any, what string) error {
	made, err := value.JSON()
	if err != nil {
		return err
	}
	if err := pods.CheckQuantities(made); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	text, err := json.Marshal(made)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// decodeList is decode for a list; nil and an empty table are an empty list.
func decodeList(value sandbox.Value, into any, name string) error {
	if value.IsNil() || value.IsEmpty() {
		return nil
	}
	return decode(value, into, name)
}

// shortMessage is the first line of a message, bounded and without control characters: messages go to conditions.
func shortMessage(message string) string {
	first, _, _ := strings.Cut(message, "\n")
	runes := []rune(text.Plain(first, len(first)))
	if len(runes) > maxMessage {
		return string(runes[:maxMessage-1]) + "…"
	}
	return string(runes)
}
