package volumes

import (
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// managedBy marks the volumes that this package makes, and may delete.
const (
	managedBy   = "app.kubernetes.io/managed-by"
	provisioner = "kudo-local"
)

var everything = labels.Everything()

func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func isOwn(v *corev1.PersistentVolume) bool {
	return v.Labels[managedBy] == provisioner && v.Spec.ClaimRef != nil
}

// needsVolume reports whether this package is to make a volume for a claim: not when the claim names one
// itself.
func needsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && claim.Status.Phase != corev1.ClaimBound
}

// isVolumeFor reports whether the claim should get a volume that exists:
// one reserved for it, or one that a user has made by hand for its class.
func isVolumeFor(v *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	if ref := v.Spec.ClaimRef; ref != nil {
		return ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
	}
	if class(claim) == "" || v.Spec.StorageClassName != class(claim) || v.Status.Phase == corev1.VolumeFailed {
		return false
	}
	have, want := v.Spec.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return have.Cmp(want) >= 0 && covers(v.Spec.AccessModes, claim.Spec.AccessModes) && selects(claim, v)
}

func class(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return *claim.Spec.StorageClassName
}

func covers(have, want []corev1.PersistentVolumeAccessMode) bool {
	set := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, m := range have {
		set[m] = true
	}
	for _, m := range want {
		if !set[m] {
			return false
		}
	}
	return true
}

func selects(claim *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) bool {
	if claim.Spec.Selector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(v.Labels))
}

// Local is where the volumes of a real node lie; the zero value is for nodes that are played.
type Local struct {
	// Dir is the folder that gets a folder for each volume; Node the name of the node.
	Dir, Node string
}

func (l Local) path(volume string) string { return filepath.Join(l.Dir, volume) }

// source is where a volume lies: on a real node a local one, to which the kubelet gives the group of the pod.
func (l Local) source(volume string) (corev1.PersistentVolumeSource, *corev1.VolumeNodeAffinity) {
	if l.Node == "" {
		return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path.Join("/var/lib/kudo-local", volume)}}, nil
	}
	node := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{l.Node}},
	}}
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: l.path(volume)}},
		&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{node}}}
}

// volumeFor is a volume that only this claim can be bound to. It is reserved
// by uid, so that a new claim of the same name does not get the old volume.
func (l Local) volumeFor(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	source, affinity := l.source(volumeName(claim))
	name := volumeName(claim)
	marks := map[string]string{}
	if claim.Spec.Selector != nil { // else the binder would not see a match
		for k, v := range claim.Spec.Selector.MatchLabels {
			marks[k] = v
		}
	}
	marks[managedBy] = provisioner
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: marks},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:      claim.Spec.AccessModes,
			StorageClassName: class(claim),
			VolumeMode:       claim.Spec.VolumeMode,
			// No driver knows how to recycle it: this package deletes it.
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			VolumeAttributesClassName:     claim.Spec.VolumeAttributesClassName,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1",
				Kind:       "PersistentVolumeClaim",
				Namespace:  claim.Namespace,
				Name:       claim.Name,
				UID:        claim.UID,
			},
			PersistentVolumeSource: source,
			NodeAffinity:           affinity,
		},
	}
}
