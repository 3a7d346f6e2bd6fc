package kudoinit

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// ManagedByLabel names the tool that manages an object. The chart sets it to Helm on the ClusterRoleBinding of the manager, also where
	// another program applies what helm template prints.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	helm           = "Helm"
	// releaseName and releaseNamespace are Helm's own annotations.
	releaseName, releaseNamespace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
)

// HelmRelease is the release of the chart that has installed kudo. The name is empty if another program has applied what helm template
// prints.
type HelmRelease struct{ Name, Namespace string }

// String implements fmt.Stringer.
func (r *HelmRelease) String() string {
	if r.Name == "" {
		return "kudo's Helm chart"
	}
	return fmt.Sprintf("Helm release %s in namespace %s", r.Name, r.Namespace)
}

// upgrade is the command that installs another version or other values.
func (r *HelmRelease) upgrade() string {
	if r.Name == "" {
		return "helm template, with what applies its output"
	}
	return fmt.Sprintf("helm upgrade %s -n %s", r.Name, r.Namespace)
}

// uninstall says how to remove the release.
func (r *HelmRelease) uninstall() string {
	if r.Name == "" {
		return "delete ClusterRoleBinding " + roleName + " and Deployment " + deploymentName + " with what applies the chart"
	}
	return fmt.Sprintf("run helm uninstall %s -n %s", r.Name, r.Namespace)
}

// helmReleaseOf returns the release that has made the binding of the manager, or nil if none has.
func helmReleaseOf(binding *rbacv1.ClusterRoleBinding) *HelmRelease {
	if binding.Labels[ManagedByLabel] != helm {
		return nil
	}
	return &HelmRelease{binding.Annotations[releaseName], binding.Annotations[releaseNamespace]}
}

// CheckRelease returns an error if Helm manages the installation: two tools would undo each other's changes.
func (l *InstalledState) CheckRelease() error {
	if l.Release == nil {
		return nil
	}
	return refuse(fmt.Errorf("%s has installed kudo: change it with %s, or %s first, which keeps CustomResourceDefinitions, settings and the "+
		"history key", l.Release, l.Release.upgrade(), l.Release.uninstall()))
}

// adaptFindings gives the findings the remedies of an installation by Helm.
func (r *HelmRelease) adaptFindings(findings []Finding) {
	for n := range findings {
		findings[n].Remedy = strings.ReplaceAll(findings[n].Remedy, again, r.upgrade())
	}
}

// chartObjects returns the objects of an installation that are part of the chart: the namespace of a release exists before it.
func chartObjects(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objs, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Namespace" })
}
