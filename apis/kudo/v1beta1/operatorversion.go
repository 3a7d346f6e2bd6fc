package v1beta1

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// +kubebuilder:validation:XValidation:rule="!has(self.installPlan) || self.installPlan.size() == 0 || (has(self.plans) && self.installPlan in self.plans)",messageExpression="'there is no plan ' + self.installPlan + ' in spec.plans: correct the name, or leave installPlan out'",message="there is no such plan in spec.plans: correct the name, or leave installPlan out",fieldPath=".installPlan",reason=FieldValueInvalid
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
	// InstallPlan names the plan that installs what all Instances need in the cluster. It runs once for the
	// OperatorVersion, and Instances wait for it. Setting it needs the verb `install` on operatorversions.
	// +optional
	InstallPlan string `json:"installPlan,omitempty"`
	// InstallParameters are values of the install plan that differ from the parameters' defaults. A change runs the
	// install plan again.
	// +optional
	InstallParameters map[string]string `json:"installParameters,omitempty"`
	// InstallPolicy says how objects that others need too are treated.
	// +optional
	InstallPolicy *InstallPolicy `json:"installPolicy,omitempty"`
	// CRDTarball is where the CustomResourceDefinitions of each Instance come from. An Instance may name its own.
	// +optional
	CRDTarball *CRDTarball `json:"crdTarball,omitempty"`
	// Provenance says where the package comes from, and holds its signatures. It is no part of what is signed, and a change of it starts
	// no plan.
	// +optional
	Provenance *Provenance `json:"provenance,omitempty"`
}

// Provenance says where a package comes from. Only its signatures are verified; all else in it is what the creator of the OperatorVersion
// claims, and nothing is decided by it.
type Provenance struct {
	// Source is the reference or URL that the package was installed from.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Source string `json:"source,omitempty"`
	// Manifest is the digest of the manifest of the package in a registry.
	// +optional
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	Manifest string `json:"manifest,omitempty"`
	// Signatures of the package: Sigstore bundles in JSON.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32768
	Signatures []string `json:"signatures,omitempty"`
}

// The bounds of the signatures in a Provenance: how many there are, and the bytes of each.
const (
	MaxSignatures     = 8
	MaxSignatureBytes = 32 << 10
)

// SharedUpdates says who may change an object that several OperatorVersions hold.
// +kubebuilder:validation:Enum="";None;SameOperator
type SharedUpdates string

const (
	// NoSharedUpdates leaves shared objects as they are: one that differs is a mismatch. It is the default.
	NoSharedUpdates SharedUpdates = "None"
	// SameOperatorUpdates lets a version of an operator change what only versions of the same operator hold.
	SameOperatorUpdates SharedUpdates = "SameOperator"
)

// InstallPolicy says how objects that others need too are treated.
type InstallPolicy struct {
	// SharedUpdates: None, the default, or SameOperator, by which a newer version may change an object if every owner of
	// it is a version of the same operator; a CustomResourceDefinition only if the change is safe for what exists.
	// +optional
	SharedUpdates SharedUpdates `json:"sharedUpdates,omitempty"`
}

// InstancePlans are the plans that Instances can run: all but the install plan, which runs with rights that those who
// may write Instances need not have.
func (s *OperatorVersionSpec) InstancePlans() map[string]Plan {
	if s.InstallPlan == "" {
		return s.Plans
	}
	out := maps.Clone(s.Plans)
	delete(out, s.InstallPlan)
	return out
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
	// Pattern is a regular expression (RE2) that the whole value must match. It is for type string, and for values of at
	// most 4096 bytes. An empty value needs none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Pattern string `json:"pattern,omitempty"`
	// MaxLines is how many lines the value may have, for type string; 1 takes line breaks out of templates. A line break at
	// the end begins no line.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxLines *int32 `json:"maxLines,omitempty"`
	// Sensitive values, such as passwords, are not printed in messages and not kept in clear in the history. Give them by
	// parametersFrom: in parameters of the Instance, everybody who may read it sees them.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// IsRequired reports whether the parameter needs a value.
func (p Parameter) IsRequired() bool { return p.Required != nil && *p.Required }

// IsImmutable reports whether the parameter is fixed at creation.
func (p Parameter) IsImmutable() bool { return p.Immutable != nil && *p.Immutable }

// HasDefault reports whether the parameter has a default.
func (p Parameter) HasDefault() bool { return p.Default != nil }

// OperatorVersionStatus is the state of the install plan. Without one there is no state.
type OperatorVersionStatus struct {
	// PlanStatus by plan: the last run of the install plan.
	// +optional
	PlanStatus map[string]PlanStatus `json:"planStatus,omitempty"`
	// Drift lists the objects of the install plan that are not as it wants them, sorted by kind, namespace and name; at most 32. kudo does
	// not overwrite them.
	// +optional
	// +listType=atomic
	Drift []ObjectDrift `json:"drift,omitempty"`
	// AggregatedStatus sums up the install plan.
	// +optional
	AggregatedStatus AggregatedStatus `json:"aggregatedStatus,omitempty"`
	// Conditions: Installed; Stalled while the install plan has failed; Released, false with the reason while a deletion waits for something.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Content is the content digest of that spec: of all that a run reads, without installParameters and provenance.
	// +optional
	Content string `json:"content,omitempty"`
	// Revision is the number of the newest run of the install plan.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// InputsHash is a hash of the install plan's name and parameters that the newest run was started with.
	// +optional
	InputsHash string `json:"inputsHash,omitempty"`
	// Installation names the Installation that holds the objects.
	// +optional
	Installation string `json:"installation,omitempty"`
	// InstallationUID is the uid of the Installation that the newest run was started with.
	// +optional
	InstallationUID types.UID `json:"installationUID,omitempty"`
}

// OperatorVersion is one version of an operator, with all that is needed to run it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=kov,categories=kudo
// +kubebuilder:printcolumn:name="Operator",type=string,JSONPath=`.spec.operator.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="App-Version",type=string,JSONPath=`.spec.appVersion`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.aggregatedStatus.status`
// +kubebuilder:printcolumn:name="Drifted",type=string,JSONPath=`.status.drift[0].name`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.aggregatedStatus.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OperatorVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the content of this version.
	// +optional
	Spec OperatorVersionSpec `json:"spec,omitempty"`
	// Status is the state of the install plan.
	// +optional
	Status OperatorVersionStatus `json:"status,omitempty"`
}

// Installed reports whether Instances may use what the OperatorVersion installs: its install plan has succeeded, or it has
// none.
func (o *OperatorVersion) Installed() bool {
	return o.Spec.InstallPlan == "" || meta.IsStatusConditionTrue(o.Status.Conditions, InstalledCondition)
}

// InstallationName is the name of the OperatorVersion's Installation. The uid keeps it apart from that of a former
// OperatorVersion of the name, which may still be releasing.
func (o *OperatorVersion) InstallationName() string {
	return InstallationName(o.Namespace, o.Name, o.UID)
}

// OperatorVersionList is a list of OperatorVersions.
// +kubebuilder:object:root=true
type OperatorVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatorVersion `json:"items"`
}
