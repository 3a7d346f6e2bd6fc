package webhook

import (
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// Validate says what is wrong with a configuration: whatever would keep a webhook from being asked, and rules that can
// never match. It does not depend on the schema having been checked before.
func Validate(configuration *v1alpha1.ResourceExploringWebhookConfiguration) field.ErrorList {
	var errs field.ErrorList
	env := newEnv()
	path := field.NewPath("webhooks")
	if len(configuration.Webhooks) == 0 {
		errs = append(errs, field.Required(path, "name at least one webhook"))
	}
	seen := map[string]bool{}
	for i, spec := range configuration.Webhooks {
		if seen[spec.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), spec.Name))
		}
		seen[spec.Name] = true
		errs = append(errs, validateAt(path.Index(i), env, spec)...)
	}
	return errs
}

func validate(env *cel.Env, spec v1alpha1.ResourceExploringWebhook) field.ErrorList {
	return validateAt(nil, env, spec)
}

func validateAt(path *field.Path, env *cel.Env, spec v1alpha1.ResourceExploringWebhook) field.ErrorList {
	var errs field.ErrorList
	for _, message := range validation.IsDNS1123Subdomain(spec.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), spec.Name, message))
	}
	errs = append(errs, validateClient(path.Child("clientConfig"), spec.ClientConfig)...)
	for i, rule := range spec.Rules {
		errs = append(errs, validateRule(path.Child("rules").Index(i), rule)...)
	}
	if p := spec.FailurePolicy; p != nil && *p != admissionregistrationv1.Fail && *p != admissionregistrationv1.Ignore {
		errs = append(errs, field.NotSupported(path.Child("failurePolicy"), *p,
			[]admissionregistrationv1.FailurePolicyType{admissionregistrationv1.Fail, admissionregistrationv1.Ignore}))
	}
	if t := spec.TimeoutSeconds; t != nil && (*t < 1 || *t > v1alpha1.MaxTimeoutSeconds) {
		errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *t, fmt.Sprintf("must be from 1 to %d", v1alpha1.MaxTimeoutSeconds)))
	}
	if !slices.Contains(spec.ExploreReviewVersions, v1alpha1.GroupVersion.Version) {
		errs = append(errs, field.Invalid(path.Child("exploreReviewVersions"), spec.ExploreReviewVersions, "must hold a version that kudo "+
			"knows: "+v1alpha1.GroupVersion.Version))
	}
	if spec.ObjectSelector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(spec.ObjectSelector, metav1validation.LabelSelectorValidationOptions{},
			path.Child("objectSelector"))...)
	}
	return append(errs, validateConditions(path.Child("matchConditions"), env, spec.MatchConditions)...)
}

func validateClient(path *field.Path, c admissionregistrationv1.WebhookClientConfig) field.ErrorList {
	var errs field.ErrorList
	switch {
	case (c.URL == nil) == (c.Service == nil):
		errs = append(errs, field.Required(path, "set exactly one of url and service"))
	case c.URL != nil:
		errs = append(errs, webhookutil.ValidateWebhookURL(path.Child("url"), *c.URL, true)...)
	default:
		errs = append(errs, webhookutil.ValidateWebhookService(path.Child("service"), c.Service.Namespace, c.Service.Name, c.Service.Path,
			portOf(c.Service))...)
	}
	if len(c.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CABundle) {
		errs = append(errs, field.Invalid(path.Child("caBundle"), fmt.Sprintf("%d bytes", len(c.CABundle)), "holds no certificate in PEM format"))
	}
	return errs
}

func validateRule(path *field.Path, rule v1alpha1.RuleWithOperations) field.ErrorList {
	var errs field.ErrorList
	if len(rule.Operations) == 0 {
		errs = append(errs, field.Required(path.Child("operations"), "name at least one operation, or *"))
	}
	for i, operation := range rule.Operations {
		switch {
		case operation == v1alpha1.AnyOperation:
			if len(rule.Operations) > 1 {
				errs = append(errs, field.Invalid(path.Child("operations").Index(i), operation, "* must be alone"))
			}
		case !slices.Contains(explore.Operations(), operation):
			errs = append(errs, field.NotSupported(path.Child("operations").Index(i), operation, explore.Operations()))
		}
	}
	for _, list := range []struct {
		name   string
		values []string
		empty  bool // may a value be empty
	}{{"apiGroups", rule.APIGroups, true}, {"apiVersions", rule.APIVersions, false}, {"resources", rule.Resources, false}} {
		if len(list.values) == 0 {
			errs = append(errs, field.Required(path.Child(list.name), "without it the rule never matches; * matches any"))
		}
		if i := slices.Index(list.values, ""); i >= 0 && !list.empty {
			errs = append(errs, field.Required(path.Child(list.name).Index(i), "must not be empty; * matches any"))
		}
	}
	for i, entry := range rule.Resources {
		if _, ok := mainResource(entry); !ok {
			errs = append(errs, field.Invalid(path.Child("resources").Index(i), entry, "is a subresource, which is never explored: name the "+
				"resource"))
		}
	}
	scopes := []admissionregistrationv1.ScopeType{admissionregistrationv1.AllScopes, admissionregistrationv1.ClusterScope,
		admissionregistrationv1.NamespacedScope}
	if !slices.Contains(scopes, scopeOf(rule)) {
		errs = append(errs, field.NotSupported(path.Child("scope"), *rule.Scope, scopes))
	}
	return errs
}

// maxConditions is as in admission webhooks.
const maxConditions = 64

func validateConditions(path *field.Path, env *cel.Env, conditions []admissionregistrationv1.MatchCondition) field.ErrorList {
	var errs field.ErrorList
	if len(conditions) > maxConditions {
		return append(errs, field.TooMany(path, len(conditions), maxConditions))
	}
	seen := map[string]bool{}
	for i, c := range conditions {
		at := path.Index(i)
		for _, message := range validation.IsQualifiedName(c.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), c.Name, message))
		}
		if seen[c.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		seen[c.Name] = true
		if _, err := compileOne(env, c.Expression); err != nil {
			errs = append(errs, field.Invalid(at.Child("expression"), c.Expression, err.Error()))
		}
	}
	return errs
}
