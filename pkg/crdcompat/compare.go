package crdcompat

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Compare returns what breaks objects and clients of old once new replaces it. Versions are stored that stand in the
// status of old, or the storage version if its status names none, as in a file. Descriptions, printer columns,
// categories and further short names never count; a change that no rule knows does.
func Compare(old, new *apiextensionsv1.CustomResourceDefinition) BreakingChanges {
	breaches, _ := Diff(old, new)
	return breaches
}

// Diff is Compare with the safe changes of names, versions and schemas. Those of texts for people are left out.
func Diff(old, new *apiextensionsv1.CustomResourceDefinition) (BreakingChanges, []Change) {
	before, after := old.DeepCopy(), new.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(before)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&after.Spec)
	c := &comparer{}
	c.identity(before, after)
	c.pruning(before, after)
	c.conversion(before, after)
	c.storage(before, after)
	for _, version := range before.Spec.Versions {
		c.version(before, after, version)
	}
	for _, version := range after.Spec.Versions {
		if find(before, version.Name) == nil {
			c.addedVersion(before, after, version)
		}
	}
	c.unrecognized(before, after)
	return sortBreaches(c.breaches), sortChanges(c.safe)
}

// comparer collects changes of one version, or of none.
type comparer struct {
	at       string
	breaches BreakingChanges
	safe     []Change
}

func (c *comparer) breach(path string, rule Rule, format string, args ...any) {
	c.breaches = append(c.breaches, BreakingChange{Version: c.at, Path: path, Rule: rule, Message: fmt.Sprintf(format, args...),
		Remedy: remedy(rule)})
}

func (c *comparer) allow(path, format string, args ...any) {
	c.safe = append(c.safe, Change{Version: c.at, Path: path, Message: fmt.Sprintf(format, args...)})
}

// decide notes a change of a value: as a breach, or as safe.
func (c *comparer) decide(safe bool, path string, rule Rule, what string, old, new any) {
	message := fmt.Sprintf("%s was %s and is %s", what, show(old), show(new))
	if safe {
		c.allow(path, "%s", message)
		return
	}
	c.breach(path, rule, "%s", message)
}

func find(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

func (c *comparer) identity(old, new *apiextensionsv1.CustomResourceDefinition) {
	a, b := old.Spec.Names, new.Spec.Names
	for _, field := range []struct{ path, old, new string }{
		{"metadata.name", old.Name, new.Name}, {"spec.group", old.Spec.Group, new.Spec.Group},
		{"spec.names.plural", a.Plural, b.Plural}, {"spec.names.singular", a.Singular, b.Singular},
		{"spec.names.kind", a.Kind, b.Kind}, {"spec.names.listKind", a.ListKind, b.ListKind},
	} {
		if field.old != field.new {
			c.decide(false, field.path, RuleNames, "the name", field.old, field.new)
		}
	}
	if old.Spec.Scope != new.Spec.Scope {
		c.decide(false, "spec.scope", RuleScope, "scope", old.Spec.Scope, new.Spec.Scope)
	}
	for _, name := range missing(a.ShortNames, b.ShortNames) {
		c.breach("spec.names.shortNames", RuleNames, "the short name %s was removed", show(name))
	}
}

func (c *comparer) pruning(old, new *apiextensionsv1.CustomResourceDefinition) {
	if a, b := old.Spec.PreserveUnknownFields, new.Spec.PreserveUnknownFields; a != b {
		c.decide(false, "spec.preserveUnknownFields", RulePruning, "preserveUnknownFields", a, b)
	}
}

// conversion wants that each version can be had of each object as before. Whether a webhook answers is not seen here, so
// one that is in use must stay what it was.
func (c *comparer) conversion(old, new *apiextensionsv1.CustomResourceDefinition) {
	const path = "spec.conversion"
	a, b := old.Spec.Conversion, new.Spec.Conversion
	if a.Strategy != b.Strategy {
		// Nothing was converted while there was one version, and objects in it are not converted now.
		first := a.Strategy == apiextensionsv1.NoneConverter && b.Strategy == apiextensionsv1.WebhookConverter && len(old.Spec.Versions) == 1 &&
			reachable(b)
		c.decide(first, path+".strategy", RuleConversion, "strategy", a.Strategy, b.Strategy)
		return
	}
	if a.Strategy != apiextensionsv1.WebhookConverter {
		return
	}
	x, y := endpoint(a), endpoint(b)
	if x != y {
		c.decide(false, path+".webhook.clientConfig", RuleConversion, "the webhook", x, y)
	}
	if ca, cb := bundle(a), bundle(b); cb != "" && ca != cb {
		c.breach(path+".webhook.clientConfig.caBundle", RuleConversion, "caBundle was one of %d bytes and is another one of %d bytes", len(ca),
			len(cb))
	}
	if va, vb := reviews(a), reviews(b); !slices.Equal(va, vb) {
		safe := len(missing(va, vb)) == 0
		c.decide(safe, path+".webhook.conversionReviewVersions", RuleConversion, "conversionReviewVersions", va, vb)
	}
}

func client(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.WebhookClientConfig {
	if conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig
}

// endpoint is the address of a webhook with its defaults.
func endpoint(conversion *apiextensionsv1.CustomResourceConversion) string {
	config := client(conversion)
	switch {
	case config == nil:
		return "none"
	case config.URL != nil:
		return *config.URL
	case config.Service == nil:
		return "none"
	}
	s := config.Service
	port, path := int32(443), ""
	if s.Port != nil {
		port = *s.Port
	}
	if s.Path != nil {
		path = *s.Path
	}
	return fmt.Sprintf("service %s/%s:%d%s", s.Namespace, s.Name, port, path)
}

func bundle(conversion *apiextensionsv1.CustomResourceConversion) string {
	if config := client(conversion); config != nil {
		return string(config.CABundle)
	}
	return ""
}

func reviews(conversion *apiextensionsv1.CustomResourceConversion) []string {
	if conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ConversionReviewVersions
}

func reachable(conversion *apiextensionsv1.CustomResourceConversion) bool {
	return endpoint(conversion) != "none" && slices.ContainsFunc(reviews(conversion), func(v string) bool {
		return v == "v1" ||
			v == "v1beta1"
	})
}

// storage wants that no field is lost when objects are written in another version: a webhook converts them, or nothing does and the
// version takes all that the versions take in which they may be stored.
func (c *comparer) storage(old, new *apiextensionsv1.CustomResourceDefinition) {
	a, b := storageVersions(old), storageVersions(new)
	if a == b {
		return
	}
	is := find(new, b) // nil if several versions are marked
	switch {
	case is == nil:
		c.decide(false, "spec.versions", RuleStorage, "the storage version", a, b)
	case new.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter:
		c.decide(reachable(new.Spec.Conversion), "spec.versions", RuleStorage, "the storage version", a, b)
	default:
		_, narrower := firstNarrowing(old, is)
		c.decide(narrower == nil, "spec.versions", RuleStorage, "the storage version", a, b)
	}
}

func storageVersions(crd *apiextensionsv1.CustomResourceDefinition) string {
	var names []string
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			names = append(names, version.Name)
		}
	}
	return strings.Join(names, ",")
}

// unrecognized compares what no other rule has looked at, so that a field of a later API is not overlooked.
func (c *comparer) unrecognized(old, new *apiextensionsv1.CustomResourceDefinition) {
	rest := func(crd *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionSpec {
		s := *crd.Spec.DeepCopy()
		s.Group, s.Scope, s.PreserveUnknownFields, s.Versions = "", "", false, nil
		s.Names = restOfNames(s.Names)
		s.Conversion = restOfConversion(s.Conversion)
		return s
	}
	if a, b := rest(old), rest(new); !equality.Semantic.DeepEqual(a, b) {
		c.decide(false, "spec", RuleUnrecognized, "the rest of the spec", a, b)
	}
}

func restOfNames(n apiextensionsv1.CustomResourceDefinitionNames) apiextensionsv1.CustomResourceDefinitionNames {
	n.Plural, n.Singular, n.Kind, n.ListKind, n.ShortNames, n.Categories = "", "", "", "", nil, nil
	return n
}

func restOfConversion(conversion *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	conversion.Strategy = ""
	if webhook := conversion.Webhook; webhook != nil {
		webhook.ConversionReviewVersions = nil
		webhook.ClientConfig = restOfClient(webhook.ClientConfig)
		conversion.Webhook = nilIfEmpty(webhook)
	}
	return conversion
}

func restOfClient(config *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.WebhookClientConfig {
	if config == nil {
		return nil
	}
	config.URL, config.CABundle = nil, nil
	if s := config.Service; s != nil {
		s.Namespace, s.Name, s.Port, s.Path = "", "", nil, nil
		config.Service = nilIfEmpty(s)
	}
	return nilIfEmpty(config)
}

// nilIfEmpty returns a value, or nil if nothing of it is left.
func nilIfEmpty[T any](value *T) *T {
	if equality.Semantic.DeepEqual(*value, *new(T)) {
		return nil
	}
	return value
}
