package lua

import (
	"fmt"

	glua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/pkg/explore/pods"
)

// kubeLibrary is the module `kube`, under the names that scripts of Karmada's interpreter framework use.
func (m *machine) kubeLibrary() *glua.LTable {
	return m.state.SetFuncs(m.state.NewTable(), map[string]glua.LGFunction{
		"resourceAdd":             m.resourceAdd,
		"accuratePodRequirements": m.podRequirements,
		"getPodDependencies":      m.podDependencies,
		"getResourceQuantity": func(l *glua.LState) int {
			quantity := m.quantity(l, 1)
			l.Push(glua.LNumber(quantity.AsApproximateFloat64()))
			return 1
		},
	})
}

// quantity is an argument as a quantity; nil is none.
func (m *machine) quantity(l *glua.LState, n int) resource.Quantity {
	value := l.Get(n)
	if value == glua.LNil {
		return resource.Quantity{}
	}
	text := m.checkText(l, n)
	m.meter.spend(l, 10)
	if err := pods.CheckQuantity(text); err != nil {
		l.ArgError(n, err.Error())
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		l.ArgError(n, fmt.Sprintf("%q is no quantity", text))
	}
	return quantity
}

// resourceAdd adds quantities, and gives the sum as text.
func (m *machine) resourceAdd(l *glua.LState) int {
	var sum resource.Quantity
	for i := 1; i <= l.GetTop(); i++ {
		sum.Add(m.quantity(l, i))
	}
	text := sum.String()
	m.meter.text(l, len(text))
	l.Push(glua.LString(text))
	return 1
}

// podTemplate reads a pod template, or a pod: both have metadata and spec.
func (m *machine) podTemplate(l *glua.LState, n int) *corev1.PodTemplateSpec {
	x := &exporter{m: m}
	value, err := x.out(l.CheckTable(n))
	if err != nil {
		l.ArgError(n, err.Error())
	}
	m.meter.spend(l, x.size/16)
	m.meter.grow(l, 2*x.size)
	if err := pods.CheckQuantities(value); err != nil {
		l.ArgError(n, err.Error())
	}
	fields, ok := value.(map[string]any)
	template := &corev1.PodTemplateSpec{}
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, template) != nil {
		l.ArgError(n, "is no pod template")
	}
	return template
}

// pushValue pushes a Go value as a table.
func (m *machine) pushValue(l *glua.LState, value any) int {
	if value == nil {
		l.Push(glua.LNil)
		return 1
	}
	made, err := plainJSON(value)
	if err != nil {
		l.RaiseError("%s", err.Error())
	}
	l.Push(m.must(l, made))
	return 1
}

func (m *machine) podRequirements(l *glua.LState) int {
	if l.GetTop() != 1 {
		l.RaiseError("accuratePodRequirements takes one argument: a pod template")
	}
	requirements := pods.Requirements(&m.podTemplate(l, 1).Spec)
	if requirements == nil {
		return m.pushValue(l, nil)
	}
	return m.pushValue(l, requirements)
}

func (m *machine) podDependencies(l *glua.LState) int {
	if l.GetTop() != 2 {
		l.RaiseError("getPodDependencies takes two arguments: a pod template and a namespace")
	}
	namespace := m.checkText(l, 2)
	return m.pushValue(l, pods.Dependencies(&m.podTemplate(l, 1).Spec, namespace))
}
