// Package crdcompat decides whether a CustomResourceDefinition may be replaced by another one without breaking the objects
// and clients that exist: from the two definitions alone, and by reading the objects.
package crdcompat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// Rule names what a change would break.
type Rule string

// Rules of the definition as a whole, and of its versions.
const (
	RuleScope         Rule = "Scope"         // namespaced or cluster-scoped
	RuleNames         Rule = "Names"         // group, plural, kind and the like; short names that go
	RuleStoredVersion Rule = "StoredVersion" // a version in which objects may be stored goes
	RuleServedVersion Rule = "ServedVersion" // a version that clients may use goes
	RuleAddedVersion  Rule = "AddedVersion"  // objects cannot be read in a new version without conversion
	RuleStorage       Rule = "StorageVersion"
	RuleConversion    Rule = "Conversion"
	RuleSubresource   Rule = "Subresource"
	RuleSelectable    Rule = "SelectableField"
	RulePruning       Rule = "PreserveUnknownFields" // fields that were kept would be dropped
	RuleUnrecognized  Rule = "Unrecognized"          // a change that this package has no rule for
)

// Rules of the schema of a version.
const (
	RuleFieldRemoved         Rule = "FieldRemoved"
	RuleFieldTyped           Rule = "FieldTyped" // a field that could hold anything gets a schema
	RuleRequired             Rule = "Required"
	RuleType                 Rule = "Type"
	RuleFormat               Rule = "Format"
	RuleNullable             Rule = "Nullable"
	RuleEnum                 Rule = "Enum"
	RuleBounds               Rule = "Bounds" // minimum and maximum
	RuleMultipleOf           Rule = "MultipleOf"
	RuleLength               Rule = "Length" // minLength and maxLength
	RulePattern              Rule = "Pattern"
	RuleItemCount            Rule = "ItemCount" // minItems and maxItems
	RuleUniqueItems          Rule = "UniqueItems"
	RulePropertyCount        Rule = "PropertyCount" // minProperties and maxProperties
	RuleDefault              Rule = "Default"
	RuleValidation           Rule = "ValidationRule" // x-kubernetes-validations
	RuleCombination          Rule = "Combination"    // allOf, anyOf, oneOf, not
	RuleItems                Rule = "Items"
	RuleAdditionalProperties Rule = "AdditionalProperties"
	RuleEmbedded             Rule = "EmbeddedResource"
	RuleIntOrString          Rule = "IntOrString"
	RuleListType             Rule = "ListType"
	RuleListMapKeys          Rule = "ListMapKeys"
	RuleMapType              Rule = "MapType"
)

// BreakingChange is a change that is not safe.
type BreakingChange struct {
	// Version of the definition; empty if the change is none of a version.
	Version string `json:"version,omitempty"`
	// Path of the field from the root of objects, or of the definition if Version is empty: spec.list[].name, spec.map[*].
	Path string `json:"path,omitempty"`
	// Rule that is broken.
	Rule Rule `json:"rule"`
	// Message has the old and the new value.
	Message string `json:"message"`
	// Remedy says what can be done.
	Remedy string `json:"remedy"`
}

// Change is one that is safe.
type Change struct {
	// Version and Path as in BreakingChange.
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	// Message has the old and the new value.
	Message string `json:"message"`
}

// BreakingChanges are ordered by version, path, rule and message.
type BreakingChanges []BreakingChange

// Safe tells that there is none.
func (b BreakingChanges) Safe() bool { return len(b) == 0 }

// Rows are the cells of a table, with a title row.
func (b BreakingChanges) Rows() [][]string {
	rows := [][]string{{"VERSION", "PATH", "RULE", "BREACH", "REMEDY"}}
	for _, x := range b {
		rows = append(rows, []string{dash(x.Version), dash(x.Path), string(x.Rule), x.Message, x.Remedy})
	}
	return rows
}

// String is a table; empty if there is no breach.
func (b BreakingChanges) String() string {
	if len(b) == 0 {
		return ""
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 8, 3, ' ', 0)
	for _, row := range b.Rows() {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return out.String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func sortBreaches(all BreakingChanges) BreakingChanges {
	slices.SortStableFunc(all, func(a, b BreakingChange) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Path, b.Path), strings.Compare(string(a.Rule), string(b.Rule)),
			strings.Compare(a.Message, b.Message))
	})
	return all
}

func sortChanges(all []Change) []Change {
	slices.SortStableFunc(all, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	return all
}

// remedy says what can be done about a breach.
func remedy(rule Rule) string {
	switch rule {
	case RuleScope, RuleNames:
		return "keep it, or publish a definition of another name and move the objects"
	case RuleStoredVersion:
		return "rewrite all objects in the storage version and take the old one out of status.storedVersions first, which kudo does of what it " +
			"has installed, and kubectl kudo crds migrate of any definition"
	case RuleServedVersion:
		return "keep serving the version (deprecated: true) until no client uses it; then set served: false in the cluster by hand, and " +
			"remove it"
	case RuleAddedVersion, RuleStorage:
		return "give a conversion webhook, or keep the schemas of the versions alike"
	case RuleConversion:
		return "keep the conversion as it is, or change it by hand once the new webhook answers"
	case RuleFieldRemoved:
		return "keep the field and mark it as deprecated in its description, or drop it in a new version"
	case RuleFieldTyped, RuleRequired, RuleType, RuleDefault, RuleItems, RuleListType, RuleListMapKeys, RuleMapType, RuleEmbedded,
		RuleIntOrString:
		return "leave it as it was, and make the change in a new version with a conversion"
	case RuleUnrecognized:
		return "look at the change and apply it by hand"
	}
	return "leave it as it was or widen it; what must be narrower belongs into a new version"
}
