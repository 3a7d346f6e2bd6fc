package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// Paths under which the kinds of config.kudo.dev are validated.
const (
	ValidateConfigPath               = "/validate-config-kudo-dev-v1alpha1-config"
	ValidateWebhookConfigurationPath = "/validate-config-kudo-dev-v1alpha1-resourceexploringwebhookconfiguration"
)

// ConfigValidator denies Configs whose scripts cannot run, and those that answer what another one answers.
type ConfigValidator struct {
	// Configs reads them live, for one that was just written counts too.
	Configs client.Reader
}

// Handle implements admission.Handler.
func (v *ConfigValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	c, old := &configv1alpha1.Config{}, &configv1alpha1.Config{}
	if done := decodePair(req, c, old, func() bool { return equality.Semantic.DeepEqual(c.Spec, old.Spec) }); done != nil {
		return *done
	}
	var others configv1alpha1.ConfigList
	if err := v.Configs.List(ctx, &others); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("list Configs, which must not answer the same: %w", err))
	}
	warnings, err := CheckConfig(c, others.Items)
	return responseFor(err, warnings)
}

// WebhookConfigurationValidator denies ResourceExploringWebhookConfigurations with webhooks that cannot be asked.
type WebhookConfigurationValidator struct{}

// Handle implements admission.Handler.
func (*WebhookConfigurationValidator) Handle(_ context.Context, req admission.Request) admission.Response {
	c, old := &configv1alpha1.ResourceExploringWebhookConfiguration{}, &configv1alpha1.ResourceExploringWebhookConfiguration{}
	if done := decodePair(req, c, old, func() bool { return equality.Semantic.DeepEqual(c.Webhooks, old.Webhooks) }); done != nil {
		return *done
	}
	return responseFor(CheckWebhookConfiguration(c), nil)
}

// decodePair reads the object and, at an update, the old one. It returns an answer if there is nothing more to look at: a
// deletion, or an update that leaves alone what is checked, which must work whatever is wrong with it.
func decodePair(req admission.Request, object, old any, same func() bool) *admission.Response {
	allowed := admission.Allowed("")
	if req.Operation != admissionv1.Create && req.Operation != admissionv1.Update {
		return &allowed
	}
	if err := json.Unmarshal(req.Object.Raw, object); err != nil {
		bad := admission.Errored(http.StatusBadRequest, fmt.Errorf("decode %s: %w", req.Kind.Kind, err))
		return &bad
	}
	if req.Operation == admissionv1.Update && json.Unmarshal(req.OldObject.Raw, old) == nil && same() {
		return &allowed
	}
	return nil
}

// CheckWebhookConfiguration says what is wrong with a configuration, each by its field.
func CheckWebhookConfiguration(c *configv1alpha1.ResourceExploringWebhookConfiguration) error {
	var errs []error
	for _, err := range webhook.Validate(c) {
		errs = append(errs, err)
	}
	return problems(errs)
}

// CheckConfig says what is wrong with a Config, by the rules of the layer that uses it: scripts that do not compile or do
// not define their function, fields that cannot be read, and operations on a kind that it answers twice, or that one of
// the others answers too. Others may hold the Config itself, which is passed over by its name. Warnings name globals
// that the script does not declare, and the like.
func CheckConfig(c *configv1alpha1.Config, others []configv1alpha1.Config) (warnings []string, err error) {
	warnings, errs := config.Validate(c)
	if len(warnings) > maxProblems {
		warnings = append(warnings[:maxProblems:maxProblems], fmt.Sprintf("and %d warnings more", len(warnings)-maxProblems))
	}
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b configv1alpha1.Config) int { return strings.Compare(a.Name, b.Name) })
	return warnings, problems(append(errs, config.Conflicts(c, others)...))
}

// maxProblems bounds the problems and warnings that an answer lists.
const maxProblems = 20

// problems makes one error of a list; it returns nil if there are none.
func problems(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	more := ""
	if len(errs) > maxProblems {
		more = fmt.Sprintf("; and %d problems more", len(errs)-maxProblems)
		errs = errs[:maxProblems]
	}
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return fmt.Errorf("%s%s", strings.Join(texts, "; "), more)
}
