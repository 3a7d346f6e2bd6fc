package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// kinds in the order of Dependencies.
var kinds = []string{"ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"}

// names are the objects that a pod names, by kind.
type names map[string]map[string]bool

func (n names) add(kind, name string) {
	if name == "" {
		return
	}
	if n[kind] == nil {
		n[kind] = map[string]bool{}
	}
	n[kind][name] = true
}

// Dependencies are the ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims that pods name, of a namespace,
// by kind and name. The ServiceAccount `default` is not among them: each namespace has it.
func Dependencies(spec *corev1.PodSpec, namespace string) []v1alpha1.DependentObjectReference {
	found := names{}
	for _, s := range spec.ImagePullSecrets {
		found.add("Secret", s.Name)
	}
	if spec.ServiceAccountName != "default" {
		found.add("ServiceAccount", spec.ServiceAccountName)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for _, c := range list {
			found.environment(c.Env, c.EnvFrom)
		}
	}
	for _, c := range spec.EphemeralContainers {
		found.environment(c.Env, c.EnvFrom)
	}
	for _, v := range spec.Volumes {
		found.volume(v.VolumeSource)
		found.remote(v.VolumeSource)
	}
	references := []v1alpha1.DependentObjectReference{}
	for _, kind := range kinds {
		for _, name := range slices.Sorted(maps.Keys(found[kind])) {
			references = append(references, v1alpha1.DependentObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: name})
		}
	}
	return references
}

func (n names) environment(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for _, e := range env {
		if e.ValueFrom == nil {
			continue
		}
		if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
			n.add("ConfigMap", r.Name)
		}
		if r := e.ValueFrom.SecretKeyRef; r != nil {
			n.add("Secret", r.Name)
		}
	}
	for _, f := range from {
		if f.ConfigMapRef != nil {
			n.add("ConfigMap", f.ConfigMapRef.Name)
		}
		if f.SecretRef != nil {
			n.add("Secret", f.SecretRef.Name)
		}
	}
}

func (n names) volume(v corev1.VolumeSource) {
	if v.ConfigMap != nil {
		n.add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		n.add("Secret", v.Secret.SecretName)
	}
	if v.PersistentVolumeClaim != nil {
		n.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			n.add("ConfigMap", s.ConfigMap.Name)
		}
		if s.Secret != nil {
			n.add("Secret", s.Secret.Name)
		}
	}
}

// remote are the secrets that drivers of volumes log in with.
func (n names) remote(v corev1.VolumeSource) {
	if v.AzureFile != nil {
		n.add("Secret", v.AzureFile.SecretName)
	}
	if v.CSI != nil {
		n.local(v.CSI.NodePublishSecretRef)
	}
	if v.CephFS != nil {
		n.local(v.CephFS.SecretRef)
	}
	if v.Cinder != nil {
		n.local(v.Cinder.SecretRef)
	}
	if v.FlexVolume != nil {
		n.local(v.FlexVolume.SecretRef)
	}
	if v.ISCSI != nil {
		n.local(v.ISCSI.SecretRef)
	}
	if v.RBD != nil {
		n.local(v.RBD.SecretRef)
	}
	if v.ScaleIO != nil {
		n.local(v.ScaleIO.SecretRef)
	}
	if v.StorageOS != nil {
		n.local(v.StorageOS.SecretRef)
	}
}

func (n names) local(reference *corev1.LocalObjectReference) {
	if reference != nil {
		n.add("Secret", reference.Name)
	}
}
