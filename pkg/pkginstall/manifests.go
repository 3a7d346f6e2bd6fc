package pkginstall

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
)

// Manifests returns what CreateVersions and CreateInstance would create, as objects for a repository: the Operators and the
// OperatorVersions in the order of the packages, and the Instance, unless it is nil. The objects have no fields of the API server.
func Manifests(packages []*operators.Package, namespace string, parameters map[string]string,
	instance *v1beta1.Instance) ([]*unstructured.Unstructured, error) {
	var out, versions []*unstructured.Unstructured
	var err error
	add := func(to *[]*unstructured.Unstructured, kind string, object any) {
		content, e := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if e != nil {
			err = fmt.Errorf("convert %s: %w", kind, e)
			return
		}
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion(v1beta1.GroupVersion.String())
		obj.SetKind(kind)
		delete(obj.Object, "status")
		unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
		unstructured.RemoveNestedField(obj.Object, "spec", "planExecution") // a request by hand
		*to = append(*to, obj)
	}
	for n, pkg := range packages {
		operator, version, err := convert(pkg, namespace, parametersOf(packages, n, parameters))
		if err != nil {
			return nil, err
		}
		add(&out, "Operator", operator)
		add(&versions, "OperatorVersion", version)
	}
	out = append(out, versions...)
	if instance != nil {
		add(&out, "Instance", withImmutableDefaults(packages[len(packages)-1], instance))
	}
	return out, err
}

// withImmutableDefaults returns the Instance with what the webhook writes into a new one, so that a tool finds no difference.
func withImmutableDefaults(pkg *operators.Package, instance *v1beta1.Instance) *v1beta1.Instance {
	if len(instance.Spec.ParametersFrom) > 0 {
		return instance // a source may give the value
	}
	defaults := params.ImmutableDefaults(pkg.Definitions(), instance.Spec.Parameters)
	if len(defaults) == 0 {
		return instance
	}
	instance = instance.DeepCopy()
	maps.Copy(defaults, instance.Spec.Parameters)
	instance.Spec.Parameters = defaults
	return instance
}

// kindOrder is the order in which the files of manifests are applied, which is that of their names.
var kindOrder = map[string]int{"Operator": 1, "OperatorVersion": 2, "Instance": 3}

// ManifestFile returns the name of the file of a manifest. The names of the other manifests do not change it.
func ManifestFile(obj *unstructured.Unstructured) string {
	return fmt.Sprintf("%d-%s-%s.yaml", kindOrder[obj.GetKind()], strings.ToLower(obj.GetKind()), obj.GetName())
}

// FormatManifest returns the YAML of a manifest, with the keys in the order that Kubernetes' objects are read in.
func FormatManifest(obj *unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec"} {
		value, found := obj.Object[key]
		if !found {
			continue
		}
		part, err := yaml.Marshal(map[string]any{key: value})
		if err != nil {
			return nil, fmt.Errorf("format %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out.Write(part)
	}
	return out.Bytes(), nil
}
