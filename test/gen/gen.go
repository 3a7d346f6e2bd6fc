// Package gen builds fixtures: objects with modifiers.
package gen

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// VersionMod changes an OperatorVersion.
type VersionMod func(*v1beta1.OperatorVersion)

// Version builds an OperatorVersion of operator name.
func Version(namespace, name string, mods ...VersionMod) *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ov.Spec.Operator = corev1.ObjectReference{Kind: "Operator", Name: name}
	ov.Spec.Version = "0.1.0"
	ov.Spec.Templates, ov.Spec.Plans = map[string]string{}, map[string]v1beta1.Plan{}
	for _, mod := range mods {
		mod(ov)
	}
	return ov
}

// Template adds a template.
func Template(name, text string) VersionMod {
	return func(ov *v1beta1.OperatorVersion) { ov.Spec.Templates[name] = text }
}

// ConfigMaps adds templates of n ConfigMaps, and a task that applies them.
func ConfigMaps(task string, n int) VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		var names []string
		for i := range n {
			name := fmt.Sprintf("%s-%d.yaml", task, i)
			ov.Spec.Templates[name] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}-%s-%d\ndata:\n  key: {{ .Params.VALUE | quote }}\n", task, i)
			names = append(names, name)
		}
		Apply(task, names...)(ov)
	}
}

// Apply adds a task that applies templates.
func Apply(name string, resources ...string) VersionMod {
	return Task(name, v1beta1.ApplyTask, v1beta1.TaskSpec{Resources: resources})
}

// Task adds a task.
func Task(name, kind string, spec v1beta1.TaskSpec) VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Tasks = append(ov.Spec.Tasks, v1beta1.Task{Name: name, Kind: kind, Spec: spec})
	}
}

// Param adds a parameter with a default.
func Param(name, value, trigger string) VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name, Default: &value, Trigger: trigger})
	}
}

// Required adds a parameter that needs a value.
func Required(name string) VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		yes := true
		ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: name, Required: &yes})
	}
}

// Serial adds a plan of one serial phase, with a step for each task.
func Serial(plan string, tasks ...string) VersionMod {
	return func(ov *v1beta1.OperatorVersion) {
		phase := v1beta1.Phase{Name: "main", Strategy: v1beta1.Serial}
		for i, task := range tasks {
			phase.Steps = append(phase.Steps, v1beta1.Step{Name: fmt.Sprintf("step-%d", i), Tasks: []string{task}})
		}
		ov.Spec.Plans[plan] = v1beta1.Plan{Strategy: v1beta1.Serial, Phases: []v1beta1.Phase{phase}}
	}
}

// Instance builds an Instance of an OperatorVersion.
func Instance(name string, ov *v1beta1.OperatorVersion, parameters map[string]string) *v1beta1.Instance {
	i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: ov.Namespace, Name: name, Labels: map[string]string{v1beta1.OperatorLabel: ov.Spec.Operator.Name},
	}}
	i.Spec.OperatorVersion = corev1.ObjectReference{Kind: "OperatorVersion", Name: ov.Name}
	i.Spec.Parameters = parameters
	return i
}

// Meta names an object.
func Meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// InstallPlan names the plan that installs.
func InstallPlan(plan string) VersionMod {
	return func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = plan }
}
