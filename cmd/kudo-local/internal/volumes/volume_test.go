package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claim(modify func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("fast"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if modify != nil {
		modify(c)
	}
	return c
}

func TestVolumeForFitsItsClaim(t *testing.T) {
	c := claim(nil)
	v := Local{}.volumeFor(c)
	ref := v.Spec.ClaimRef
	if ref.Namespace != "n" || ref.Name != "c" || ref.UID != "u1" {
		t.Errorf("reserved for %+v", ref)
	}
	if v.Spec.StorageClassName != "fast" || v.Spec.Capacity.Storage().String() != "1Gi" || v.Spec.AccessModes[0] != corev1.ReadWriteOnce {
		t.Errorf("spec %+v", v.Spec)
	}
	if !isOwn(v) || !isVolumeFor(v, c) {
		t.Error("does not know its own volume: a second one would be made")
	}
}

func TestWaits(t *testing.T) {
	tests := []struct {
		reason string
		modify func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		{"a new claim does", nil, true},
		{"one that names its volume gets that one", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "mine" }, false},
		{"one that is bound has one", func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound }, false},
		{"one that goes needs none", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, false},
	}
	for _, tc := range tests {
		if got := needsVolume(claim(tc.modify)); got != tc.want {
			t.Errorf("%s: waits = %v", tc.reason, got)
		}
	}
}

func TestMeantFor(t *testing.T) {
	byHand := func(modify func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		v := Local{}.volumeFor(claim(nil))
		v.Labels, v.Spec.ClaimRef = nil, nil
		modify(v)
		return v
	}
	tests := []struct {
		reason string
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   bool
	}{
		{"one that a user has made for the class is taken", byHand(func(*corev1.PersistentVolume) {}), claim(nil), true},
		{"not when it is too small", byHand(func(v *corev1.PersistentVolume) {
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		}), claim(nil), false},
		{"not when it cannot be mounted so", byHand(func(v *corev1.PersistentVolume) { v.Spec.AccessModes = nil }), claim(nil), false},
		{"not of another class", byHand(func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" }), claim(nil), false},
		{"one reserved by name alone is", byHand(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "n", Name: "c"}
		}), claim(nil), true},
		{"a new claim of an old name does not get the old volume", Local{}.volumeFor(claim(nil)), claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "u2" }), false},
	}
	for _, tc := range tests {
		if got := isVolumeFor(tc.volume, tc.claim); got != tc.want {
			t.Errorf("%s: meantFor = %v", tc.reason, got)
		}
	}
}

// TestLocalVolume: on a real node, the kubelet owns the folder of a volume and gives it the group of the pod.
func TestLocalVolume(t *testing.T) {
	v := Local{Dir: "/state/volumes", Node: "node-1"}.volumeFor(claim(nil))
	if v.Spec.HostPath != nil || v.Spec.Local == nil || v.Spec.Local.Path != "/state/volumes/"+v.Name {
		t.Errorf("the source is %+v", v.Spec.PersistentVolumeSource)
	}
	term := v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if term.Key != "kubernetes.io/hostname" || len(term.Values) != 1 || term.Values[0] != "node-1" {
		t.Errorf("the affinity is %+v", term)
	}
}
