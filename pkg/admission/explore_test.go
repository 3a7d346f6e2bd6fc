package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

// configs lists Configs, written as name and spec in YAML; nil is an apiserver that does not answer.
type configs map[string]string

func (configs) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nothing is got")
}

func (c configs) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if c == nil {
		return errors.New("no answer")
	}
	for name, text := range c {
		config := configv1alpha1.Config{}
		config.Name = name
		if err := yaml.UnmarshalStrict([]byte(text), &config.Spec); err != nil {
			return err
		}
		into := list.(*configv1alpha1.ConfigList)
		into.Items = append(into.Items, config)
	}
	return nil
}

func rawOf(t *testing.T, text string) runtime.RawExtension {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: out}
}

func configOf(spec string) string {
	return "metadata: {name: mine}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
}

const good = "explorations: [{apiVersion: apps/v1, kind: Deployment, healthLua: return true}]"

func TestConfigValidator(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec  string
		others        configs
		want, warning string
	}{
		"Good":        {"a body that returns", good, configs{}, "", ""},
		"Chunk":       {"a chunk that defines the function", `explorations: [{apiVersion: apps/v1, kind: Deployment, replicaLua: "function GetReplicas(o) return 1 end"}]`, configs{}, "", ""},
		"Syntax":      {"a script that does not compile, by its field and line", "explorations: [{apiVersion: a/v1, kind: K, healthLua: return true}, {apiVersion: a/v1, kind: L, statusLua: 'return ('}]", configs{}, "spec.explorations[1].statusLua: ", ""},
		"Function":    {"a script that defines another function", `retentions: [{apiVersion: a/v1, kind: K, retentionLua: "function Keep(a, b) return a end"}]`, configs{}, "must define function Retain(desiredObj, runtimeObj)", ""},
		"All":         {"all problems at once", "explorations: [{apiVersion: a/v1, kind: K, healthLua: '(', statusLua: ')'}]", configs{}, "spec.explorations[0].statusLua", ""},
		"Global":      {"undeclared globals are warnings", "explorations: [{apiVersion: a/v1, kind: K, healthLua: return undeclared}]", configs{}, "", "spec.explorations[0].healthLua: "},
		"Clash":       {"what another Config answers, naming both", good, configs{"theirs": good}, "ExploreHealthy of apps/v1 Deployment is answered by Config/mine (spec.explorations[0].healthLua) and by Config/theirs", ""},
		"Retention":   {"a retention and a retaining script of another", "retentions: [{apiVersion: a/v1, kind: K, fields: ['{.spec.x}']}]", configs{"theirs": "explorations: [{apiVersion: a/v1, kind: K, retainingLua: return desiredObj}]"}, "ExploreRetaining of a/v1 K is answered by Config/mine (spec.retentions[0]) and by Config/theirs (spec.explorations[0].retainingLua)", ""},
		"Inside":      {"a retention and a retaining script of its own", "retentions: [{apiVersion: a/v1, kind: K, fields: ['{.spec.x}']}]\nexplorations: [{apiVersion: a/v1, kind: K, retainingLua: return desiredObj}]", configs{}, "is answered twice by Config/mine, in spec.retentions[0] and spec.explorations[0].retainingLua", ""},
		"Field":       {"a field that cannot be read", "retentions: [{apiVersion: a/v1, kind: K, fields: ['{..x}']}]", configs{}, "spec.retentions[0].fields[0]: ", ""},
		"Itself":      {"it does not clash with itself", good, configs{"mine": good}, "", ""},
		"OtherKind":   {"another kind", good, configs{"theirs": strings.Replace(good, "Deployment", "ReplicaSet", 1)}, "", ""},
		"OtherAsk":    {"another operation", good, configs{"theirs": strings.Replace(good, "healthLua", "statusLua", 1)}, "", ""},
		"OtherGroup":  {"another version", good, configs{"theirs": strings.Replace(good, "apps/v1", "apps/v2", 1)}, "", ""},
		"SeveralTake": {"all of those in the way, in the alphabet", good, configs{"x": good, "b": good, "z": good}, "answered by Config/mine (spec.explorations[0].healthLua) and by Config/b (spec.explorations[0].healthLua): leave one of them; Exp", ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(admissionv1.Create, rawOf(t, configOf(tc.spec)), runtime.RawExtension{})
			expect(t, tc.reason, (&ConfigValidator{tc.others}).Handle(t.Context(), req), tc.want, tc.warning)
		})
	}
}

func TestConfigValidatorPassesOver(t *testing.T) {
	down := &ConfigValidator{configs(nil)}
	bad := rawOf(t, configOf("explorations: [{apiVersion: a/v1, kind: K, healthLua: '('}]"))
	expect(t, "a deletion is never denied", down.Handle(t.Context(), request(admissionv1.Delete, runtime.RawExtension{}, bad)), "", "")
	expect(t, "an update of metadata is never denied", down.Handle(t.Context(), request(admissionv1.Update, bad, bad)), "", "")
	for name, tc := range map[string]struct {
		reason string
		object runtime.RawExtension
		want   int32
	}{
		"Down": {"an apiserver that does not answer is no clash", rawOf(t, configOf(good)), http.StatusInternalServerError},
		"Junk": {"what is no Config is refused", rawOf(t, "spec: 1"), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := down.Handle(t.Context(), request(admissionv1.Create, tc.object, runtime.RawExtension{}))
			if got.Allowed || got.Result.Code != tc.want {
				t.Errorf("%s: got %v %+v", tc.reason, got.Allowed, got.Result)
			}
		})
	}
}

func TestManyProblems(t *testing.T) {
	config := &configv1alpha1.Config{}
	for range 50 {
		config.Spec.Explorations = append(config.Spec.Explorations, configv1alpha1.Exploration{APIVersion: "a/v1", Kind: "K", HealthLua: "("})
	}
	if _, err := CheckConfig(config, nil); err == nil || !strings.Contains(err.Error(), "problems more") {
		t.Errorf("a long list is cut: %v", err)
	}
}

// webhookBase is a configuration that is right, as a map to be changed.
const webhookBase = `
metadata: {name: c}
webhooks:
- name: foo.example.com
  clientConfig: {url: "https://127.0.0.1:8443/explore"}
  rules: [{operations: [ExploreHealthy], apiGroups: [foo.example.com], apiVersions: ["*"], resources: [foos], scope: Namespaced}]
  failurePolicy: Fail
  timeoutSeconds: 3
  exploreReviewVersions: [v1, v1alpha1]
`

func TestWebhookConfigurationValidator(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to string // what is replaced in the base
		want     string
	}{
		"Good":          {"all is well", "", "", ""},
		"HTTP":          {"TLS only", "https:", "http:", "'https' is the only allowed URL scheme"},
		"Credentials":   {"no credentials in URLs", "https://", "https://u:p@", "user information is not permitted"},
		"Query":         {"no query", "/explore", "/explore?a=b", "query parameters are not permitted"},
		"Neither":       {"a url or a service", `{url: "https://127.0.0.1:8443/explore"}`, "{}", "set exactly one of url and service"},
		"Both":          {"not both", "explore\"}", `explore", service: {namespace: ns, name: s}}`, "set exactly one of url and service"},
		"Service":       {"a service", `{url: "https://127.0.0.1:8443/explore"}`, "{service: {namespace: ns, name: s, path: /x}}", ""},
		"Port":          {"a port that exists", `{url: "https://127.0.0.1:8443/explore"}`, "{service: {namespace: ns, name: s, port: 70000}}", "clientConfig.service.port"},
		"Bundle":        {"a bundle that is none", "explore\"}", "explore\", caBundle: anVuaw==}", "holds no certificate in PEM format"},
		"TimeoutZero":   {"time to answer", "timeoutSeconds: 3", "timeoutSeconds: 0", "must be from 1 to 30"},
		"TimeoutLong":   {"but not too much", "timeoutSeconds: 3", "timeoutSeconds: 31", "must be from 1 to 30"},
		"Policy":        {"a policy that is known", "failurePolicy: Fail", "failurePolicy: Maybe", "failurePolicy: Unsupported value"},
		"Version":       {"a version that kudo knows", "[v1, v1alpha1]", "[v1]", "must hold a version that kudo knows: v1alpha1"},
		"Operation":     {"an operation that exists", "ExploreHealthy", "Healthy", "operations[0]: Unsupported value"},
		"AnyNotAlone":   {"* is alone", "[ExploreHealthy]", `[ExploreHealthy, "*"]`, "* must be alone"},
		"NoOperation":   {"a rule that never matches", "[ExploreHealthy]", "[]", "rules[0].operations: Required"},
		"NoGroups":      {"a rule that never matches", "[foo.example.com]", "[]", "apiGroups: Required"},
		"NoVersions":    {"a rule that never matches", `apiVersions: ["*"]`, "apiVersions: []", "apiVersions: Required"},
		"NoResources":   {"a rule that never matches", "[foos]", "[]", "resources: Required"},
		"Subresource":   {"subresources are never explored", "[foos]", "[foos/status]", "is a subresource"},
		"Scope":         {"a scope that exists", "scope: Namespaced", "scope: Here", "scope: Unsupported value"},
		"Selector":      {"a selector that can be read", "failurePolicy:", "objectSelector: {matchExpressions: [{key: a, operator: Near}]}\n  failurePolicy:", "objectSelector.matchExpressions[0].operator"},
		"Condition":     {"an expression that compiles", "failurePolicy:", "matchConditions: [{name: a, expression: 'object.x =='}]\n  failurePolicy:", "matchConditions[0].expression"},
		"ConditionType": {"an expression that is true or false", "failurePolicy:", "matchConditions: [{name: a, expression: '1'}]\n  failurePolicy:", "it must be bool"},
		"ConditionVar":  {"variables that exist", "failurePolicy:", "matchConditions: [{name: a, expression: 'authorizer == 1'}]\n  failurePolicy:", "undeclared reference to 'authorizer'"},
		"ConditionOK":   {"a condition", "failurePolicy:", "matchConditions: [{name: a, expression: 'object.spec.x > 1 && oldObject != null && request.name != \"\"'}]\n  failurePolicy:", ""},
		"ConditionName": {"names are unique", "failurePolicy:", "matchConditions: [{name: a, expression: 'true'}, {name: a, expression: 'true'}]\n  failurePolicy:", "matchConditions[1].name: Duplicate"},
		"Name":          {"a name", "name: foo.example.com", "name: Foo", "webhooks[0].name"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(webhookBase, tc.from) {
				t.Fatalf("nothing to replace: %s", tc.from)
			}
			object := rawOf(t, strings.Replace(webhookBase, tc.from, tc.to, 1))
			v := &WebhookConfigurationValidator{}
			expect(t, tc.reason, v.Handle(t.Context(), request(admissionv1.Create, object, runtime.RawExtension{})), tc.want, "")
			expect(t, "an update of metadata is never denied", v.Handle(t.Context(), request(admissionv1.Update, object, object)), "", "")
		})
	}
	var twice configv1alpha1.ResourceExploringWebhookConfiguration
	if err := json.Unmarshal(rawOf(t, webhookBase).Raw, &twice); err != nil {
		t.Fatal(err)
	}
	twice.Webhooks = append(twice.Webhooks, twice.Webhooks[0])
	if err := CheckWebhookConfiguration(&twice); err == nil || !strings.Contains(err.Error(), "webhooks[1].name: Duplicate value") {
		t.Errorf("names are unique in a configuration: %v", err)
	}
}

var _ admission.Handler = (*WebhookConfigurationValidator)(nil)
