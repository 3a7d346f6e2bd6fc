package native

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/pods"
)

// dependencies are the objects without which one does not work. What is marked as optional is left out.
func dependencies(kind schema.GroupKind, object *unstructured.Unstructured) (explore.Answer, bool, error) {
	found := &references{namespace: object.GetNamespace()}
	var err error
	switch built(kind) {
	case "Ingress":
		err = ingressNeeds(found, object.Object)
	case "HorizontalPodAutoscaler":
		err = autoscalerNeeds(found, object.Object)
	default:
		path := templatePath(kind)
		if path == nil {
			return explore.Answer{}, false, nil
		}
		var spec *corev1.PodSpec
		if spec, err = podSpec(object, path); err == nil {
			if err = dropReplaced(spec, kind, object.Object); err == nil {
				podNeeds(found, spec)
			}
		}
	}
	if err != nil {
		return explore.Answer{}, false, err
	}
	return explore.Answer{Dependencies: found.sorted()}, true, nil
}

// references collects objects of one namespace.
type references struct {
	namespace string
	all       []v1alpha1.DependentObjectReference
}

func (r *references) add(apiVersion, kind, name string) {
	if name == "" || apiVersion == "" || kind == "" {
		return
	}
	r.all = append(r.all, v1alpha1.DependentObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: r.namespace, Name: name})
}

func (r *references) sorted() []v1alpha1.DependentObjectReference {
	slices.SortFunc(r.all, func(a, b v1alpha1.DependentObjectReference) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(r.all, func(a, b v1alpha1.DependentObjectReference) bool {
		return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name
	})
}

// podNeeds are what the kubelet reads, or admission wants, before a pod starts.
func podNeeds(r *references, spec *corev1.PodSpec) {
	spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	dropOptional(spec)
	r.all = append(r.all, pods.Dependencies(spec, r.namespace)...)
}

func isOptional(optional *bool) bool { return optional != nil && *optional }

// dropOptional takes those references out of a spec without which its pods start as well.
func dropOptional(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			list[i].EnvFrom = slices.DeleteFunc(list[i].EnvFrom, func(f corev1.EnvFromSource) bool {
				return f.ConfigMapRef != nil && isOptional(f.ConfigMapRef.Optional) || f.SecretRef != nil && isOptional(f.SecretRef.Optional)
			})
			list[i].Env = slices.DeleteFunc(list[i].Env, func(e corev1.EnvVar) bool {
				from := e.ValueFrom
				return from != nil && (from.ConfigMapKeyRef != nil && isOptional(from.ConfigMapKeyRef.Optional) ||
					from.SecretKeyRef != nil && isOptional(from.SecretKeyRef.Optional))
			})
		}
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool {
		return v.ConfigMap != nil && isOptional(v.ConfigMap.Optional) || v.Secret != nil && isOptional(v.Secret.Optional)
	})
	for _, v := range spec.Volumes {
		if v.Projected == nil {
			continue
		}
		v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
			return s.ConfigMap != nil && isOptional(s.ConfigMap.Optional) || s.Secret != nil && isOptional(s.Secret.Optional)
		})
	}
}

// dropReplaced takes those volumes out of a spec that a StatefulSet replaces by claims of its own: the templates of claims
// have the same names.
func dropReplaced(spec *corev1.PodSpec, kind schema.GroupKind, object map[string]any) error {
	if built(kind) != "StatefulSet" {
		return nil
	}
	templates, err := entries(object, "spec", "volumeClaimTemplates")
	if err != nil {
		return err
	}
	for _, template := range templates {
		name, err := text(template, "metadata", "name")
		if err != nil {
			return err
		}
		spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	}
	return nil
}

// ingressNeeds are certificates and backends, as networking.k8s.io/v1 and the versions before it name them.
func ingressNeeds(r *references, object map[string]any) error {
	certificates, err := entries(object, "spec", "tls")
	if err != nil {
		return err
	}
	for _, certificate := range certificates {
		name, err := text(certificate, "secretName")
		if err != nil {
			return err
		}
		r.add("v1", "Secret", name)
	}
	for _, field := range []string{"defaultBackend", "backend"} {
		if err := backendNeeds(r, object, "spec", field); err != nil {
			return err
		}
	}
	rules, err := entries(object, "spec", "rules")
	if err != nil {
		return err
	}
	for _, rule := range rules {
		paths, err := entries(rule, "http", "paths")
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := backendNeeds(r, path, "backend"); err != nil {
				return err
			}
		}
	}
	return nil
}

func backendNeeds(r *references, object map[string]any, path ...string) error {
	for _, field := range [][]string{{"service", "name"}, {"serviceName"}} {
		name, err := text(object, append(slices.Clone(path), field...)...)
		if err != nil {
			return err
		}
		r.add("v1", "Service", name)
	}
	return nil
}

// autoscalerNeeds is the target.
func autoscalerNeeds(r *references, object map[string]any) error {
	var target [3]string
	for i, field := range []string{"apiVersion", "kind", "name"} {
		var err error
		if target[i], err = text(object, "spec", "scaleTargetRef", field); err != nil {
			return err
		}
	}
	r.add(target[0], target[1], target[2])
	return nil
}
