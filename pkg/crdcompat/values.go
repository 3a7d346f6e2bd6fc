package crdcompat

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// values compares what a single value must obey.
func (c *comparer) values(path string, old, new *props) {
	c.bound(path, "maximum", bound{old.Maximum, old.ExclusiveMaximum}, bound{new.Maximum, new.ExclusiveMaximum}, 1)
	c.bound(path, "minimum", bound{old.Minimum, old.ExclusiveMinimum}, bound{new.Minimum, new.ExclusiveMinimum}, -1)
	for _, count := range []struct {
		rule     Rule
		what     string
		old, new *int64
		most     bool
	}{
		{RuleLength, "maxLength", old.MaxLength, new.MaxLength, true},
		{RuleLength, "minLength", old.MinLength, new.MinLength, false},
		{RuleItemCount, "maxItems", old.MaxItems, new.MaxItems, true},
		{RuleItemCount, "minItems", old.MinItems, new.MinItems, false},
		{RulePropertyCount, "maxProperties", old.MaxProperties, new.MaxProperties, true},
		{RulePropertyCount, "minProperties", old.MinProperties, new.MinProperties, false},
	} {
		a, b := limit(count.old, count.most), limit(count.new, count.most)
		if a != b {
			c.decide((b > a) == count.most, path, count.rule, count.what, count.old, count.new)
		}
	}
	if a, b := old.MultipleOf, new.MultipleOf; !samePointer(a, b) {
		safe := b == nil || a != nil && whole(*a) && whole(*b) && *b != 0 && math.Mod(*a, *b) == 0
		c.decide(safe, path, RuleMultipleOf, "multipleOf", a, b)
	}
	if old.Pattern != new.Pattern {
		c.decide(new.Pattern == "", path, RulePattern, "pattern", old.Pattern, new.Pattern)
	}
	if old.UniqueItems != new.UniqueItems {
		c.decide(!new.UniqueItems, path, RuleUniqueItems, "uniqueItems", old.UniqueItems, new.UniqueItems)
	}
	c.enum(path, old, new)
}

// limit is a count with its default.
func limit(n *int64, most bool) int64 {
	switch {
	case n != nil:
		return *n
	case most:
		return math.MaxInt64
	}
	return 0
}

func whole(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<53 }

func samePointer[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// bound is a maximum or a minimum of a number, nil if there is none. An exclusive bound is itself not allowed.
type bound struct {
	number    *float64
	exclusive bool
}

// shown returns the bound as messages show it.
func (b bound) shown() any {
	switch {
	case b.number == nil:
		return nil
	case b.exclusive:
		return plain(strconv.FormatFloat(*b.number, 'g', -1, 64) + " (exclusive)")
	}
	return *b.number
}

// bound compares a maximum (sign 1) or minimum (sign -1).
func (c *comparer) bound(path, what string, old, new bound, sign float64) {
	a, b := old.number, new.number
	if samePointer(a, b) && (old.exclusive == new.exclusive || b == nil) {
		return
	}
	safe := b == nil || a != nil && (sign**b > sign**a || *b == *a && !new.exclusive)
	c.decide(safe, path, RuleBounds, what, old.shown(), new.shown())
}

func (c *comparer) enum(path string, old, new *props) {
	a, b := texts(old.Enum), texts(new.Enum)
	switch {
	case len(b) == 0 && len(a) == 0:
	case len(a) == 0:
		c.decide(false, path, RuleEnum, "enum", nil, new.Enum)
	case len(b) == 0:
		c.decide(true, path, RuleEnum, "enum", old.Enum, nil)
	case len(missing(a, b)) > 0:
		c.decide(false, path, RuleEnum, "enum", old.Enum, new.Enum)
	case len(missing(b, a)) > 0:
		c.decide(true, path, RuleEnum, "enum", old.Enum, new.Enum)
	}
}

func texts(values []apiextensionsv1.JSON) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = canonical(v)
	}
	return out
}

// canonical is the same text for the same value, whatever the order and white space of its JSON.
func canonical(value apiextensionsv1.JSON) string {
	var content any
	if err := utiljson.Unmarshal(value.Raw, &content); err != nil {
		return string(value.Raw)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return string(value.Raw)
	}
	return string(text)
}

func (c *comparer) defaults(path string, old, new *props) {
	a, b := old.Default, new.Default
	if a == nil && b == nil || a != nil && b != nil && canonical(*a) == canonical(*b) {
		return
	}
	c.decide(false, path, RuleDefault, "default", a, b)
}

// rules compares the CEL rules. What they say when they fail does not count.
func (c *comparer) rules(path string, old, new *props) {
	keys := func(rules apiextensionsv1.ValidationRules) (out []string) {
		for _, r := range rules {
			key := r.Rule
			if r.OptionalOldSelf != nil && *r.OptionalOldSelf {
				key += " (optionalOldSelf)"
			}
			out = append(out, key)
		}
		return out
	}
	a, b := keys(old.XValidations), keys(new.XValidations)
	for _, rule := range missing(b, a) {
		c.breach(path, RuleValidation, "the validation rule %s was absent (rules: %s) and is there", show(rule), show(a))
	}
	for _, rule := range missing(a, b) {
		c.allow(path, "the validation rule %s was removed", show(rule))
	}
}

// combinations compares allOf, anyOf, oneOf and not, in which a wider part may make the whole narrower.
func (c *comparer) combinations(path string, old, new *props) {
	for _, list := range []struct {
		what     string
		old, new []props
		// wider reports whether new takes all that old takes, if both have entries.
		wider func(old, new []string) bool
	}{
		{"allOf", old.AllOf, new.AllOf, func(old, new []string) bool { return len(missing(new, old)) == 0 }},
		{"anyOf", old.AnyOf, new.AnyOf, func(old, new []string) bool { return len(old) > 0 && len(missing(old, new)) == 0 }},
		{"oneOf", old.OneOf, new.OneOf, func([]string, []string) bool { return false }},
	} {
		a, b := bare(list.old), bare(list.new)
		if !slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
			c.decide(len(b) == 0 || list.wider(a, b), path, RuleCombination, list.what, plain(brackets(a)), plain(brackets(b)))
		}
	}
	var a, b []string
	if old.Not != nil {
		a = bare([]props{*old.Not})
	}
	if new.Not != nil {
		b = bare([]props{*new.Not})
	}
	if !slices.Equal(a, b) {
		c.decide(len(b) == 0, path, RuleCombination, "not", plain(brackets(a)), plain(brackets(b)))
	}
}

// merging compares how lists and maps are merged and told apart, with the defaults of the API server.
func (c *comparer) merging(path string, old, new *props) {
	kind := func(value *string, standard string) string {
		if value == nil {
			return standard
		}
		return *value
	}
	if a, b := kind(old.XListType, "atomic"), kind(new.XListType, "atomic"); a != b {
		c.decide(false, path, RuleListType, "x-kubernetes-list-type", a, b)
	}
	if a, b := kind(old.XMapType, "granular"), kind(new.XMapType, "granular"); a != b {
		c.decide(false, path, RuleMapType, "x-kubernetes-map-type", a, b)
	}
	if a, b := old.XListMapKeys, new.XListMapKeys; len(missing(a, b))+len(missing(b, a)) > 0 {
		c.decide(false, path, RuleListMapKeys, "x-kubernetes-list-map-keys", a, b)
	}
}
