package inventory

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// dependency is an object of the hub that the clusters of an Instance need.
type dependency struct {
	kind   string
	object client.Object
}

// named is a dependency that is not read yet.
type named struct{ kind, name string }

// dependencies returns what the clusters of an Instance need, in the order in which it is written, each once.
func dependencies(instance *v1beta1.Instance, operator string) []named {
	list := []named{{"Operator", operator}, {"OperatorVersion", instance.Spec.OperatorVersion.Name}}
	if placement := instance.Spec.Placement; placement != nil {
		for _, kind := range []string{"Operator", "OperatorVersion", "Secret", "ConfigMap"} {
			for _, i := range placement.Include {
				if i.Kind == kind {
					list = append(list, named{kind, i.Name})
				}
			}
		}
	}
	for _, from := range instance.Spec.ParametersFrom {
		list = append(list, named{from.Kind, from.Name})
	}
	var out []named
	seen := map[named]bool{}
	for _, n := range list {
		if n.name != "" && !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

// gather reads what the clusters of an Instance need. Objects that are not there are left out: the clusters say that they wait for them.
// One that the hub must not read is a *clusters.RefusedError.
func (e *Engine) gather(ctx context.Context, instance *v1beta1.Instance) ([]dependency, error) {
	operator := instance.Labels[v1beta1.OperatorLabel]
	if operator == "" {
		version := &v1beta1.OperatorVersion{}
		if err := e.Hub.Get(ctx, instance.OperatorVersionKey(), version); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read OperatorVersion %s: %w", instance.OperatorVersionKey(), err)
		}
		operator = version.Spec.Operator.Name
	}
	var out []dependency
	for _, n := range dependencies(instance, operator) {
		obj, reader := e.empty(n.kind)
		if obj == nil {
			return nil, fmt.Errorf("objects of kind %s cannot be placed: name an Operator, OperatorVersion, Secret or ConfigMap", n.kind)
		}
		switch err := reader.Get(ctx, types.NamespacedName{Namespace: instance.Namespace, Name: n.name}, obj); {
		case apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			return nil, &clusters.RefusedError{Reason: v1beta1.ReasonWaitingForParameters, Message: fmt.Sprintf(
				"the manager of the hub must not read %s %s/%s, which the clusters need: kubectl create rolebinding kudo-hub-sources -n %[2]s "+
					"--clusterrole kudo-hub-sources --serviceaccount %[4]s:kudo-manager", n.kind, instance.Namespace, n.name, e.Namespace)}
		case err != nil:
			return nil, fmt.Errorf("read %s %s/%s: %w", n.kind, instance.Namespace, n.name, err)
		default:
			out = append(out, dependency{n.kind, obj})
		}
	}
	return out, nil
}

// empty returns an object of a kind, and what reads it.
func (e *Engine) empty(kind string) (client.Object, client.Reader) {
	switch kind {
	case "Operator":
		return &v1beta1.Operator{}, e.Hub
	case "OperatorVersion":
		return &v1beta1.OperatorVersion{}, e.Hub
	case "Secret":
		return &corev1.Secret{}, e.Live
	case "ConfigMap":
		return &corev1.ConfigMap{}, e.Live
	}
	return nil, nil
}

// fingerprint changes with the content of dependencies.
func fingerprint(list []dependency) string {
	var out strings.Builder
	for _, d := range list {
		fmt.Fprintf(&out, "%s/%s/%s/%s\n", d.kind, d.object.GetName(), d.object.GetUID(), d.object.GetResourceVersion())
	}
	return out.String()
}
