package v1beta1

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Names that packages, their users and KUDO's own objects in the wild depend on.
const (
	// HeritageLabel is on each object that kudo writes; its value is `kudo`.
	HeritageLabel = "heritage"
	// Heritage is the value of HeritageLabel.
	Heritage = "kudo"
	// OperatorLabel names the operator that an object belongs to.
	OperatorLabel = "kudo.dev/operator"
	// InstanceLabel names the Instance that an object belongs to.
	InstanceLabel = "kudo.dev/instance"

	// ReleasingLabel on a Namespace refuses new objects in it for the moments before its deletion.
	ReleasingLabel = "kudo.dev/releasing"
	// HistoryLabel on a ControllerRevision holds the uid of the object whose run it keeps.
	HistoryLabel = "kudo.dev/history-of"
	// SealAnnotation on a ControllerRevision with the label `kudo.dev/history-of` shows that kudo wrote it.
	SealAnnotation = "kudo.dev/seal"

	// PlanAnnotation names the plan that wrote an object last.
	PlanAnnotation = "kudo.dev/plan"
	// PhaseAnnotation names the phase that wrote an object last.
	PhaseAnnotation = "kudo.dev/phase"
	// StepAnnotation names the step that wrote an object last.
	StepAnnotation = "kudo.dev/step"
	// PlanUIDAnnotation holds the uid of the run that wrote an object last.
	PlanUIDAnnotation = "kudo.dev/last-plan-execution-uid"
	// OperatorVersionAnnotation on a pod template holds the `operatorVersion` of the package, so that an upgrade replaces the pods.
	OperatorVersionAnnotation = "kudo.dev/operator-version"
	// DependenciesHashAnnotation stands on pod templates whose pods read ConfigMaps or Secrets: a change of
	// these changes the hash, and so restarts the pods.
	DependenciesHashAnnotation = "kudo.dev/dependencies-hash"
	// WithheldAnnotation on an object whose pod template lacks kudo's metadata, since an Instance has taken the object over without
	// replacing its pods, holds the hash of the ConfigMaps and Secrets that the pods read. A change of these replaces the pods.
	WithheldAnnotation = "kudo.dev/withheld-hash"
	// SkipHashAnnotation on a ConfigMap or Secret keeps it out of the dependencies hash.
	SkipHashAnnotation = "kudo.dev/skip-hash-calculation"
	// KeepAnnotation on an object keeps it, whatever its value is but `false`: no plan deletes it, and it has no Instance as its
	// controller, so that it stays when the Instance is deleted. An Instance of the same name takes it over.
	KeepAnnotation = "kudo.dev/keep"
	// DependenciesAnnotation on a rendered object says what a task does before it writes the object, if an object that it depends on is
	// missing: `await` lets the task wait, and `refuse` ends the plan. Without the annotation, the task writes and says what is missing.
	DependenciesAnnotation = "kudo.dev/dependencies"
	// HelmResourcePolicyAnnotation is Helm's; its value `keep` means the same as KeepAnnotation.
	HelmResourcePolicyAnnotation = "helm.sh/resource-policy"
	// FromHelmLabel on a Secret of a release of Helm that is set aside names the Instance that has taken over the objects of the release.
	FromHelmLabel = "kudo.dev/from-helm"
	// SuspendedAnnotation marks objects whose replicas were set to none since their Instance is suspended.
	SuspendedAnnotation = "kudo.dev/suspended"
	// VersionContentAnnotation on an Instance is the content digest that its OperatorVersion must have, `sha256:<hex>`: plans of another
	// content do not run. A plan sets it on the Instance of a dependency that the package has locked.
	VersionContentAnnotation = "kudo.dev/operator-version-content"
	// LastAppliedAnnotation was written by KUDO up to v0.19 on each object it applied.
	LastAppliedAnnotation = "kudo.dev/last-applied-configuration"
	// PrivilegedLabel on a Namespace, set to true, lets Instances in it that name no ServiceAccount write with the rights of
	// kudo. Setting it needs the verb install on operatorversions for the whole cluster.
	PrivilegedLabel = "kudo.dev/privileged"

	// VersionsLabel on a Namespace, set to private, keeps its OperatorVersions from Instances of other namespaces.
	VersionsLabel = "kudo.dev/versions"
	// PrivateVersions is the value of VersionsLabel.
	PrivateVersions = "private"

	// MetricsLabel on a Namespace, set to true, lets its pods connect to the metrics of the manager, if the NetworkPolicy of kudo is
	// installed.
	MetricsLabel = "kudo.dev/metrics"

	// AdoptAnnotation on an Instance lets its plans take over objects that no controller owns.
	AdoptAnnotation = "kudo.dev/adopt"
	// RestoredAnnotation on an Instance, set to true when the Instance is created, says that a restore has created the objects of its
	// plan deploy, too: nothing runs if they are all there and equal. It means nothing once a run is recorded.
	RestoredAnnotation = "kudo.dev/restored"
	// CancelAnnotation on an Instance asks to end the run whose uid is its value.
	CancelAnnotation = "kudo.dev/cancel-run"
	// RetryAnnotation on an Instance asks to run again what the failed run of this uid did.
	RetryAnnotation = "kudo.dev/retry-run"
	// RequestedByAnnotation on an Instance holds a seal, and the name of the user who wrote spec last, with that of the client if it gives
	// one. Kudo's webhook writes it; a value whose seal does not fit counts for nothing.
	RequestedByAnnotation = "kudo.dev/requested-by"
	// RunRequestedByAnnotation on an Instance holds a seal, and the name of the user who asked last to cancel or retry a run. Kudo's
	// webhook writes it; a value whose seal does not fit counts for nothing.
	RunRequestedByAnnotation = "kudo.dev/run-requested-by"

	// ManagedAnnotation on a shared object says, by the value "true", that kudo created it and may delete it when no
	// Installation holds it any more. A client that removes the annotation takes the object over.
	ManagedAnnotation = "kudo.dev/managed"
	// ForceReleaseAnnotation on an OperatorVersion or Installation, with the value "true", lets its deletion destroy what
	// is kept otherwise: CustomResourceDefinitions with custom resources, namespaces with content, claims.
	ForceReleaseAnnotation = "kudo.dev/force-release"
	// LeaveUsersAnnotation on an OperatorVersion that is being deleted, with the value "true", has it deleted although Instances
	// use it. What it has installed is held for these Instances by its Installation. On an OperatorVersion that is not being
	// deleted it means nothing. Setting it needs the verb delete on the OperatorVersion.
	LeaveUsersAnnotation = "kudo.dev/leave-users"

	// InstallationFinalizer holds an Installation until its objects have been released.
	InstallationFinalizer = "kudo.dev/installation"
	// OperatorVersionFinalizer holds an OperatorVersion until its Installation is deleted.
	OperatorVersionFinalizer = "kudo.dev/operatorversion"
	// PlacementFinalizer holds an Instance of a hub until no cluster has a copy of it.
	PlacementFinalizer = "kudo.dev/placement"
	// CleanupFinalizer holds an Instance until its cleanup plan has ended.
	CleanupFinalizer = "kudo.dev.instance.cleanup"
)

// Plan names with a meaning of their own.
const (
	// DeployPlan runs when an Instance is created.
	DeployPlan = "deploy"
	// UpdatePlan runs when parameters without a trigger change.
	UpdatePlan = "update"
	// UpgradePlan runs when the OperatorVersion of an Instance changes.
	UpgradePlan = "upgrade"
	// CleanupPlan runs when an Instance is deleted. It cannot be asked for.
	CleanupPlan = "cleanup"
)

// Task kinds.
const (
	ApplyTask        = "Apply"
	DeleteTask       = "Delete"
	ToggleTask       = "Toggle"
	DummyTask        = "Dummy"
	PipeTask         = "Pipe"
	KudoOperatorTask = "KudoOperator"
)

// Condition types of an Instance, and their reasons.
const (
	// ReadyCondition is the one condition that an idle Instance has.
	ReadyCondition = "Ready"
	// ReconcilingCondition is there while a plan runs or is queued.
	ReconcilingCondition = "Reconciling"
	// CRDsReadyCondition is there, and false, while a plan waits for the CustomResourceDefinitions of the Instance.
	CRDsReadyCondition = "CRDsReady"
	// StalledCondition is there while the last run has failed permanently.
	StalledCondition = "Stalled"
	// ScheduleFailedCondition is there while the last run of a schedule has failed, or a schedule cannot run its plan.
	ScheduleFailedCondition = "ScheduleFailed"
	// DeadlineIgnoredCondition is there while a deadline has no effect, since it is invalid.
	DeadlineIgnoredCondition = "DeadlineIgnored"
	// HeldCondition is there while a hub has not released the Instance that it has placed.
	HeldCondition = "Held"

	ReasonResourcesReady          = "ResourcesReady"
	ReasonResourceNotReady        = "ResourceNotReady"
	ReasonResourceFailed          = "ResourceFailed"
	ReasonPlanInProgress          = "PlanInProgress"
	ReasonPlanInFatalError        = "PlanInFatalError"
	ReasonOperatorVersionNotFound = "OperatorVersionNotFound"
	ReasonInvalidSpec             = "InvalidSpec"
	ReasonWaitingForInstallPlan   = "WaitingForInstallPlan"
	ReasonWaitingForCRDs          = "WaitingForCRDs"
	ReasonWaitingForDeletion      = "WaitingForDeletion"
	ReasonWaitingForParameters    = "WaitingForParameters"
	ReasonServiceAccountNotFound  = "ServiceAccountNotFound"
	ReasonPackageNotVerified      = "PackageNotVerified"
	ReasonHistoryKeyMissing       = "HistoryKeyMissing"
	ReasonRecordNameTaken         = "RecordNameTaken"
	ReasonRecordFormatUnknown     = "RecordFormatUnknown"
	ReasonObjectsNotRestored      = "ObjectsNotRestored"
	ReasonScheduledRunFailed      = "ScheduledRunFailed"
	ReasonInvalidSchedule         = "InvalidSchedule"
	ReasonInvalidDeadline         = "InvalidDeadline"
	ReasonWaitingForRelease       = "WaitingForRelease"
)

// Reasons of the condition Ready of an Instance that a hub has placed on clusters.
const (
	ReasonMembersReady   = "MembersReady"
	ReasonMemberFailed   = "MemberFailed"
	ReasonMemberNotReady = "MemberNotReady"
	ReasonMembersLagging = "MembersLagging"
	ReasonMembersLost    = "MembersLost"
	ReasonWaveInProgress = "WaveInProgress"
	ReasonWavePaused     = "WavePaused"
	ReasonWaveStopped    = "WaveStopped"
	ReasonNotScheduled   = "NotScheduled"
	ReasonDecisionHeld   = "DecisionHeld"
	ReasonEngineSilent   = "EngineSilent"
	ReasonPolicyRefused  = "PolicyRefused"
	ReasonForeignPolicy  = "ForeignPolicy"
)

// Condition types of an OperatorVersion and of an Installation, and their reasons.
const (
	// InstalledCondition is true once the install plan has succeeded.
	InstalledCondition = "Installed"
	// VerifiedCondition says whether the signatures meet the PackagePolicies. It is there while the cluster has policies.
	VerifiedCondition = "Verified"
	// ReleasedCondition is false while a deletion waits, and says for what.
	ReleasedCondition = "Released"

	ReasonInstallPlanComplete       = "InstallPlanComplete"
	ReasonInstallPlanInProgress     = "InstallPlanInProgress"
	ReasonInstallPlanFailed         = "InstallPlanFailed"
	ReasonReleasing                 = "Releasing"
	ReasonInUse                     = "InUse"
	ReasonCustomResourcesExist      = "CustomResourcesExist"
	ReasonNamespaceNotEmpty         = "NamespaceNotEmpty"
	ReasonPersistentVolumeClaimKept = "PersistentVolumeClaimKept"
)

// Reasons of the events that the engine records on an Instance.
const (
	EventPlanRequested          = "PlanRequested"
	EventPlanStarted            = "PlanStarted"
	EventPlanFinished           = "PlanFinished"
	EventPlanFailed             = "PlanFailed"
	EventScheduleFailed         = "ScheduleFailed"
	EventDeadlineExceeded       = "DeadlineExceeded"
	EventDeadlineIgnored        = "DeadlineIgnored"
	EventServiceAccountMissing  = "ServiceAccountMissing"
	EventPackageNotVerified     = "PackageNotVerified"
	EventPackageVerified        = "PackageVerified"
	EventPrivilegedMode         = "PrivilegedMode"
	EventPlanQueued             = "PlanQueued"
	EventPlanCancelled          = "PlanCancelled"
	EventInvalidOperatorVersion = "InvalidOperatorVersion"
	EventInvalidSpec            = "InvalidSpec"
	EventParametersMissing      = "ParametersMissing"
	EventHistoryKeyMissing      = "HistoryKeyMissing"
	EventRecordUnusable         = "RecordUnusable"
	EventRecordNameTaken        = "RecordNameTaken"
	EventRecordFormatUnknown    = "RecordFormatUnknown"
	EventResourceIgnored        = "ResourceIgnored"
	EventSecretKept             = "SecretKept"
	EventForeignObjectKept      = "ForeignObjectKept"
	EventQuotaWouldExceed       = "QuotaWouldExceed"
	EventFieldDropped           = "FieldDropped"
	EventResourcePruned         = "ResourcePruned"
	EventResourceKept           = "ResourceKept"
	EventObjectsReadopted       = "ObjectsReadopted"
	EventResourceNotKept        = "ResourceNotKept"
	EventCleanupSkipped         = "CleanupSkipped"
	EventUnknownParameter       = "UnknownParameter"
	EventRestoreStarted         = "RestoreStarted"
	EventInstanceRestored       = "InstanceRestored"
	EventObjectsNotRestored     = "ObjectsNotRestored"
	EventStatusReset            = "StatusReset"
	EventObjectChanged          = "ObjectChanged"
	EventObjectMismatch         = "ObjectMismatch"
	EventReleaseBlocked         = "ReleaseBlocked"
	EventMigrationStarted       = "MigrationStarted"
	EventMigrationFinished      = "MigrationFinished"
	EventMigrationBlocked       = "MigrationBlocked"
	EventCRDsFetched            = "CRDsFetched"
	EventCRDsStale              = "CRDsStale"
	EventCRDsNotInstalled       = "CRDsNotInstalled"
	EventWaveOpened             = "WaveOpened"
	EventWaveStopped            = "WaveStopped"
)

// CommandManagerPrefix begins the names of the field managers by which the plugin writes Instances. The words of the command follow, such
// as plan/retry.
const CommandManagerPrefix = "kubectl-kudo/"

// FieldManagerPrefix begins the names of the field managers of the Instances in a namespace.
func FieldManagerPrefix(namespace string) string { return "kudo/" + namespace + "/" }

// InstanceOfManager returns the Instance that writes as a field manager, and reports whether an Instance does. The manager of a long name
// has the beginning of that name and a digest.
func InstanceOfManager(manager string) (types.NamespacedName, bool) {
	parts := strings.Split(manager, "/")
	if len(parts) != 3 || parts[0] != "kudo" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: parts[1], Name: parts[2]}, true
}
