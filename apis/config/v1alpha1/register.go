package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "config.kudo.dev", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package. ExploreReview is among them, so that a webhook can decode it; it is
// never stored.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Config{}, &ConfigList{},
		&ResourceExploringWebhookConfiguration{}, &ResourceExploringWebhookConfigurationList{},
		&PackagePolicy{}, &PackagePolicyList{},
		&ExploreReview{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Resource returns the GroupResource of a resource of this group.
func Resource(name string) schema.GroupResource {
	return GroupVersion.WithResource(name).GroupResource()
}
