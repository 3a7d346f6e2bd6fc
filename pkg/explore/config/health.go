package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/fields"
	"kudo.dev/kudo/pkg/text"
)

// Bounds of what an answer quotes of an object, in bytes.
const (
	maxValue   = 64
	maxMessage = 512
)

// healthRule is a parsed v1alpha1.HealthRule.
type healthRule struct {
	spec           *v1alpha1.HealthRule
	field, message *fields.Path
}

// parseHealth parses the rule in a field of a Config.
func parseHealth(place string, spec *v1alpha1.HealthRule) (*healthRule, error) {
	h := &healthRule{spec: spec}
	for _, path := range []struct {
		name, text string
		into       **fields.Path
	}{{"field", spec.Field, &h.field}, {"message", spec.Message, &h.message}} {
		if path.text == "" {
			continue
		}
		parsed, err := fields.ParseValue(path.text)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", place, path.name, err)
		}
		*path.into = &parsed
	}
	switch conditions := spec.Conditions; {
	case conditions == nil && h.field == nil:
		return nil, fmt.Errorf("%s: conditions or field must be set", place)
	case conditions != nil && len(conditions.Healthy) == 0:
		return nil, fmt.Errorf("%s.conditions.healthy: name the conditions that a healthy object has, such as Ready", place)
	case h.field != nil && len(spec.Healthy) == 0:
		return nil, fmt.Errorf("%s.healthy: name the values of %s that a healthy object has", place, spec.Field)
	case h.field == nil && len(spec.Healthy)+len(spec.Failed) > 0:
		return nil, fmt.Errorf("%s.field: name the field that has the values of healthy and failed, such as {.status.phase}", place)
	}
	for _, value := range spec.Healthy {
		if slices.Contains(spec.Failed, value) {
			return nil, fmt.Errorf("%s.failed: %q is in healthy, too: leave it in one list", place, value)
		}
	}
	return h, nil
}

// answer returns the health of an object:
//
//	status.observedGeneration is older       progressing
//	a condition or the value says so         failed
//	all conditions and the value say so      healthy
//	else                                     progressing
func (h *healthRule) answer(object *unstructured.Unstructured) explore.Answer {
	generation := object.GetGeneration()
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if found && err == nil && observed < generation {
		return explore.Answer{
			Message: fmt.Sprintf("its controller has not seen generation %d yet (observedGeneration is %d)", generation, observed),
		}
	}
	failure, wait := h.checkConditions(object)
	failed, waits := h.checkField(object)
	failure, wait = slices.Concat(failure, failed), slices.Concat(wait, waits)
	switch message := h.messageOf(object); {
	case len(failure) > 0:
		return explore.Answer{Failed: true, Message: join(failure, message)}
	case len(wait) > 0:
		return explore.Answer{Message: join(wait, message)}
	}
	return explore.Answer{Healthy: true}
}

func join(reasons []string, message string) string {
	if message != "" {
		reasons = append(reasons, message)
	}
	return text.Truncate(strings.Join(reasons, "; "), maxMessage)
}

// messageOf returns the text that the message of the rule names; empty if there is none.
func (h *healthRule) messageOf(object *unstructured.Unstructured) string {
	if h.message == nil {
		return ""
	}
	value, _ := h.message.Get(object.Object)
	message, _ := value.(string)
	return text.Plain(message, maxMessage)
}

// checkConditions returns why the conditions make an object a failed one, and what an object that is not healthy waits for.
func (h *healthRule) checkConditions(object *unstructured.Unstructured) (failure, wait []string) {
	if h.spec.Conditions == nil {
		return nil, nil
	}
	for _, name := range h.spec.Conditions.Failed {
		if c := conditionOf(object, name); c["status"] == "True" {
			failure = append(failure, describe(c))
		}
	}
	for _, name := range h.spec.Conditions.Healthy {
		switch c := conditionOf(object, name); {
		case c == nil:
			wait = append(wait, "there is no condition "+name+" yet")
		case c["status"] != "True":
			wait = append(wait, describe(c))
		}
	}
	return failure, wait
}

// conditionOf returns the condition of a type, or nil. A condition of an older generation does not count.
func conditionOf(object *unstructured.Unstructured, name string) map[string]any {
	all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := all.([]any)
	for _, entry := range list {
		c, _ := entry.(map[string]any)
		if c["type"] != name {
			continue
		}
		if observed, has := c["observedGeneration"].(int64); has && observed != 0 && observed < object.GetGeneration() {
			return nil
		}
		return c
	}
	return nil
}

// describe returns the state of a condition and why it has that state.
func describe(condition map[string]any) string {
	out := fmt.Sprintf("condition %s is %s", plain(condition["type"]), plain(condition["status"]))
	for _, field := range []string{"reason", "message"} {
		if value, _ := condition[field].(string); value != "" {
			out += ": " + text.Plain(value, maxMessage)
		}
	}
	return out
}

// plain returns a scalar as bounded text.
func plain(value any) string {
	scalar, isScalar := scalarOf(value)
	if !isScalar {
		return "no text"
	}
	return text.Plain(scalar, maxValue)
}

// scalarOf returns a text, a number or a boolean as text.
func scalarOf(value any) (string, bool) {
	switch value.(type) {
	case string, int64, float64, bool:
		return fmt.Sprint(value), true
	}
	return "", false
}

// checkField returns why the value of the field makes an object a failed one, and what an object that is not healthy waits for.
func (h *healthRule) checkField(object *unstructured.Unstructured) (failure, wait []string) {
	if h.field == nil {
		return nil, nil
	}
	value, found := h.field.Get(object.Object)
	scalar, isScalar := scalarOf(value)
	switch {
	case !found || value == nil:
		return nil, []string{h.field.String() + " is not set yet"}
	case !isScalar:
		return nil, []string{h.field.String() + " is no text, number or boolean"}
	case slices.Contains(h.spec.Failed, scalar):
		return []string{h.field.String() + " is " + plain(value)}, nil
	case slices.Contains(h.spec.Healthy, scalar):
		return nil, nil
	}
	return nil, []string{fmt.Sprintf("%s is %s (healthy: %s)", h.field, plain(value), strings.Join(h.spec.Healthy, ", "))}
}
