package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "kudo.dev", Version: "v1beta1"}

// AddToScheme registers the kinds of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Operator{}, &OperatorList{},
		&OperatorVersion{}, &OperatorVersionList{},
		&Instance{}, &InstanceList{},
		&Installation{}, &InstallationList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource returns the GroupResource of a resource of this group.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}
