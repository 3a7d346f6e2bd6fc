package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Strategy says whether the members of a plan or phase wait for one another.
type Strategy string

const (
	// Serial members run one after the other.
	Serial Strategy = "serial"
	// Parallel members run side by side. Anything that is not Serial counts as Parallel, as in KUDO.
	Parallel Strategy = "parallel"
)

// OperatorVersionSpec is one version of an operator: its parameters, templates, tasks and plans.
type OperatorVersionSpec struct {
	// Operator names the Operator that this is a version of.
	// +optional
	Operator corev1.ObjectReference `json:"operator,omitempty"`
	// Version of the operator package (semantic version).
	// +optional
	Version string `json:"version,omitempty"`
	// AppVersion is the version of the application that the package runs.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// Templates maps a path below `templates/` to the text of the template.
	// +optional
	Templates map[string]string `json:"templates,omitempty"`
	// Tasks are the named pieces of work that the steps of plans refer to.
	// +optional
	Tasks []Task `json:"tasks,omitempty"`
	// Parameters that an Instance may set.
	// +optional
	Parameters []Parameter `json:"parameters,omitempty"`
	// Plans by name. `deploy` runs when an Instance is created; `update`, `upgrade` and `cleanup` have a meaning of
	// their own; any other plan runs when a parameter names it as trigger, or when it is asked for.
	// +optional
	// +nullable
	Plans map[string]Plan `json:"plans,omitempty"`
	// ConnectionString is not used.
	// +optional
	ConnectionString string `json:"connectionString,omitempty"`
	// UpgradableFrom is not used.
	// +optional
	UpgradableFrom []corev1.ObjectReference `json:"upgradableFrom,omitempty"`
}

// Plan is an ordered list of phases.
type Plan struct {
	// Strategy orders the phases: `serial`, one after the other; anything else, side by side.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Phases of the plan. A plan without phases completes at once.
	// +optional
	Phases []Phase `json:"phases,omitempty"`
}

// Phase is an ordered list of steps.
type Phase struct {
	// Name of the phase, unique in its plan.
	// +optional
	Name string `json:"name,omitempty"`
	// Strategy orders the steps: `serial`, one after the other; anything else, side by side.
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`
	// Steps of the phase.
	// +optional
	Steps []Step `json:"steps,omitempty"`
}

// Step is a list of tasks that are started in order without waiting for one another; the step is done when all are.
type Step struct {
	// Name of the step, unique in its phase.
	// +optional
	Name string `json:"name,omitempty"`
	// Tasks names the tasks of the step, in the order in which they are started.
	// +optional
	Tasks []string `json:"tasks,omitempty"`
}

// Task is a named piece of work.
type Task struct {
	// Name by which steps refer to the task.
	// +optional
	Name string `json:"name,omitempty"`
	// Kind of the task: Apply, Delete, Toggle, Dummy, Pipe or KudoOperator.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Spec holds the fields of the task's kind.
	// +optional
	Spec TaskSpec `json:"spec,omitempty"`
}

// TaskSpec is the union of the fields of all task kinds.
type TaskSpec struct {
	// Resources (Apply, Delete, Toggle) names the templates whose objects are applied or deleted, in this order.
	// +optional
	Resources []string `json:"resources,omitempty"`

	// Parameter (Toggle) is the boolean parameter that decides: true applies the resources, false deletes them.
	// +optional
	Parameter string `json:"parameter,omitempty"`

	// WantErr (Dummy) makes the task fail.
	// +optional
	WantErr bool `json:"wantErr,omitempty"`
	// Fatal (Dummy) makes that failure final.
	// +optional
	Fatal bool `json:"fatal,omitempty"`
	// Done (Dummy) says whether the task is done at once. A Dummy that is not done stays in progress.
	// +optional
	Done bool `json:"done,omitempty"`

	// Pod (Pipe) names the template of the pod that makes the files.
	// +optional
	Pod string `json:"pod,omitempty"`
	// Pipe (Pipe) lists the files that become Secrets or ConfigMaps.
	// +optional
	Pipe []PipeSpec `json:"pipe,omitempty"`

	// Package (KudoOperator) is the operator to install as a dependency.
	// +optional
	Package string `json:"package,omitempty"`
	// AppVersion (KudoOperator) of the dependency.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
	// OperatorVersion (KudoOperator) of the dependency.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// InstanceName (KudoOperator) of the dependency; default `<instance>-<operator>`.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`
	// ParameterFile (KudoOperator) names the template that holds the dependency's parameters as a YAML map.
	// +optional
	ParameterFile string `json:"parameterFile,omitempty"`
}

// PipeSpec is one file of a Pipe task.
type PipeSpec struct {
	// File is the absolute path in the pod. One of file and envFile is set.
	// +optional
	File string `json:"file,omitempty"`
	// EnvFile is the absolute path of a file of KEY=VALUE lines, each of which becomes a key.
	// +optional
	EnvFile string `json:"envFile,omitempty"`
	// Kind of the object that is made: Secret or ConfigMap.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Key by which templates find the object's name in .Pipes.
	// +optional
	Key string `json:"key,omitempty"`
}

// ParameterType is the type of a parameter's value.
type ParameterType string

// The types of parameters. An empty type counts as string.
const (
	StringType  ParameterType = "string"
	IntegerType ParameterType = "integer"
	NumberType  ParameterType = "number"
	BooleanType ParameterType = "boolean"
	ArrayType   ParameterType = "array"
	MapType     ParameterType = "map"
)

// Parameter is a value of the package that an Instance may set.
type Parameter struct {
	// Name of the parameter, by which templates find it in .Params.
	// +optional
	Name string `json:"name,omitempty"`
	// DisplayName is the name shown to people.
	// +optional
	DisplayName string `json:"displayName,omitempty"`
	// Description says what the parameter does.
	// +optional
	Description string `json:"description,omitempty"`
	// Required parameters need a value or a default.
	// +optional
	Required *bool `json:"required,omitempty"`
	// Default is the value of an Instance that sets none. Arrays and maps are written as YAML.
	// +optional
	Default *string `json:"default,omitempty"`
	// Trigger is the plan that a change of the parameter starts; without one it is update, else deploy.
	// +optional
	Trigger string `json:"trigger,omitempty"`
	// Type of the value: string, integer, number, boolean, array or map. Scalars reach templates as strings.
	// +optional
	Type ParameterType `json:"value-type,omitempty"`
	// Immutable parameters cannot be changed once the Instance is created.
	// +optional
	Immutable *bool `json:"immutable,omitempty"`
	// Enum lists the values that are allowed.
	// +optional
	Enum *[]string `json:"enum,omitempty"`
}

// IsRequired tells whether the parameter needs a value.
func (p Parameter) IsRequired() bool { return p.Required != nil && *p.Required }

// IsImmutable tells whether the parameter is fixed at creation.
func (p Parameter) IsImmutable() bool { return p.Immutable != nil && *p.Immutable }

// HasDefault tells whether the parameter has a default.
func (p Parameter) HasDefault() bool { return p.Default != nil }

// OperatorVersionStatus is empty: an OperatorVersion has no state.
type OperatorVersionStatus struct{}

// OperatorVersion is one version of an operator, with all that is needed to run it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kov,categories=kudo
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="App-Version",type=string,JSONPath=`.spec.appVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the content of this version.
	// +optional
	Spec OperatorVersionSpec `json:"spec,omitempty"`
	// Status is empty.
	// +optional
	Status OperatorVersionStatus `json:"status,omitempty"`
}

// OperatorVersionList is a list of OperatorVersions.
// +kubebuilder:object:root=true
type OperatorVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorVersion `json:"items"`
}
