package v1beta1

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// InstanceSpec is what a user asks of an Instance.
type InstanceSpec struct {
	// OperatorVersion to run. Without a namespace it is looked for in the Instance's own. Naming one of another namespace
	// needs the verb use on it there.
	// +optional
	OperatorVersion corev1.ObjectReference `json:"operatorVersion,omitempty"`
	// Parameters that differ from the defaults. Arrays and maps are written as YAML.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// ParametersFrom are Secrets and ConfigMaps of the Instance's namespace that give values to parameters. They are
	// watched: a change of a value starts the plan that a change in parameters would. Of several, the last wins; what
	// parameters sets wins over all. Values of Secrets are not kept in clear in status or history. Whoever names one, and the
	// account of the Instance, must be allowed to get it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ParametersFrom []ParametersSource `json:"parametersFrom,omitempty"`
	// PlanExecution asks for a plan by hand.
	// +optional
	PlanExecution PlanExecution `json:"planExecution,omitempty"`
	// Schedules run plans at times. A plan that is due is a request like planExecution, with the parameters and the account that the
	// Instance has then. Nothing is due before the first deploy is complete, while the Instance is suspended or being deleted, or while an
	// upgrade has not been completed. A run of a schedule does not change the condition Ready; see the condition ScheduleFailed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Schedules []Schedule `json:"schedules,omitempty"`
	// Deadlines bound how long plans and steps may take. They give no rights beyond those of `plan cancel`, and changing them starts no plan:
	// the running plan heeds them at once. See the condition DeadlineIgnored.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Deadlines []Deadline `json:"deadlines,omitempty"`
	// Suspend sets the replicas of all that the Instance and its children run to none, by its plan update, else deploy; taken
	// back, the same plan brings them back.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// ServiceAccountName names a ServiceAccount of the Instance's namespace, with whose rights the plans read, write and
	// delete objects; default is kudo, or the account that an administrator has chosen. Whoever makes the Instance, or changes
	// its account or version, needs the verb use on the account. A change counts from the next run on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// CRDTarball is where the CustomResourceDefinitions that the Instance needs come from; default is the
	// OperatorVersion's. Setting it needs the verb `install` on operatorversions.
	// +optional
	CRDTarball *CRDTarball `json:"crdTarball,omitempty"`
	// CRDTarballSignatures are signatures of crdTarball, for PackagePolicies that require them: Sigstore bundles in JSON, which `kubectl kudo
	// package sign --crds` makes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32768
	CRDTarballSignatures []string `json:"crdTarballSignatures,omitempty"`
	// Placement says on which clusters the Instance runs. Without it, the Instance runs where it is. It cannot be added to an Instance that
	// has run plans.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
}

// ParametersSource is a Secret or ConfigMap that gives values to parameters.
type ParametersSource struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// Name of the object, in the Instance's namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Optional tells that the object, or a key of it, may be missing. Otherwise the Instance waits for it.
	// +optional
	Optional bool `json:"optional,omitempty"`
	// Keys maps parameters to the keys of the object that have their values. Without it, each key that is the name of a
	// parameter gives that parameter its value, and other keys are left alone.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Keys map[string]string `json:"keys,omitempty"`
}

// InstanceStatus is what the controller knows of an Instance.
type InstanceStatus struct {
	// PlanStatus by plan: the last run of each.
	// +optional
	PlanStatus map[string]PlanStatus `json:"planStatus,omitempty"`
	// Conditions: Ready always; Reconciling, Stalled, CRDsReady, ScheduleFailed, DeadlineIgnored and Held only while they tell something, so
	// that an idle Instance has Ready alone.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Drift lists the objects that other clients have changed since a run wrote them, sorted by kind, namespace and name; at most 32. The
	// next run that applies an object sets it back.
	// +optional
	// +listType=atomic
	Drift []ObjectDrift `json:"drift,omitempty"`
	// AggregatedStatus sums up the plans.
	// +optional
	AggregatedStatus AggregatedStatus `json:"aggregatedStatus,omitempty"`
	// ObservedGeneration is the generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Queue lists the plans that wait for the running one, in order.
	// +optional
	// +listType=atomic
	Queue []QueuedPlan `json:"queue,omitempty"`
	// Schedules lists, for each schedule of spec, its last run and the time of its next one.
	// +optional
	// +listType=map
	// +listMapKey=name
	Schedules []ScheduleStatus `json:"schedules,omitempty"`
	// Baseline is what was last asked for and acted upon; what differs from it in spec starts plans.
	// +optional
	Baseline *Baseline `json:"baseline,omitempty"`
	// Resources lists the objects that the Instance's plans have written, or are about to write.
	// +optional
	// +listType=atomic
	Resources []ResourceStatus `json:"resources,omitempty"`
	// CRDs says which CustomResourceDefinitions were installed for the Instance, and where they came from.
	// +optional
	CRDs *CRDTarballStatus `json:"crds,omitempty"`
	// Members lists the clusters that the Instance is placed on, sorted by name. It is there on a hub only.
	// +optional
	// +listType=map
	// +listMapKey=cluster
	Members []MemberStatus `json:"members,omitempty"`
	// Decision is what the decision of spec.placement has come to. It is there on a hub only.
	// +optional
	Decision *DecisionStatus `json:"decision,omitempty"`
	// Wave is how far the change of this generation has come over the clusters. It is there on a hub only.
	// +optional
	Wave *WaveStatus `json:"wave,omitempty"`
}

// AggregatedStatus sums up the plans of an object.
type AggregatedStatus struct {
	// Status of the plan that runs, else of the last one that ran.
	// +optional
	Status ExecutionStatus `json:"status,omitempty"`
	// ActivePlanName is the plan that runs; empty while idle.
	// +optional
	ActivePlanName string `json:"activePlanName,omitempty"`
	// Message says what is waited for, or what failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// Baseline is what was last asked for and acted upon.
type Baseline struct {
	// OperatorVersion is `<namespace>/<name>` of the OperatorVersion that the last run was started with.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Parameters maps each parameter of spec to a keyed digest of the value that was acted upon.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
	// Generation of the spec that was acted upon; 0 if it is not known.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// ImmutableDefaults holds the defaults of immutable parameters that spec left out when the Instance was created.
	// +optional
	ImmutableDefaults map[string]string `json:"immutableDefaults,omitempty"`
	// PlanName is the last planExecution.planName without a uid that was acted upon.
	// +optional
	PlanName string `json:"planName,omitempty"`
	// RequestUIDs are the last planExecution uids that were acted upon, newest last, at most 32.
	// +optional
	// +listType=atomic
	RequestUIDs []types.UID `json:"requestUIDs,omitempty"`
	// Revision is the number of the newest run.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Snapshot names the ControllerRevision that holds the OperatorVersion of the newest run.
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// ContentHash is a digest of what Snapshot holds, behind the id of the key that it is sealed with.
	// +optional
	ContentHash string `json:"contentHash,omitempty"`
	// Suspended is whether the newest run was started with spec.suspend.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// UpgradeIncomplete is set from the start of an upgrade until its plan is complete: upgrade, or update or deploy if the version has no
	// plan upgrade.
	// +optional
	UpgradeIncomplete bool `json:"upgradeIncomplete,omitempty"`
	// Completed is the version of the package that the last complete run of plan deploy, update or upgrade had. While an upgrade is not
	// complete, it is the version before. Templates see it as `.From`.
	// +optional
	Completed *PackageVersion `json:"completed,omitempty"`
	// RunAs is `<namespace>/<name>` of the ServiceAccount that the newest run writes with.
	// +optional
	RunAs string `json:"runAs,omitempty"`
	// Sensitive is set if an earlier version of kudo has kept sensitive values in the Secret <name>-kudo-parameters, which is
	// to be deleted.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`
}

// PackageVersion is the version of a package.
type PackageVersion struct {
	// OperatorVersion is the version of the package itself.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// AppVersion is the version of its application.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
}

// ResourceStatus is an object that plans have written, or are about to write.
type ResourceStatus struct {
	// APIVersion of the object.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind of the object.
	// +optional
	Kind string `json:"kind,omitempty"`
	// Namespace of the object, empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// UID of the object; empty while it is not written yet.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// Hash of the object as it was rendered.
	// +optional
	Hash string `json:"hash,omitempty"`
	// ObservedVersion is the generation of the object after it was written, or its resourceVersion for kinds without one.
	// +optional
	ObservedVersion string `json:"observedVersion,omitempty"`
	// FieldsHash is a digest of the fields that the Instance owned of the object after it was written. When it owns others,
	// another client has changed some: see drift.
	// +optional
	FieldsHash string `json:"fieldsHash,omitempty"`
	// Status is what a Config, an explore webhook or a rule that comes with kudo takes from the object's status: at most 1 KiB of
	// JSON, and 64 KiB for all objects of the Instance together. It is absent if nothing is taken.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Status *runtime.RawExtension `json:"status,omitempty"`
	// Omitted lists the paths of what is too large for Status, such as `status.nodes` or `status.conditions[].message`: at most 8,
	// then how many more there are. Scalars, and the type, status and reason of conditions, are omitted last. It is absent if Status
	// is complete.
	// +optional
	Omitted []string `json:"omitted,omitempty"`
	// StatusUnknown is set while what is to be taken from the object's status is not known, since a script fails or an explore
	// webhook does not respond. Status is then the last one that was known.
	// +optional
	StatusUnknown bool `json:"statusUnknown,omitempty"`
}

// Instance runs one application as an OperatorVersion says.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ki,categories=kudo
// +kubebuilder:printcolumn:name="Operator-Version",type=string,JSONPath=`.spec.operatorVersion.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.aggregatedStatus.status`
// +kubebuilder:printcolumn:name="Active-Plan",type=string,JSONPath=`.status.aggregatedStatus.activePlanName`
// +kubebuilder:printcolumn:name="Drifted",type=string,JSONPath=`.status.drift[0].name`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.aggregatedStatus.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Instance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	// +optional
	Spec InstanceSpec `json:"spec,omitempty"`
	// Status is what the controller knows.
	// +optional
	Status InstanceStatus `json:"status,omitempty"`
}

// OperatorVersionKey returns the namespace and name of the Instance's OperatorVersion.
func (i *Instance) OperatorVersionKey() types.NamespacedName {
	key := types.NamespacedName{Namespace: i.Spec.OperatorVersion.Namespace, Name: i.Spec.OperatorVersion.Name}
	if key.Namespace == "" {
		key.Namespace = i.Namespace
	}
	return key
}

// Uses reports whether the Instance runs an OperatorVersion, or is about to.
func (i *Instance) Uses(version types.NamespacedName) bool {
	base := i.Status.Baseline
	return i.OperatorVersionKey() == version || base != nil && base.OperatorVersion == version.String()
}

// InstanceList is a list of Instances.
// +kubebuilder:object:root=true
type InstanceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Instance `json:"items"`
}

// UsersOf returns the names of the listed Instances that use an OperatorVersion, sorted by namespace and name.
func (l *InstanceList) UsersOf(version types.NamespacedName) []types.NamespacedName {
	var users []types.NamespacedName
	for n := range l.Items {
		if i := &l.Items[n]; i.Uses(version) {
			users = append(users, types.NamespacedName{Namespace: i.Namespace, Name: i.Name})
		}
	}
	slices.SortFunc(users, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return users
}
