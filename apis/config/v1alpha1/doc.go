// Package v1alpha1 is the config.kudo.dev/v1alpha1 API: Config and ResourceExploringWebhookConfiguration teach kudo
// kinds of objects that it does not know; ExploreReview is what it sends to a webhook and gets back.
//
// +kubebuilder:object:generate=true
// +groupName=config.kudo.dev
package v1alpha1
