package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of an Instance that a hub has placed on a cluster.
const (
	// ReleasedAnnotation holds the template that the cluster may act upon: `<uid>/<generation>` of the Instance on the hub.
	ReleasedAnnotation = "kudo.dev/released"
	// TemplateAnnotation holds the template that spec comes from, as the backend for cluster inventories writes it.
	TemplateAnnotation = "kudo.dev/template"
	// DefaultedAnnotation lists the parameters, separated by commas, whose defaults the webhook of the cluster has written into spec.
	DefaultedAnnotation = "kudo.dev/defaulted"
	// KarmadaUIDAnnotation holds the uid of the template that spec comes from, as Karmada writes it.
	KarmadaUIDAnnotation = "resourcetemplate.karmada.io/uid"
	// KarmadaGenerationAnnotation holds the generation of the template that spec comes from, as Karmada writes it.
	KarmadaGenerationAnnotation = "resourcetemplate.karmada.io/generation"
)

// Placement says on which clusters an Instance runs. It is read on a hub, and starts no plan there.
// +kubebuilder:validation:XValidation:rule="has(self.clusters) != has(self.decision)",message="has to have exactly one of clusters and decision: name the clusters, or the decision of a scheduler"
type Placement struct {
	// Clusters that the Instance runs on. Adding one needs the verb place on it. Removing one deletes the Instance there.
	// There is either this list, or decision.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Clusters []PlacedCluster `json:"clusters,omitempty"`
	// Decision of a scheduler, which names the clusters in place of the list. Setting it needs the verb place on all clusters. A cluster that
	// the decision does not name any more loses the Instance. All clusters have the weight 1, and no values of their own. Only a hub with
	// the engine inventory reads decisions.
	// +optional
	Decision *DecisionReference `json:"decision,omitempty"`
	// Divide names a parameter, whose value is a whole number that spec.parameters sets. Each cluster gets a share of it, by weight.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Divide string `json:"divide,omitempty"`
	// Include lists Operators and OperatorVersions of the namespace that the clusters need, too: those of children.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Include []IncludedObject `json:"include,omitempty"`
	// Waves order a change: clusters get it one group after the other. Without waves, all get it at once.
	// +optional
	Waves *Waves `json:"waves,omitempty"`
	// OnDelete says what happens in the clusters when the Instance is deleted on the hub: Delete, the default, deletes the Instances there,
	// and Orphan leaves them.
	// +optional
	OnDelete DeletionPolicy `json:"onDelete,omitempty"`
}

// DeletionPolicy says what happens to the placed Instances when that of the hub is deleted.
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletePlaced deletes the placed Instances.
	DeletePlaced DeletionPolicy = "Delete"
	// OrphanPlaced leaves the placed Instances.
	OrphanPlaced DeletionPolicy = "Orphan"
)

// DecisionReference names the decision of a scheduler: one or more PlacementDecisions.
type DecisionReference struct {
	// Name of the decision: the value of the label multicluster.x-k8s.io/decision-key of its PlacementDecisions
	// (multicluster.x-k8s.io/v1alpha1), which are in the namespace of the Instance.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Name string `json:"name"`
}

// PlacedCluster is a cluster that an Instance runs on.
type PlacedCluster struct {
	// Name of the cluster, as the engine of the hub knows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Weight of the cluster when a parameter is divided, 1 to 1000; default is 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight int32 `json:"weight,omitempty"`
	// Parameters that differ in this cluster.
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`
}

// EffectiveWeight returns the weight, which is 1 if none is given.
func (c PlacedCluster) EffectiveWeight() int64 { return max(int64(c.Weight), 1) }

// IncludedObject is another object of the namespace that the clusters of an Instance need.
type IncludedObject struct {
	// Kind of the object.
	// +kubebuilder:validation:Enum=Operator;OperatorVersion
	Kind string `json:"kind"`
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Waves order a change over clusters.
type Waves struct {
	// Groups are names of clusters, in the order in which they get a change. Clusters that no group names are the last group. A name that
	// spec.placement.decision does not choose counts for nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinItems=1
	// +kubebuilder:validation:items:MaxItems=100
	Groups [][]string `json:"groups,omitempty"`
	// Soak is how long the clusters of a group must stay ready before the next group gets the change; default is 0.
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`
	// MaxFailures is how many clusters may fail before the change is stopped; default is 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxFailures int32 `json:"maxFailures,omitempty"`
	// Paused holds the next group.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MemberState is the state of a cluster that an Instance is placed on. The first one that holds counts.
type MemberState string

const (
	// MemberLost is the state of a cluster that the hub cannot reach.
	MemberLost MemberState = "Lost"
	// MemberNotScheduled is the state of a cluster that the engine has not chosen yet.
	MemberNotScheduled MemberState = "NotScheduled"
	// MemberNotApplied is the state of a cluster that has refused the Instance.
	MemberNotApplied MemberState = "NotApplied"
	// MemberSilent is the state of a cluster whose manager reports nothing.
	MemberSilent MemberState = "Silent"
	// MemberHeld is the state of a cluster that may not act upon the change yet.
	MemberHeld MemberState = "Held"
	// MemberLeaving is the state of a cluster that spec.placement does not name any more, and that still has a copy.
	MemberLeaving MemberState = "Leaving"
	// MemberLagging is the state of a cluster that does not have the change yet.
	MemberLagging MemberState = "Lagging"
	// MemberFailed is the state of a cluster whose last plan has failed.
	MemberFailed MemberState = "Failed"
	// MemberProgressing is the state of a cluster in which a plan runs.
	MemberProgressing MemberState = "Progressing"
	// MemberNotReady is the state of a cluster whose Instance is not ready.
	MemberNotReady MemberState = "NotReady"
	// MemberReady is the state of a cluster whose Instance is ready with the present change.
	MemberReady MemberState = "Ready"
)

// MemberStatus is what the hub knows of an Instance in one cluster.
type MemberStatus struct {
	// Cluster that the Instance is placed on.
	Cluster string `json:"cluster"`
	// State of the Instance there: Lost, NotScheduled, NotApplied, Silent, Held, Leaving, Lagging, Failed, Progressing, NotReady or Ready.
	State MemberState `json:"state"`
	// Since is when the state began, by the clock of the hub.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Generation of the Instance on the hub that the cluster has acted upon; 0 if it is not known.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Ready is the condition Ready that the cluster has reported last: True, False or Unknown.
	// +optional
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Reason of the state, or of the condition Ready in the cluster.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people: what is wrong, or what is waited for.
	// +optional
	Message string `json:"message,omitempty"`
	// Plan that runs in the cluster, or that ran last.
	// +optional
	Plan string `json:"plan,omitempty"`
	// PlanStatus of the plan.
	// +optional
	PlanStatus ExecutionStatus `json:"planStatus,omitempty"`
	// OperatorVersion that the cluster runs.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Replicas is the cluster's share of the divided parameter.
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// WaveState is the state of the wave that is open.
type WaveState string

const (
	// WaveOpen is the state while the clusters of the wave get the change.
	WaveOpen WaveState = "Open"
	// WaveSoaking is the state while the clusters of the wave must stay ready.
	WaveSoaking WaveState = "Soaking"
	// WaveStopped is the state after too many clusters have failed.
	WaveStopped WaveState = "Stopped"
	// WavePaused is the state while spec.placement.waves.paused holds the next wave.
	WavePaused WaveState = "Paused"
	// WaveDone is the state after the last wave.
	WaveDone WaveState = "Done"
)

// WaveStatus is how far a change has come.
type WaveStatus struct {
	// Generation of the Instance that is rolled out.
	Generation int64 `json:"generation"`
	// Decision is the fingerprint of the clusters that the decision of spec.placement names, and that the change goes to. It is empty if
	// spec.placement has no decision.
	// +optional
	Decision string `json:"decision,omitempty"`
	// Index of the wave, from 1.
	Index int32 `json:"index"`
	// Of is how many waves there are.
	Of int32 `json:"of"`
	// State of the wave: Open, Soaking, Stopped, Paused or Done.
	State WaveState `json:"state"`
	// Since is when the state began.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Failed lists the clusters that have failed with this change.
	// +optional
	// +listType=atomic
	Failed []string `json:"failed,omitempty"`
	// Accepted lists the clusters that had failed when a user resumed the change, and that do not count any more.
	// +optional
	// +listType=atomic
	Accepted []string `json:"accepted,omitempty"`
	// Resumed is the value of the annotation kudo.dev/resume-rollout that was acted upon last.
	// +optional
	Resumed string `json:"resumed,omitempty"`
}

// DecisionStatus is what a decision of a scheduler has come to. It stays as it is while the decision cannot be acted upon.
type DecisionStatus struct {
	// Name of the decision.
	Name string `json:"name"`
	// Clusters that the decision names, in its order. The Instance runs on these.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Clusters []string `json:"clusters,omitempty"`
	// FromZero is set if the slices of the decision are numbered from 0, so that slices from 1 on lack the first one.
	// +optional
	FromZero bool `json:"fromZero,omitempty"`
}

// Fingerprint returns a text that differs for each other set of clusters. The order does not count.
func (d *DecisionStatus) Fingerprint() string {
	names := slices.Clone(d.Clusters)
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:])[:16]
}

// ForgetAnnotation on an Instance of a hub lists clusters, separated by commas, that are to lose their copy and are not waited for.
const ForgetAnnotation = "kudo.dev/forget-clusters"

// ResumeAnnotation on an Instance of a hub asks to go on with a change that was stopped. A value that was not seen before is a new request.
const ResumeAnnotation = "kudo.dev/resume-rollout"

// Template identifies a generation of an Instance on a hub that names its clusters. It is the value of the annotation kudo.dev/released.
func Template(uid types.UID, generation int64) string { return fmt.Sprintf("%s/%d", uid, generation) }

// Template identifies what clusters get of an Instance of a hub: its generation and, as a decision may change while the generation stays,
// the clusters that the decision names.
func (i *Instance) Template() string {
	template := Template(i.UID, i.Generation)
	if fingerprint := i.DecisionFingerprint(); fingerprint != "" {
		template += "/" + fingerprint
	}
	return template
}

// DecisionFingerprint returns that of the clusters which the decision of the Instance names, or "" if it has none, or none that is known.
func (i *Instance) DecisionFingerprint() string {
	if d := i.decided(); d != nil {
		return d.Fingerprint()
	}
	return ""
}

// decided returns what the decision of spec has come to, or nil if there is none, or if it is not known yet.
func (i *Instance) decided() *DecisionStatus {
	p, d := i.Spec.Placement, i.Status.Decision
	if p == nil || p.Decision == nil || d == nil || d.Name != p.Decision.Name {
		return nil
	}
	return d
}

// PlacedClusters returns the clusters that an Instance of a hub runs on: those of spec, or those that its decision names, as the hub has
// read it last.
func (i *Instance) PlacedClusters() []PlacedCluster {
	if i.Spec.Placement == nil {
		return nil
	}
	d := i.decided()
	if d == nil {
		return i.Spec.Placement.Clusters
	}
	out := make([]PlacedCluster, 0, len(d.Clusters))
	for _, name := range d.Clusters {
		out = append(out, PlacedCluster{Name: name})
	}
	return out
}

// IsPlacedOn reports whether an Instance of a hub runs on a cluster.
func (i *Instance) IsPlacedOn(cluster string) bool {
	return slices.ContainsFunc(i.PlacedClusters(), func(c PlacedCluster) bool { return c.Name == cluster })
}

// PlacedTemplate returns the template that the Instance is a copy of, or "" if it is no copy.
func (i *Instance) PlacedTemplate() string {
	if uid, generation := i.Annotations[KarmadaUIDAnnotation], i.Annotations[KarmadaGenerationAnnotation]; uid != "" && generation != "" {
		return uid + "/" + generation
	}
	return i.Annotations[TemplateAnnotation]
}

// IsHeld reports whether a hub has placed the Instance and has not released it, so that no plan may start. An Instance with a placement
// that is no copy is the template itself, which never runs.
func (i *Instance) IsHeld() bool {
	if i.Spec.Placement == nil {
		return false
	}
	template := i.PlacedTemplate()
	return template == "" || i.Annotations[ReleasedAnnotation] != template
}

// IsTemplate reports whether the Instance is one of a hub, which is placed on clusters and runs no plans itself. What a hub has left in a
// cluster has a placement, too, and has run plans.
func (i *Instance) IsTemplate() bool {
	return i.Spec.Placement != nil && i.PlacedTemplate() == "" && len(i.Status.PlanStatus) == 0
}

// WaveGroups returns the names of the clusters of each wave. Clusters that no group names are the last wave. What a group names and a
// decision does not is left out.
func (i *Instance) WaveGroups() [][]string {
	var groups [][]string
	placed := i.PlacedClusters()
	isPlaced, named := map[string]bool{}, map[string]bool{}
	for _, c := range placed {
		isPlaced[c.Name] = true
	}
	if p := i.Spec.Placement; p != nil && p.Waves != nil {
		for _, group := range p.Waves.Groups {
			if p.Decision != nil {
				group = slices.DeleteFunc(slices.Clone(group), func(name string) bool { return named[name] || !isPlaced[name] })
			}
			if len(group) > 0 {
				groups = append(groups, group)
			}
			for _, name := range group {
				named[name] = true
			}
		}
	}
	var rest []string
	for _, c := range placed {
		if !named[c.Name] {
			rest = append(rest, c.Name)
		}
	}
	if len(rest) > 0 {
		groups = append(groups, rest)
	}
	return groups
}

// ClusterNames returns the names of the clusters, separated by commas, or says whose decision names them.
func (p *Placement) ClusterNames() string {
	if p.Decision != nil {
		return "of the decision " + p.Decision.Name
	}
	names := make([]string, 0, len(p.Clusters))
	for _, c := range p.Clusters {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
