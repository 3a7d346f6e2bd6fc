package crdcompat

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestMessages checks the path and the text of a change: each has the old and the new value, with defaults as absent.
func TestMessages(t *testing.T) {
	for _, tc := range []struct{ reason, old, new, path, message string }{
		{"a bound that comes", "{type: integer}", "{type: integer, maximum: 3}", "spec.f", "maximum was absent and is 3"},
		{"a bound that goes", "{type: integer, minimum: 1.5, exclusiveMinimum: true}", "{type: integer}", "spec.f", "minimum was 1.5 (exclusive) and is absent"},
		{"a bound that is excluded", "{type: integer, maximum: 3}", "{type: integer, maximum: 3, exclusiveMaximum: true}", "spec.f", "maximum was 3 and is 3 (exclusive)"},
		{"an enum that comes", "{type: string}", "{type: string, enum: [a, b]}", "spec.f", `enum was absent and is ["a","b"]`},
		{"an enum that goes", "{type: string, enum: [a]}", "{type: string}", "spec.f", `enum was ["a"] and is absent`},
		{"a default of false", "{type: boolean, default: true}", "{type: boolean, default: false}", "spec.f", "default was true and is false"},
		{"a format that goes", "{type: string, format: date}", "{type: string}", "spec.f", `format was "date" and is absent`},
		{"items that go", "{type: array, items: {type: string}}", "{type: array}", "spec.f", `the schema of items was "present" and is "absent"`},
		{"a field in a list", "{type: array, items: {type: object, properties: {a: {type: string}}}}", "{type: array, items: {type: object}}", "spec.f[].a", `the field of type "string" was removed`},
		{"a field in a map", "{type: object, additionalProperties: {type: string}}", "{type: object, additionalProperties: {type: string, maxLength: 3}}", "spec.f[*]", "maxLength was absent and is 3"},
		{"a field with a dot", "{type: object, properties: {a.b: {type: string}}}", "{type: object}", `spec.f["a.b"]`, `the field of type "string" was removed`},
		{"a field with an empty name", "{type: object, properties: {'': {type: string}}}", "{type: object}", `spec.f[""]`, `the field of type "string" was removed`},
		{"a field without a type", "{type: object, properties: {a: {x-kubernetes-int-or-string: true}}}", "{type: object}", "spec.f.a", "the field of type absent was removed"},
		{"a new field", "{type: object}", "{type: object, properties: {a: {type: integer}}}", "spec.f.a", `the field is new (type "integer")`},
		{"a field that may be left out", "{type: object, required: [a]}", "{type: object}", "spec.f.a", "the field was required and is optional"},
		{"a rule that comes", "{type: object, x-kubernetes-validations: [{rule: old}]}", "{type: object, x-kubernetes-validations: [{rule: old}, {rule: new}]}", "spec.f", `the validation rule "new" was absent (rules: ["old"]) and is there`},
		{"a rule that goes", "{type: object, x-kubernetes-validations: [{rule: old}]}", "{type: object}", "spec.f", `the validation rule "old" was removed`},
		{"choices", "{anyOf: [{type: string, title: x}]}", "{anyOf: [{type: integer}]}", "spec.f", `anyOf was [{"type":"string"}] and is [{"type":"integer"}]`},
		{"a multiple", "{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 2}", "spec.f", "multipleOf was 4 and is 2"},
	} {
		old, new := parse(t, definition(tc.old)), parse(t, definition(tc.new))
		breaches, safe := Diff(old, new)
		got := make([]Change, 0, len(breaches)+len(safe))
		for _, b := range breaches {
			got = append(got, Change{b.Version, b.Path, b.Message})
		}
		got = append(got, safe...)
		if diff := cmp.Diff([]Change{{"v1", tc.path, tc.message}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestMessagesAreBounded checks that a large value is no large message.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 10*shownBytes)
	for _, pair := range [][2]string{
		{"{type: string}", "{type: string, pattern: " + long + "}"},
		{"{type: string}", "{type: string, enum: [" + long + "]}"},
		{"{type: string}", "{type: string, anyOf: [{pattern: " + long + "}]}"},
		{"{type: string}", "{type: string, x-kubernetes-validations: [{rule: " + long + "}]}"},
		{"{type: object, additionalProperties: {type: string, pattern: " + long + "}}", "{type: object}"},
	} {
		breaches := Compare(parse(t, definition(pair[0])), parse(t, definition(pair[1])))
		if len(breaches) != 1 || len(breaches[0].Message) > 3*shownBytes || strings.Contains(breaches[0].Message, "\uFFFD") {
			t.Errorf("%.60s: %+v", pair[1], breaches)
		}
	}
}

// TestAddedVersionNamesTheFirstBreach checks that one breach stands for all that a version lacks of another one.
func TestAddedVersionNamesTheFirstBreach(t *testing.T) {
	old := parse(t, definition("{type: object, properties: {a: {type: string}, b: {type: string}}}"))
	new := old.DeepCopy()
	v2 := parse(t, definition("{type: object}")).Spec.Versions[0]
	v2.Name, v2.Storage = "v2", false
	new.Spec.Versions = append(new.Spec.Versions, v2)
	got := Compare(old, new)
	want := BreakingChanges{{Version: "v2", Path: "spec.f.a", Rule: RuleAddedVersion, Remedy: remedy(RuleAddedVersion),
		Message: `the version is new, nothing converts, and its schema is narrower than that of v1 in 2 places; the first: FieldRemoved: the field of type "string" was removed`}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wide := old.DeepCopy()
	same := *old.Spec.Versions[0].DeepCopy()
	same.Name, same.Storage = "v2", false
	wide.Spec.Versions = append(wide.Spec.Versions, same)
	breaches, safe := Diff(old, wide)
	if diff := cmp.Diff([]Change{{"v2", "", "the version is new"}}, safe); diff != "" || !breaches.Safe() {
		t.Errorf("a version with the same schema is safe: %s\n%s", breaches, diff)
	}
}

// TestEndpoint checks which webhooks are the same: defaults are spelled out.
func TestEndpoint(t *testing.T) {
	port, path, address := int32(8443), "/convert", "https://a.example/convert"
	service := func(port *int32, path *string) *apiextensionsv1.WebhookClientConfig {
		return &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: "hook", Port: port, Path: path}}
	}
	for _, tc := range []struct {
		reason  string
		webhook *apiextensionsv1.WebhookConversion
		want    string
	}{
		{"no webhook", nil, "none"},
		{"no client", &apiextensionsv1.WebhookConversion{}, "none"},
		{"a client without an address", &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{}}, "none"},
		{"a URL", &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &address}}, address},
		{"a service with defaults", &apiextensionsv1.WebhookConversion{ClientConfig: service(nil, nil)}, "service ns/hook:443"},
		{"a service", &apiextensionsv1.WebhookConversion{ClientConfig: service(&port, &path)}, "service ns/hook:8443/convert"},
	} {
		conversion := &apiextensionsv1.CustomResourceConversion{Webhook: tc.webhook}
		if got := endpoint(conversion); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
		if reachable(conversion) {
			t.Errorf("%s: a webhook that understands no review cannot be asked", tc.reason)
		}
		if tc.webhook == nil {
			continue
		}
		if tc.webhook.ConversionReviewVersions = []string{"v2"}; reachable(conversion) {
			t.Errorf("%s: no API server sends reviews of v2", tc.reason)
		}
		tc.webhook.ConversionReviewVersions = []string{"v2", "v1beta1"}
		if got := reachable(conversion); got != (tc.want != "none") {
			t.Errorf("%s: can be asked: %t", tc.reason, got)
		}
	}
}

// TestMultipleOfParts checks that a divisor that is no whole number is not taken for a wider one: its multiples are rounded.
func TestMultipleOfParts(t *testing.T) {
	for _, multiple := range []string{"0.25", "0"} {
		check(t, multiple, parse(t, definition("{type: number, multipleOf: 0.5}")), parse(t, definition("{type: number, multipleOf: "+multiple+"}")), RuleMultipleOf)
	}
}

// TestMissing checks that names are sorted, each once.
func TestMissing(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		want, have []string
		missing    []string
	}{
		{"nothing is wanted", nil, []string{"a"}, nil},
		{"all is there", []string{"a", "b"}, []string{"b", "a", "c"}, nil},
		{"sorted and once", []string{"c", "a", "c", "b"}, []string{"b"}, []string{"a", "c"}},
	} {
		if diff := cmp.Diff(tc.missing, missing(tc.want, tc.have)); diff != "" {
			t.Errorf("%s: %s", tc.reason, diff)
		}
	}
}

// TestProblemsAreCounted checks how many problems of an object are listed.
func TestProblemsAreCounted(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	for _, n := range []int{1, namedProblems, namedProblems + 1} {
		problems := make([]string, n)
		for i := range problems {
			problems[i] = fmt.Sprint(i)
		}
		found := Findings{}
		found.add("v1", object, problems)
		if got := found.Objects[0]; len(got.Problems) != min(n, namedProblems) || got.More != n-len(got.Problems) {
			t.Errorf("%d problems: %+v", n, got)
		}
	}
}

// TestSource checks in which version objects are read that are checked as a version of the new definition.
func TestSource(t *testing.T) {
	crd := func(strategy apiextensionsv1.ConversionStrategyType, versions ...string) *apiextensionsv1.CustomResourceDefinition {
		out := &apiextensionsv1.CustomResourceDefinition{}
		out.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
		for _, text := range versions { // such as "v1 served stored"
			words := strings.Fields(text)
			out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
				Name: words[0], Served: strings.Contains(text, "served"), Storage: strings.Contains(text, "stored"),
			})
		}
		return out
	}
	const none, hook = apiextensionsv1.NoneConverter, apiextensionsv1.WebhookConverter
	for _, tc := range []struct {
		reason   string
		live     []string
		strategy apiextensionsv1.ConversionStrategyType
		want     string
	}{
		{"the version itself", []string{"v1 served stored", "v2 served"}, none, "v2"},
		{"the version itself, with a webhook", []string{"v1 served stored", "v2 served"}, hook, "v2"},
		{"the storage version", []string{"v0 served", "v1 served stored"}, none, "v1"},
		{"the first that is served", []string{"v0", "v1 served", "v3 served", "v4 stored"}, none, "v1"},
		{"one that is not served any more", []string{"v1 served stored", "v2"}, none, "v1"},
		{"a webhook makes it, which is not asked yet", []string{"v1 served stored"}, hook, ""},
		{"no version is served", []string{"v1 stored"}, none, ""},
	} {
		if got := source(crd(none, tc.live...), crd(tc.strategy), "v2"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestValidateSkipsUnusedVersions checks that a version that is neither served nor stored is not checked, and that
// errors name kind, version and definition.
func TestValidateSkipsUnusedVersions(t *testing.T) {
	crd := parse(t, definition("{type: string}"))
	unused := *crd.Spec.Versions[0].DeepCopy()
	unused.Name, unused.Served, unused.Storage, unused.Schema = "v0", false, false, nil
	crd.Spec.Versions = append(crd.Spec.Versions, unused)
	lister := &pages{}
	if _, err := Validate(t.Context(), crd, crd, lister); err != nil || !cmp.Equal([]string{"v1"}, lister.asked) {
		t.Errorf("asked for %v: %v", lister.asked, err)
	}
	_, err := Validate(t.Context(), crd, crd, brokenLister{})
	const want = "reading Widget.example.org objects of version v1 to check them against widgets.example.org: refused"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	crd.Spec.Versions[1].Served = true
	if _, err := Validate(t.Context(), crd, crd, lister); err == nil || !strings.Contains(err.Error(), "the schema of version v0 of widgets.example.org would be refused by the API server: spec.versions[].schema.openAPIV3Schema is missing") {
		t.Errorf("a served version without a schema: %v", err)
	}
}

// brokenLister lists nothing.
type brokenLister struct{}

func (brokenLister) List(context.Context, schema.GroupVersionKind, int64, string) (*unstructured.UnstructuredList, error) {
	return nil, fmt.Errorf("refused")
}

// TestCountNulls checks that nulls are counted at any depth.
func TestCountNulls(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  int
	}{
		{nil, 1}, {"", 0}, {map[string]any{}, 0}, {map[string]any{"a": nil, "b": []any{nil, map[string]any{"c": nil}}}, 3},
	} {
		if got := countNulls(tc.value); got != tc.want {
			t.Errorf("%v: got %d, want %d", tc.value, got, tc.want)
		}
	}
}

// TestRemedies checks that each rule has a remedy, and which rules share one.
func TestRemedies(t *testing.T) {
	for rule, want := range map[Rule]string{
		RuleScope: "publish a definition of another name", RuleNames: "publish a definition of another name", RuleStoredVersion: "status.storedVersions",
		RuleServedVersion: "served: false", RuleAddedVersion: "conversion webhook", RuleStorage: "conversion webhook", RuleConversion: "once the new webhook answers",
		RuleFieldRemoved: "mark it as deprecated", RuleDefault: "in a new version with a conversion", RuleUnrecognized: "apply it by hand", RuleEnum: "or widen it",
	} {
		if got := remedy(rule); !strings.Contains(got, want) {
			t.Errorf("%s: %q has no %q", rule, got, want)
		}
	}
}

// TestMessageExpressions checks that a rule of a package does not print what custom resources hold.
func TestMessageExpressions(t *testing.T) {
	new := parse(t, storing("v1 sS a"))
	new.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: "false", Message: "it is wrong", MessageExpression: "'wrong: ' + self.a"}}
	for _, quotes := range []bool{true, false} {
		check, err := newChecker(new, &new.Spec.Versions[0], quotes)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{"kind": new.Spec.Names.Kind, "metadata": map[string]any{"name": "a"}, "a": "hunter22"}}
		got := strings.Join(check.problems(t.Context(), object), " ")
		if strings.Contains(got, "hunter22") != quotes || strings.Contains(got, "it is wrong") == quotes {
			t.Errorf("quotes %t: %s", quotes, got)
		}
	}
}
