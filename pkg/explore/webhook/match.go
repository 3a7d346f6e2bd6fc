package webhook

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// Resources finds the resource of a kind, which rules go by. It is asked only about kinds in whose group a rule names
// resources or a scope.
type Resources interface {
	// Resource returns the plural name, such as `foos`, and whether objects of the kind have a namespace. After an error,
	// such as that the cluster does not have the kind yet, webhooks whose rules may match are decided by their failure
	// policy.
	Resource(ctx context.Context, kind schema.GroupVersionKind) (name string, namespaced bool, err error)
}

// FromMapper makes Resources of a RESTMapper.
func FromMapper(mapper meta.RESTMapper) Resources { return mapped{mapper} }

type mapped struct{ mapper meta.RESTMapper }

// Resource implements Resources.
func (m mapped) Resource(_ context.Context, kind schema.GroupVersionKind) (string, bool, error) {
	mapping, err := m.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return "", false, fmt.Errorf("find the resource of kind %s, which rules go by: %w", kind.Kind, err)
	}
	return mapping.Resource.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// target is a request with what is known of its kind.
type target struct {
	request    explore.Request
	kind       schema.GroupVersionKind
	resource   string
	namespaced bool
	// err is why the resource is not known.
	err error
	// variables of conditions, made when the first is asked.
	variables map[string]any
}

// rulesMatch reports whether any rule matches. The error says that it cannot answer.
func (h *hook) rulesMatch(t *target) (bool, error) {
	var unsure error
	for _, rule := range h.spec.Rules {
		matches, err := ruleMatches(rule, t)
		if matches {
			return true, nil
		}
		if err != nil {
			unsure = err
		}
	}
	return false, unsure
}

func ruleMatches(rule v1alpha1.RuleWithOperations, t *target) (bool, error) {
	if !slices.Contains(rule.Operations, t.request.Operation) && !slices.Contains(rule.Operations, v1alpha1.AnyOperation) {
		return false, nil
	}
	if !holds(rule.APIGroups, t.kind.Group) || !holds(rule.APIVersions, t.kind.Version) {
		return false, nil
	}
	all, named := false, false
	for _, entry := range rule.Resources {
		name, ok := mainResource(entry)
		all = all || ok && name == wildcard
		named = named || ok && name == t.resource
	}
	scope := scopeOf(rule)
	switch {
	case all && scope == admissionregistrationv1.AllScopes:
		return true, nil
	case t.err != nil:
		return false, t.err
	case !all && !named:
		return false, nil
	case scope == admissionregistrationv1.AllScopes:
		return true, nil
	}
	return t.namespaced == (scope == admissionregistrationv1.NamespacedScope), nil
}

// holds reports whether a list has a name, or the wildcard.
func holds(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, wildcard)
}

// selectorOf returns the selector of a valid webhook.
func selectorOf(spec v1alpha1.ResourceExploringWebhook) labels.Selector {
	if spec.ObjectSelector == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.ObjectSelector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// selects reports whether the selector matches the object, or the observed one.
func (h *hook) selects(r explore.Request) bool {
	return h.selector.Empty() || h.selector.Matches(labels.Set(r.Object.GetLabels())) ||
		r.Observed != nil && h.selector.Matches(labels.Set(r.Observed.GetLabels()))
}
