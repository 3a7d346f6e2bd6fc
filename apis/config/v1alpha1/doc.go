// Package v1alpha1 is the config.kudo.dev/v1alpha1 API: Config and ResourceExploringWebhookConfiguration answer for
// kinds of objects that kudo does not know; ExploreReview is what kudo sends to a webhook and gets back.
//
// +kubebuilder:object:generate=true
// +groupName=config.kudo.dev
package v1alpha1
