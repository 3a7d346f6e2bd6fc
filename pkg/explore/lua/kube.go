package lua

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	apijson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/pkg/explore/lua/sandbox"
	"kudo.dev/kudo/pkg/explore/pods"
)

// quantityCost is how many instructions it takes to read a quantity.
const quantityCost = 10

// kube is the module that scripts of Karmada's interpreter framework use.
var kube = sandbox.Library{Name: "kube", Functions: map[string]sandbox.Function{
	"resourceAdd":             resourceAdd,
	"getResourceQuantity":     resourceQuantity,
	"accuratePodRequirements": podRequirements,
	"getPodDependencies":      podDependencies,
}}

// quantity is an argument as a quantity; nil is none.
func quantity(args sandbox.Arguments, n int) (resource.Quantity, error) {
	if args.IsNil(n) {
		return resource.Quantity{}, nil
	}
	text, err := args.Text(n)
	if err != nil {
		return resource.Quantity{}, err
	}
	args.Spend(quantityCost)
	if err := pods.CheckQuantity(text); err != nil {
		return resource.Quantity{}, &sandbox.ArgumentError{Number: n, Reason: err.Error()}
	}
	made, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, &sandbox.ArgumentError{Number: n, Reason: fmt.Sprintf("%q is no quantity", text)}
	}
	return made, nil
}

// resourceAdd adds quantities, and returns the sum as text.
func resourceAdd(args sandbox.Arguments) (any, error) {
	var sum resource.Quantity
	for i := 1; i <= args.Len(); i++ {
		summand, err := quantity(args, i)
		if err != nil {
			return nil, err
		}
		sum.Add(summand)
	}
	return sum.String(), nil
}

// resourceQuantity returns a quantity as a number.
func resourceQuantity(args sandbox.Arguments) (any, error) {
	made, err := quantity(args, 1)
	return made.AsApproximateFloat64(), err
}

// podTemplate reads a pod template, or a pod: both have metadata and spec.
func podTemplate(args sandbox.Arguments, n int) (*corev1.PodTemplateSpec, error) {
	value, err := args.Table(n)
	if err != nil {
		return nil, err
	}
	if err := pods.CheckQuantities(value); err != nil {
		return nil, &sandbox.ArgumentError{Number: n, Reason: err.Error()}
	}
	fields, ok := value.(map[string]any)
	template := &corev1.PodTemplateSpec{}
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template) != nil {
		return nil, &sandbox.ArgumentError{Number: n, Reason: "is no pod template"}
	}
	return template, nil
}

func podRequirements(args sandbox.Arguments) (any, error) {
	if args.Len() != 1 {
		return nil, fmt.Errorf("accuratePodRequirements takes one argument: a pod template")
	}
	template, err := podTemplate(args, 1)
	if err != nil {
		return nil, err
	}
	requirements := pods.Requirements(&template.Spec)
	if requirements == nil {
		return nil, nil
	}
	return plainJSON(requirements)
}

func podDependencies(args sandbox.Arguments) (any, error) {
	if args.Len() != 2 {
		return nil, fmt.Errorf("getPodDependencies takes two arguments: a pod template and a namespace")
	}
	namespace, err := args.Text(2)
	if err != nil {
		return nil, err
	}
	template, err := podTemplate(args, 1)
	if err != nil {
		return nil, err
	}
	return plainJSON(pods.Dependencies(&template.Spec, namespace))
}

// plainJSON makes maps, lists and int64 of a Go value.
func plainJSON(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var made any
	err = apijson.Unmarshal(text, &made)
	return made, err
}
