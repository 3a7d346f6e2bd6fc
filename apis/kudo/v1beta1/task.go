package v1beta1

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
	// Once (Pipe) makes the objects only if none of them exists. They are annotated kudo.dev/keep, so that they stay when the Instance is
	// deleted, and an Instance of the same name uses them again.
	// +optional
	Once bool `json:"once,omitempty"`

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
	// EnablingParameter (KudoOperator) is a boolean parameter that decides: true installs the dependency, false deletes it.
	// +optional
	EnablingParameter string `json:"enablingParameter,omitempty"`
	// Content (KudoOperator) is the content digest that the OperatorVersion of the dependency must have, `sha256:<hex>`. The lock file of a
	// package sets it. If empty, the content is not compared.
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +optional
	Content string `json:"content,omitempty"`
	// Shared (KudoOperator) waits for an Instance that others use, too, in place of making one: it has the name of instanceName, is of the
	// operator that package names, and its versions are in the ranges of appVersion and operatorVersion. It is installed, upgraded and
	// deleted by itself.
	// +optional
	Shared bool `json:"shared,omitempty"`
}

// PipeSpec is one file of a Pipe task.
type PipeSpec struct {
	// File is the absolute path in the pod. One of file and envFile is set.
	// +optional
	File string `json:"file,omitempty"`
	// EnvFile is the absolute path of a file in the pod. The file has lines KEY=VALUE. The object gets a key for each line.
	// +optional
	EnvFile string `json:"envFile,omitempty"`
	// Kind of the object that is made: Secret or ConfigMap.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Key by which templates find the object's name in .Pipes.
	// +optional
	Key string `json:"key,omitempty"`
	// NameSuffix names the object `<instance>-<nameSuffix>`, so that tasks of several plans can make the same object. By default, the name
	// consists of the names of instance, plan, phase, step and task, and of the key.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	NameSuffix string `json:"nameSuffix,omitempty"`
}
