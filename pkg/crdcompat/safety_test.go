package crdcompat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// parse reads a definition.
func parse(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return crd
}

// definition has one version, whose spec has the one field f with a schema in flow style.
func definition(f string) string {
	return fmt.Sprintf(`
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {f: %s}}}}}
`, f)
}

// rulesOf are the rules of breaches, each once.
func rulesOf(breaches BreakingChanges) []Rule {
	out := []Rule{}
	for _, b := range breaches {
		if len(out) == 0 || out[len(out)-1] != b.Rule {
			out = append(out, b.Rule)
		}
	}
	return out
}

// check wants one rule, or none if it is empty.
func check(t *testing.T, reason string, old, new *apiextensionsv1.CustomResourceDefinition, want Rule) {
	t.Helper()
	wanted := []Rule{}
	if want != "" {
		wanted = append(wanted, want)
	}
	breaches := Compare(old, new)
	if diff := cmp.Diff(wanted, rulesOf(breaches)); diff != "" {
		t.Errorf("%s: -want +got:\n%s\n%s", reason, diff, breaches)
	}
	for _, b := range breaches {
		if b.Message == "" || b.Remedy == "" {
			t.Errorf("%s: a breach has a message and a remedy: %+v", reason, b)
		}
	}
}

// TestSchemaRules has an unsafe change and a safe one of each rule; safe is what the schema may become instead.
func TestSchemaRules(t *testing.T) {
	const obj = "type: object, properties: "
	for name, tc := range map[string]struct {
		reason            string
		old, unsafe, safe string
		rule              Rule
	}{
		"FieldRemoved":     {"fields stay, and new ones may come", "{" + obj + "{a: {type: string}}}", "{type: object}", "{" + obj + "{a: {type: string}, b: {type: string}}}", RuleFieldRemoved},
		"FieldTyped":       {"what held anything gets no schema", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}", "{type: object, x-kubernetes-preserve-unknown-fields: true, description: x}", RuleFieldTyped},
		"Required":         {"optional stays optional", "{required: [b], " + obj + "{a: {type: string}, b: {type: string}}}", "{required: [a, b], " + obj + "{a: {type: string}, b: {type: string}}}", "{" + obj + "{a: {type: string}, b: {type: string}}}", RuleRequired},
		"RequiredNew":      {"a new field is optional", "{type: object}", "{required: [a], " + obj + "{a: {type: string}}}", "{" + obj + "{a: {type: string}}}", RuleRequired},
		"Type":             {"types stay", "{type: string}", "{type: integer}", "{type: string, title: x}", RuleType},
		"TypeWider":        {"even if each old value would do", "{type: integer}", "{type: number}", "{type: integer, example: 1}", RuleType},
		"Format":           {"a format is a demand", "{type: string, format: date}", "{type: string, format: date-time}", "{type: string}", RuleFormat},
		"FormatAdded":      {"a format is a demand", "{type: string}", "{type: string, format: date}", "{type: string, description: x}", RuleFormat},
		"FormatWider":      {"int64 holds each int32", "{type: integer, format: int32}", "{type: integer, format: byte}", "{type: integer, format: int64}", RuleFormat},
		"Nullable":         {"null stays allowed", "{type: string, nullable: true}", "{type: string}", "{type: string, nullable: true, title: x}", RuleNullable},
		"NullableDefault":  {"a null would stay that was replaced", "{type: string, default: a}", "{type: string, default: a, nullable: true}", "{type: string, default: a}", RuleNullable},
		"Enum":             {"values stay", "{type: string, enum: [a, b]}", "{type: string, enum: [a, c]}", "{type: string, enum: [b, c, a]}", RuleEnum},
		"EnumAdded":        {"an enum is a demand", "{type: string}", "{type: string, enum: [a]}", "{type: string, title: x}", RuleEnum},
		"Maximum":          {"bounds move outwards", "{type: integer, maximum: 10}", "{type: integer, maximum: 9}", "{type: integer, maximum: 11, exclusiveMaximum: true}", RuleBounds},
		"MaximumExclusive": {"the bound itself counts", "{type: integer, maximum: 10}", "{type: integer, maximum: 10, exclusiveMaximum: true}", "{type: integer}", RuleBounds},
		"Minimum":          {"bounds move outwards", "{type: integer, minimum: 10}", "{type: integer, minimum: 11}", "{type: integer, minimum: 9, exclusiveMinimum: true}", RuleBounds},
		"MinimumExclusive": {"the bound itself counts", "{type: integer, minimum: 1, exclusiveMinimum: true}", "{type: integer, minimum: 2, exclusiveMinimum: true}", "{type: integer, minimum: 1}", RuleBounds},
		"BoundAdded":       {"a bound is a demand", "{type: integer}", "{type: integer, minimum: -5}", "{type: integer, title: x}", RuleBounds},
		"MultipleOf":       {"a divisor is wider", "{type: integer, multipleOf: 6}", "{type: integer, multipleOf: 4}", "{type: integer, multipleOf: 3}", RuleMultipleOf},
		"MaxLength":        {"lengths grow", "{type: string, maxLength: 5}", "{type: string, maxLength: 4}", "{type: string, maxLength: 6}", RuleLength},
		"MinLength":        {"a minimum of 0 is none", "{type: string}", "{type: string, minLength: 1}", "{type: string, minLength: 0}", RuleLength},
		"Pattern":          {"patterns go or stay", "{type: string, pattern: a}", "{type: string, pattern: '.*'}", "{type: string}", RulePattern},
		"MaxItems":         {"lists grow", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, maxItems: 3}", "{type: array, items: {type: string}, title: x}", RuleItemCount},
		"MinItems":         {"lists may be shorter", "{type: array, items: {type: string}, minItems: 2}", "{type: array, items: {type: string}, minItems: 3}", "{type: array, items: {type: string}, minItems: 1}", RuleItemCount},
		"UniqueItems":      {"twins stay allowed", "{type: array, items: {type: string}, uniqueItems: false}", "{type: array, items: {type: string}, uniqueItems: true}", "{type: array, items: {type: string}}", RuleUniqueItems},
		"MaxProperties":    {"maps grow", "{type: object, maxProperties: 3}", "{type: object, maxProperties: 2}", "{type: object, maxProperties: 4}", RulePropertyCount},
		"MinProperties":    {"maps may be smaller", "{type: object, minProperties: 3}", "{type: object, minProperties: 4}", "{type: object}", RulePropertyCount},
		"DefaultAdded":     {"no default comes", "{type: string}", "{type: string, default: a}", "{type: string, title: x}", RuleDefault},
		"DefaultChanged":   {"none changes, but in how it is written", "{type: object, default: {a: 1, b: 2}, " + "x-kubernetes-preserve-unknown-fields: true}", "{type: object, default: {a: 1, b: 3}, x-kubernetes-preserve-unknown-fields: true}", "{type: object, default: {b: 2, a: 1}, x-kubernetes-preserve-unknown-fields: true}", RuleDefault},
		"DefaultRemoved":   {"none goes", "{type: string, default: a}", "{type: string}", "{type: string, default: a, title: x}", RuleDefault},
		"DefaultInNew":     {"a new field brings none", "{type: object}", "{" + obj + "{a: {" + obj + "{b: {type: string, default: x}}}}}", "{" + obj + "{a: {" + obj + "{b: {type: string}}}}}", RuleDefault},
		"ValidationAdded":  {"no rule comes, but one may go", "{type: string, x-kubernetes-validations: [{rule: 'self != \"a\"'}]}", "{type: string, x-kubernetes-validations: [{rule: 'self != \"a\"'}, {rule: 'self != \"b\"'}]}", "{type: string}", RuleValidation},
		"ValidationEdited": {"none changes, but in what it says", "{type: string, x-kubernetes-validations: [{rule: 'self != \"a\"'}]}", "{type: string, x-kubernetes-validations: [{rule: 'self != \"b\"'}]}", "{type: string, x-kubernetes-validations: [{rule: 'self != \"a\"', message: no}]}", RuleValidation},
		"ValidationNew":    {"a new field brings none", "{type: object}", "{" + obj + "{a: {type: string, x-kubernetes-validations: [{rule: 'self != \"a\"'}]}}}", "{" + obj + "{a: {type: string}}}", RuleValidation},
		"OptionalOldSelf":  {"it makes a rule run on creation", "{type: string, x-kubernetes-validations: [{rule: 'true'}]}", "{type: string, x-kubernetes-validations: [{rule: 'true', optionalOldSelf: true}]}", "{type: string, x-kubernetes-validations: [{rule: 'true', optionalOldSelf: false}]}", RuleValidation},
		"AllOf":            {"fewer demands", "{type: string, allOf: [{minLength: 1}, {maxLength: 2}]}", "{type: string, allOf: [{minLength: 1}, {maxLength: 3}]}", "{type: string, allOf: [{maxLength: 2}]}", RuleCombination},
		"AnyOf":            {"more choices", "{type: string, anyOf: [{minLength: 5}]}", "{type: string, anyOf: [{minLength: 4}]}", "{type: string, anyOf: [{maxLength: 2}, {minLength: 5}]}", RuleCombination},
		"AnyOfAdded":       {"a choice is a demand", "{type: string}", "{type: string, anyOf: [{minLength: 5}]}", "{type: string, title: x}", RuleCombination},
		"OneOf":            {"a further choice may be one too many", "{type: string, oneOf: [{minLength: 5}]}", "{type: string, oneOf: [{minLength: 5}, {minLength: 6}]}", "{type: string}", RuleCombination},
		"Not":              {"what must not be", "{type: string, not: {enum: [a]}}", "{type: string, not: {enum: [a, b]}}", "{type: string, not: {enum: [a], description: x}}", RuleCombination},
		"Items":            {"items are fields", "{type: array, items: {type: string, maxLength: 3}}", "{type: array, items: {type: string, maxLength: 2}}", "{type: array, items: {type: string, maxLength: 4}}", RuleLength},
		"ItemsGone":        {"items have a schema", "{type: array, items: {type: string}}", "{type: array}", "{type: array, items: {type: string, title: x}}", RuleItems},
		"Additional":       {"values of maps stay", "{type: object, additionalProperties: {type: string}}", "{type: object}", "{type: object, additionalProperties: {type: string, nullable: true}}", RuleAdditionalProperties},
		"AdditionalTrue":   {"true prunes what objects hold", "{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}", "{type: object, additionalProperties: true}", "{type: object, additionalProperties: {type: object, properties: {a: {type: string}, b: {type: string}}}}", RuleAdditionalProperties},
		"AdditionalAdded":  {"where unknown fields were pruned, more is kept", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true, additionalProperties: {type: string}}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", RuleAdditionalProperties},
		"AdditionalMore":   {"where unknown fields were pruned, more is kept", "{type: object}", "{type: object, additionalProperties: false}", "{type: object, additionalProperties: {type: string}}", RuleAdditionalProperties},
		"Preserve":         {"unknown fields stay", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object}", "{type: object, x-kubernetes-preserve-unknown-fields: true, title: x}", RulePruning},
		"PreserveAdded":    {"more may be kept", "{type: object, nullable: true}", "{type: object}", "{type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}", RuleNullable},
		"Embedded":         {"embedded objects stay so", "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-preserve-unknown-fields: true}", "{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, title: x}", RuleEmbedded},
		"IntOrString":      {"both stay allowed", "{x-kubernetes-int-or-string: true}", "{x-kubernetes-preserve-unknown-fields: true}", "{x-kubernetes-int-or-string: true, title: x}", RuleIntOrString},
		"ListType":         {"atomic is the default", "{type: array, items: {type: string}}", "{type: array, items: {type: string}, x-kubernetes-list-type: set}", "{type: array, items: {type: string}, x-kubernetes-list-type: atomic}", RuleListType},
		"ListMapKeys":      {"keys are a set", "{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a, b]}", "{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [a]}", "{type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [b, a]}", RuleListMapKeys},
		"MapType":          {"granular is the default", "{type: object}", "{type: object, x-kubernetes-map-type: atomic}", "{type: object, x-kubernetes-map-type: granular}", RuleMapType},
		"Unrecognized":     {"what has no rule is unsafe", "{type: object}", "{type: object, patternProperties: {a: {type: string}}}", "{type: object, externalDocs: {url: x}}", RuleUnrecognized},
	} {
		t.Run(name, func(t *testing.T) {
			old, unsafe, safe := parse(t, definition(tc.old)), parse(t, definition(tc.unsafe)), parse(t, definition(tc.safe))
			check(t, tc.reason, old, unsafe, tc.rule)
			check(t, tc.reason+" (safe)", old, safe, "")
		})
	}
}

const twoVersions = `
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}, subresources: {status: {}}, selectableFields: [{jsonPath: .a}]}
  - {name: v0, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v0beta, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`

const webhook = `  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: x, name: y}, caBundle: QQ==}}}
`

// TestDefinitionRules replaces text in a definition of three versions; each pair is an edit from old to new.
func TestDefinitionRules(t *testing.T) {
	type edit []string
	drop0 := edit{"  - {name: v0, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", ""}
	dropBeta := edit{"  - {name: v0beta, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n", ""}
	one := edit(append(append([]string{}, drop0...), dropBeta...))
	swap := edit{"v1, served: true, storage: true", "v1, served: true, storage: false", "v0, served: true, storage: false", "v0, served: true, storage: true"}
	v2 := "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {%s: {type: string}}}}}\n"
	for name, tc := range map[string]struct {
		reason   string
		old, new edit
		hook     bool // old and new have a conversion webhook
		stored   []string
		want     Rule
	}{
		"Same":             {"nothing", nil, nil, false, nil, ""},
		"Scope":            {"scope", nil, edit{"Namespaced", "Cluster"}, false, nil, RuleScope},
		"Group":            {"group", nil, edit{"group: example.org", "group: example.com"}, false, nil, RuleNames},
		"Kind":             {"kind", nil, edit{"kind: Widget", "kind: Gadget, singular: widget, listKind: WidgetList"}, false, nil, RuleNames},
		"Plural":           {"plural", nil, edit{"plural: widgets", "plural: gadgets"}, false, nil, RuleNames},
		"NamesSpelled":     {"defaults may be spelled out", nil, edit{"kind: Widget", "kind: Widget, singular: widget, listKind: WidgetList"}, false, nil, ""},
		"ShortName":        {"people use short names", nil, edit{", shortNames: [wd]", ""}, false, nil, RuleNames},
		"ShortNameAdded":   {"further ones and categories break no client", nil, edit{"[wd]", "[w, wd], categories: [all]"}, false, nil, ""},
		"Served":           {"clients use served versions", nil, drop0, false, nil, RuleServedVersion},
		"ServedNoMore":     {"clients use served versions", nil, edit{"v0, served: true", "v0, served: false"}, false, nil, RuleServedVersion},
		"ServedAgain":      {"further ones break no client", nil, edit{"v0beta, served: false", "v0beta, served: true, deprecated: true"}, false, nil, ""},
		"Unserved":         {"no object and no client uses it", nil, dropBeta, false, nil, ""},
		"Stored":           {"objects may be stored in it", nil, dropBeta, false, []string{"v0beta", "v1"}, RuleStoredVersion},
		"Storage":          {"fields would be pruned", nil, swap, false, nil, RuleStorage},
		"StorageConverted": {"a webhook converts", nil, swap, true, nil, ""},
		"Status":           {"writers of status", nil, edit{"status: {}", ""}, false, nil, RuleSubresource},
		"Scale":            {"scale asks for numbers", nil, edit{"status: {}", "status: {}, scale: {specReplicasPath: .a, statusReplicasPath: .b}"}, false, nil, RuleSubresource},
		"Selectable":       {"selectors", nil, edit{"[{jsonPath: .a}]", "[]"}, false, nil, RuleSelectable},
		"SelectableAdded":  {"further ones", edit{"[{jsonPath: .a}]", "[]"}, nil, false, nil, ""},
		"Columns":          {"columns are for people", nil, edit{"selectableFields", "additionalPrinterColumns: [{name: A, type: string, jsonPath: .a}], selectableFields"}, false, nil, ""},
		"Added":            {"nothing is lost", nil, edit{"  versions:\n", "  versions:\n" + fmt.Sprintf(v2, "a")}, false, nil, ""},
		"AddedNarrow":      {"a cannot be seen in v2", nil, edit{"  versions:\n", "  versions:\n" + fmt.Sprintf(v2, "b")}, false, nil, RuleAddedVersion},
		"AddedConverted":   {"a webhook converts", nil, edit{"  versions:\n", "  versions:\n" + fmt.Sprintf(v2, "b")}, true, nil, ""},
		"SchemaGone":       {"a version has a schema", nil, edit{"v0, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}", "v0, served: true, storage: false"}, false, nil, RuleType},
		"Webhook":          {"the address", nil, edit{"name: y", "name: z"}, true, nil, RuleConversion},
		"WebhookPort":      {"443 is the default", nil, edit{"name: y", "name: y, port: 443"}, true, nil, ""},
		"WebhookBundle":    {"trust", nil, edit{"QQ==", "Qg=="}, true, nil, RuleConversion},
		"WebhookInjected":  {"an injected bundle stays", nil, edit{", caBundle: QQ==", ""}, true, nil, ""},
		"WebhookReviews":   {"what it understands", edit{"[v1]", "[v1, v1beta1]"}, nil, true, nil, RuleConversion},
		"WebhookMore":      {"what it understands besides", nil, edit{"[v1]", "[v1, v1beta1]"}, true, nil, ""},
		"WebhookGone":      {"fields would be pruned", nil, edit{webhook, ""}, true, nil, RuleConversion},
		"WebhookCame":      {"it may not answer", edit{webhook, ""}, nil, true, nil, RuleConversion},
		"WebhookFirst":     {"nothing was converted before", append(edit{webhook, ""}, one...), append(edit{"  versions:\n", "  versions:\n" + fmt.Sprintf(v2, "b")}, one...), true, nil, ""},
		"WebhookNowhere":   {"it has no address", append(edit{webhook, ""}, one...), append(edit{"service: {namespace: x, name: y}, ", ""}, one...), true, nil, RuleConversion},
		"Pruning":          {"unknown fields", edit{"  scope", "  preserveUnknownFields: true\n  scope"}, nil, false, nil, RulePruning},
	} {
		t.Run(name, func(t *testing.T) {
			make := func(e edit) *apiextensionsv1.CustomResourceDefinition {
				text := twoVersions
				if tc.hook {
					text += webhook
				}
				for i := 0; i < len(e); i += 2 {
					if !strings.Contains(text, e[i]) {
						t.Fatalf("the definition has no %q", e[i])
					}
				}
				return parse(t, strings.NewReplacer(e...).Replace(text))
			}
			old, new := make(tc.old), make(tc.new)
			old.Status.StoredVersions = tc.stored
			check(t, tc.reason, old, new, tc.want)
		})
	}
}

func TestOrderAndText(t *testing.T) {
	old := parse(t, definition("{type: object, properties: {b: {type: string, maxLength: 3}, a.b: {type: array, items: {type: string}}}}"))
	new := parse(t, definition("{type: object, properties: {b: {type: string, maxLength: 2, pattern: x}, a.b: {type: array, items: {type: integer}}}}"))
	want := `VERSION   PATH                RULE      BREACH                                REMEDY
v1        spec.f.b            Length    maxLength was 3 and is 2              leave it as it was or widen it; what must be narrower belongs into a new version
v1        spec.f.b            Pattern   pattern was absent and is "x"         leave it as it was or widen it; what must be narrower belongs into a new version
v1        spec.f["a.b"][]     Type      type was "string" and is "integer"    leave it as it was, and make the change in a new version with a conversion
`
	for range 20 {
		if got := Compare(old, new).String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Fatalf("breaches come in one order:\n%s", cmp.Diff(want, got))
		}
	}
}
