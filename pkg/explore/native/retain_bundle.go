package native

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/pkg/explore"
)

// injectors are annotations that ask a controller to write caBundle: those of cert-manager's ca-injector, and of
// OpenShift's service CA.
var injectors = [...]string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// retainWebhooks keeps the injected caBundle of webhooks of the same name.
func retainWebhooks(desired, live map[string]any) error {
	webhooks, err := entries(desired, "webhooks")
	if err != nil {
		return err
	}
	running, err := entries(live, "webhooks")
	if err != nil {
		return err
	}
	for _, webhook := range webhooks {
		for _, other := range running {
			if !explore.Equal(webhook["name"], other["name"]) {
				continue
			}
			if err := retainBundle(desired, webhook, other, "clientConfig", "caBundle"); err != nil {
				return err
			}
		}
	}
	return nil
}

// retainDefinition keeps the injected caBundle of the conversion webhook.
func retainDefinition(desired, live map[string]any) error {
	strategy, err := text(desired, "spec", "conversion", "strategy")
	if err != nil || strategy != "Webhook" {
		return err
	}
	if err := retainBundle(desired, desired, live, "spec", "conversion", "webhook", "clientConfig", "caBundle"); err != nil {
		return err
	}
	return retainBundle(desired, desired, live, "spec", "conversion", "webhookClientConfig", "caBundle") // v1beta1
}

// placeholder is a caBundle of a line feed: authors write it where the field must be set, for an injector to replace.
const placeholder = "Cg=="

// retainBundle keeps the live caBundle, if an injector is asked for or the desired object has none of its own. A
// bundle that a desired object brings without asking for injection is its author's.
func retainBundle(object, into, from map[string]any, path ...string) error {
	if _, found, err := unstructured.NestedMap(into, path[:len(path)-1]...); err != nil || !found {
		return err
	}
	own, err := text(into, path...)
	if err != nil {
		return err
	}
	annotations := (&unstructured.Unstructured{Object: object}).GetAnnotations()
	injected := own == "" || own == placeholder
	for _, annotation := range injectors {
		injected = injected || annotations[annotation] != ""
	}
	if !injected {
		return nil
	}
	return keep(into, from, path...)
}
