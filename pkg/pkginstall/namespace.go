package pkginstall

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
)

// ExplainMissingNamespace returns the error of an installation that has failed: another one, if its cause is that the namespace
// does not exist. Nothing can be created in such a namespace, so that no check is needed before.
func ExplainMissingNamespace(ctx context.Context, c client.Reader, namespace string, failed error) error {
	if apierrors.IsNotFound(c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})) {
		return fmt.Errorf("namespace %s does not exist: create it, or use --create-namespace", namespace)
	}
	return failed
}

// CreateNamespace creates the namespace of an Instance, from the template of the package if it has one.
func (i Installer) CreateNamespace(ctx context.Context, pkg *operators.Package, name, instance string, given map[string]string) error {
	namespace, err := renderNamespace(pkg, name, instance, given)
	if err != nil {
		return err
	}
	if err := i.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	i.Progressf("namespace %s created", name)
	return nil
}

// renderNamespace renders the namespace of a package; its name is the one that the user gives.
func renderNamespace(pkg *operators.Package, name, instance string, given map[string]string) (*unstructured.Unstructured, error) {
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	if manifest := pkg.Operator.NamespaceManifest; manifest != "" {
		values, err := params.Resolve(pkg.Definitions(), given)
		if err != nil {
			return nil, err
		}
		rendered, err := render.New(pkg.Templates).Objects(manifest, render.Variables{
			OperatorName: pkg.Operator.Name, OperatorVersion: pkg.Operator.OperatorVersion, AppVersion: pkg.Operator.AppVersion,
			Name: instance, Namespace: name, Params: values,
		}, render.WithoutNames())
		if err != nil {
			return nil, err
		}
		if len(rendered.Objects) != 1 || rendered.Objects[0].GetKind() != "Namespace" {
			return nil, fmt.Errorf("package %s: namespaceManifest %s must hold one object of kind Namespace, and nothing else", pkg.Operator.Name,
				manifest)
		}
		namespace = rendered.Objects[0]
	}
	namespace.SetName(name)
	annotations := namespace.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["created-by"] = "kudo-cli"
	namespace.SetAnnotations(annotations)
	return namespace, nil
}
