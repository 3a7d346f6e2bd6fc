package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// Change is what differs between two indexes, or that webhooks have started or stopped answering in time.
type Change struct {
	resources Resources
	// before and after are the hooks of each index that the other one does not have in the same form, in order.
	before, after []*hook
}

// fingerprintOf digests what a webhook answers by, whatever it is asked about: all of a spec but the rules.
func fingerprintOf(spec v1alpha1.ResourceExploringWebhook) string {
	spec.Rules = nil
	text, err := json.Marshal(spec)
	if err != nil { // the API server has stored it as JSON
		text = fmt.Append(nil, spec)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// compare returns the change from one index, which may be nil, to another one.
func compare(resources Resources, before, after *index) Change {
	if before == nil {
		before = &index{}
	}
	return Change{resources, without(before.hooks, after.hooks), without(after.hooks, before.hooks)}
}

// without returns the hooks of a list that another one does not have in the same form.
func without(hooks, others []*hook) []*hook {
	known := map[string]*hook{}
	for _, h := range others {
		known[h.String()] = h
	}
	var out []*hook
	for _, h := range hooks {
		if other := known[h.String()]; other == nil || !equality.Semantic.DeepEqual(other.spec, h.spec) {
			out = append(out, h)
		}
	}
	return out
}

// changeOf returns the change of the hooks that a caller asks for: they answer otherwise, by the rules that they have.
func (l *Layer) changeOf(c *caller) Change {
	change := Change{resources: l.options.Resources}
	if ix := l.index.Load(); ix != nil {
		for _, h := range ix.hooks {
			if h.caller == c {
				change.before = append(change.before, h)
			}
		}
	}
	return change
}

// String names the webhooks that changed, in order.
func (c Change) String() string { return fmt.Sprint(c.before, c.after) }

// Empty reports whether nothing changed that matters to any object.
func (c Change) Empty() bool { return len(c.before)+len(c.after) == 0 }

// Affects reports whether answers about objects of a kind may be others than before the change: whether other hooks are asked an
// operation about it, or the same ones answer otherwise. A kind whose resource is not known may be any resource of its group.
func (c Change) Affects(ctx context.Context, kind schema.GroupVersionKind) bool {
	if c.Empty() || !mentions(c.before, kind) && !mentions(c.after, kind) {
		return false
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	t := &target{kind: kind}
	if t.resource, t.namespaced, t.err = c.resources.Resource(ctx, kind); t.err != nil {
		return true
	}
	return slices.ContainsFunc(explore.Operations(), func(operation explore.Operation) bool {
		t.request = explore.Request{Operation: operation, Object: object}
		return !slices.Equal(askedHooks(c.before, t), askedHooks(c.after, t))
	})
}

// mentions reports whether a rule of any hook has the group and the version of a kind.
func mentions(hooks []*hook, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(hooks, func(h *hook) bool {
		return slices.ContainsFunc(h.spec.Rules, func(rule v1alpha1.RuleWithOperations) bool {
			return holds(rule.APIGroups, kind.Group) && holds(rule.APIVersions, kind.Version)
		})
	})
}

// askedHooks names the hooks that are asked about a target, with what they answer by.
func askedHooks(hooks []*hook, t *target) []string {
	var out []string
	for _, h := range hooks {
		if matches, err := h.rulesMatch(t); matches && err == nil {
			out = append(out, h.String()+" "+h.fingerprint)
		}
	}
	return out
}
