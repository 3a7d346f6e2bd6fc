package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config defines answers about kinds of objects by lists of fields and by Lua scripts. Two Configs must not answer the same
// operation for the same kind.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kcfg,categories=kudo
// +kubebuilder:printcolumn:name="Retains",type=string,JSONPath=`.spec.retentions[*].kind`
// +kubebuilder:printcolumn:name="Explores",type=string,JSONPath=`.spec.explorations[*].kind`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Config struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the fields and scripts.
	// +required
	Spec ConfigSpec `json:"spec"`
	// Status says whether the scripts can be used. kudo writes it.
	// +optional
	Status ConfigStatus `json:"status,omitzero"`
}

// ConfigList is a list of Configs.
// +kubebuilder:object:root=true
type ConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Config `json:"items"`
}

// ConfigStatus is what kudo has seen of a Config.
type ConfigStatus struct {
	// Conditions of the Config. `Ready` is false if a script or a field cannot be used; the message names it.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ConfigSpec holds what a Config says about kinds.
type ConfigSpec struct {
	// Retentions say which values of live objects are kept when kudo writes them.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=256
	Retentions []LocalValueRetention `json:"retentions,omitempty"`
	// Explorations answer the other questions that kudo asks about objects.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=256
	Explorations []Exploration `json:"explorations,omitempty"`
}

// LocalValueRetention says which values of the live objects of a kind are kept: first those of the fields, then what
// the script makes of the result.
// +kubebuilder:validation:XValidation:rule="(has(self.fields) && self.fields.size() > 0) || (has(self.retentionLua) && self.retentionLua.size() > 0)",message="fields or retentionLua must be set"
type LocalValueRetention struct {
	// APIVersion of the objects, such as `apps/v1`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Fields are kept as the live object has them. Each is a JSONPath, such as `{.spec.replicas}` or
	// `{.spec.template.spec.containers[*].resources}`. `..`, filters and slices are refused. Entries of a list are
	// paired by the keys that the Kubernetes API has for them, else by a unique name; if there is neither, the list is
	// kept as a whole.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Fields []string `json:"fields,omitempty"`
	// RetentionLua is the body of `function Retain(desiredObj, runtimeObj)`, or Lua that defines this function. It
	// returns the desired object with the values that are kept.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	RetentionLua string `json:"retentionLua,omitempty"`
}

// HealthRule determines from conditions and from the value of a field whether an object is healthy or has failed. If both are set, an
// object is healthy if both say so, and has failed if one says so. An object whose status.observedGeneration is older than its generation
// is neither.
// +kubebuilder:validation:XValidation:rule="has(self.conditions) || has(self.field)",message="conditions or field must be set"
// +kubebuilder:validation:XValidation:rule="has(self.field) == has(self.healthy)",message="field and healthy must be set together"
// +kubebuilder:validation:XValidation:rule="has(self.field) || !has(self.failed)",message="failed needs a field"
type HealthRule struct {
	// Conditions of status.conditions.
	// +optional
	Conditions *HealthConditions `json:"conditions,omitempty"`
	// Field is a JSONPath to a text, a number or a boolean, such as `{.status.phase}`. `..`, `[*]`, filters and slices are refused.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Field string `json:"field,omitempty"`
	// Healthy lists the values of the field that a healthy object has, such as Succeeded or true.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	Healthy []string `json:"healthy,omitempty"`
	// Failed lists the values of the field that a failed object has. A plan that waits for a failed object ends. A plan keeps waiting for an
	// object with a value in neither list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=256
	Failed []string `json:"failed,omitempty"`
	// Message is a JSONPath to a text that says why the object is not healthy, such as `{.status.message}`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// HealthConditions names conditions by their types. A condition with an older observedGeneration does not count.
type HealthConditions struct {
	// Healthy lists the types of conditions, such as Ready. An object is healthy if all of these conditions are True.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=316
	Healthy []string `json:"healthy"`
	// Failed lists the types of conditions, such as Stalled. If one of these conditions is True, the object has failed, and a plan that waits
	// for it ends.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=316
	Failed []string `json:"failed,omitempty"`
}

// Exploration holds a rule for the health of objects of a kind, and scripts for these objects. Each script is the body of a function, or
// Lua that defines this function.
// +kubebuilder:validation:XValidation:rule="!has(self.health) || !has(self.healthLua)",message="health and healthLua exclude each other"
// +kubebuilder:validation:XValidation:rule="has(self.health) || has(self.healthLua) || has(self.replicaLua) || has(self.componentsLua) || has(self.replicaRevisingLua) || has(self.statusLua) || has(self.statusAggregatingLua) || has(self.dependenciesLua) || has(self.packingLua) || has(self.retainingLua)",message="health or at least one script must be set"
type Exploration struct {
	// APIVersion of the objects, such as `apps/v1`.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind of the objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Health says by conditions or by a field which objects are healthy. It excludes healthLua.
	// +optional
	Health *HealthRule `json:"health,omitempty"`
	// HealthLua is `function InterpretHealth(observedObj)`. It returns whether the object is done, and may return
	// a second value, a string that says what it waits for, and a third, Healthy, Progressing or Failed: a plan that waits for a failed
	// object ends.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	HealthLua string `json:"healthLua,omitempty"`
	// ReplicaLua is `function GetReplicas(desiredObj)`. It returns the number of replicas, and what each needs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ReplicaLua string `json:"replicaLua,omitempty"`
	// ComponentsLua is `function GetComponents(desiredObj)`. It returns a list of the kinds of pods that the object runs, each with
	// name, replicas and replicaRequirements, or nil if it has none. Where there are components, they count instead of the replicas.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ComponentsLua string `json:"componentsLua,omitempty"`
	// ReplicaRevisingLua is `function ReviseReplica(desiredObj, desiredReplica)`. It returns the object with that number.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	ReplicaRevisingLua string `json:"replicaRevisingLua,omitempty"`
	// StatusLua is `function ReflectStatus(observedObj)`. It returns the object's status.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	StatusLua string `json:"statusLua,omitempty"`
	// StatusAggregatingLua is `function AggregateStatus(desiredObj, statusItems)`. It returns the object with a status
	// that sums up those of its copies.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	StatusAggregatingLua string `json:"statusAggregatingLua,omitempty"`
	// DependenciesLua is `function GetDependencies(desiredObj)`. It returns a list of objects that the object needs,
	// each with apiVersion, kind, namespace and name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	DependenciesLua string `json:"dependenciesLua,omitempty"`
	// PackingLua is `function Pack(desiredObj)`. It returns the object to apply.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	PackingLua string `json:"packingLua,omitempty"`
	// RetainingLua is `function Retain(desiredObj, observedObj)`. It returns the desired object with the values of the
	// observed one that are kept. For one kind, it excludes a retention.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	RetainingLua string `json:"retainingLua,omitempty"`
}
