package webhook

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// hook is one webhook of one configuration, ready to be asked. It does not change.
type hook struct {
	configuration string
	spec          v1alpha1.ResourceExploringWebhook
	order         int
	ignore        bool
	// timeout of a call, and limit names what it comes from.
	timeout    time.Duration
	limit      string
	selector   labels.Selector
	conditions []condition
	caller     *caller
	// fingerprint digests all of the spec but its rules.
	fingerprint string
	// broken says why it cannot be asked.
	broken error
}

// String is how errors and answers name it.
func (h *hook) String() string { return h.configuration + "/" + h.spec.Name }

func (h *hook) close() {
	if h.caller != nil {
		h.caller.client.Load().CloseIdleConnections()
	}
}

// service returns the Service that a webhook is behind; empty for none.
func (h *hook) service() types.NamespacedName {
	if s := h.spec.ClientConfig.Service; s != nil {
		return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	}
	return types.NamespacedName{}
}

// wildcard in rules matches every name.
const wildcard = "*"

// subject is what hooks are found by. Group and resource may be wildcard; in index.groups, resource is empty.
type subject struct {
	operation       explore.Operation
	group, resource string
}

// index finds the hooks that may care about an object. It does not change.
type index struct {
	// hooks in the order in which they are asked.
	hooks []*hook
	// groups has the hooks by operation and group.
	groups map[subject][]*hook
	// resources has them also by resource.
	resources map[subject][]*hook
	// named are the subjects of groups that have a rule for which the resource of the kind, or its scope, matters.
	named map[subject]bool
}

// build makes the index. What did not change since the one before is taken from there.
func (l *Layer) build(configurations []v1alpha1.ResourceExploringWebhookConfiguration, before *index) *index {
	old := map[string]*hook{}
	if before != nil {
		for _, h := range before.hooks {
			old[h.String()] = h
		}
	}
	ix := &index{groups: map[subject][]*hook{}, resources: map[subject][]*hook{}, named: map[subject]bool{}}
	kept := map[*caller]bool{}
	for _, c := range configurations {
		for _, spec := range c.Webhooks {
			h := l.prepare(c.Name, *spec.DeepCopy(), old[c.Name+"/"+spec.Name])
			kept[h.caller] = true
			ix.hooks = append(ix.hooks, h)
		}
	}
	slices.SortStableFunc(ix.hooks, func(a, b *hook) int {
		return cmp.Or(strings.Compare(a.configuration, b.configuration), strings.Compare(a.spec.Name, b.spec.Name))
	})
	for order, h := range ix.hooks {
		h.order = order
		ix.add(h)
	}
	for _, h := range old {
		if !kept[h.caller] {
			h.close()
		}
	}
	return ix
}

// prepare makes a hook, with what the one of the same name has already.
func (l *Layer) prepare(configuration string, spec v1alpha1.ResourceExploringWebhook, old *hook) *hook {
	h := &hook{configuration: configuration, spec: spec}
	h.timeout, h.limit = l.timeoutOf(spec)
	h.ignore = spec.FailurePolicy != nil && *spec.FailurePolicy == admissionregistrationv1.Ignore
	if old != nil && equality.Semantic.DeepEqual(old.spec, spec) {
		h.selector, h.conditions, h.caller, h.broken = old.selector, old.conditions, old.caller, old.broken
		h.fingerprint = old.fingerprint
		return h
	}
	h.fingerprint = fingerprintOf(spec)
	if h.broken = validate(l.env, spec).ToAggregate(); h.broken != nil {
		return h
	}
	h.selector = selectorOf(spec)
	h.conditions, h.broken = compile(l.env, spec.MatchConditions)
	if h.broken != nil {
		return h
	}
	if old != nil && old.caller != nil && old.timeout == h.timeout && equality.Semantic.DeepEqual(old.spec.ClientConfig, spec.ClientConfig) {
		h.caller = old.caller
		return h
	}
	h.caller, h.broken = l.newCaller(spec, h.timeout)
	if h.caller != nil && old != nil && old.caller != nil {
		h.caller.slots = old.caller.slots // calls that still run count
	}
	return h
}

// timeoutOf returns the time that a call of a webhook may take, and the name of the setting that bounds it.
func (l *Layer) timeoutOf(spec v1alpha1.ResourceExploringWebhook) (time.Duration, string) {
	timeout := v1alpha1.DefaultTimeoutSeconds * time.Second
	if spec.TimeoutSeconds != nil {
		timeout = time.Duration(*spec.TimeoutSeconds) * time.Second
	}
	if most := l.options.MaxTimeout; most > 0 && timeout > most {
		return most, "the manager's --explore-max-timeout"
	}
	return timeout, "timeoutSeconds"
}

// services returns the Services of webhooks that can be asked.
func (ix *index) services() []types.NamespacedName {
	var out []types.NamespacedName
	for _, h := range ix.hooks {
		if service := h.service(); h.broken == nil && service.Name != "" && !slices.Contains(out, service) {
			out = append(out, service)
		}
	}
	return out
}

// add files a hook under all that its rules name.
func (ix *index) add(h *hook) {
	for _, rule := range h.spec.Rules {
		for _, operation := range operationsOf(rule) {
			for _, group := range rule.APIGroups {
				ix.addGroup(h, rule, subject{operation: operation, group: group})
			}
		}
	}
}

// operationsOf lists the operations of a rule; AnyOperation stands for all.
func operationsOf(rule v1alpha1.RuleWithOperations) []explore.Operation {
	if slices.Contains(rule.Operations, v1alpha1.AnyOperation) {
		return explore.Operations()
	}
	return rule.Operations
}

// addGroup files a hook under an operation and a group of one of its rules, and under the rule's resources there.
func (ix *index) addGroup(h *hook, rule v1alpha1.RuleWithOperations, s subject) {
	file(ix.groups, s, h)
	for _, entry := range rule.Resources {
		name, ok := mainResource(entry)
		if !ok {
			continue
		}
		file(ix.resources, subject{s.operation, s.group, name}, h)
		if name != wildcard || scopeOf(rule) != admissionregistrationv1.AllScopes {
			ix.named[s] = true
		}
	}
}

// file adds a hook to those of a subject, once. A hook is filed under all of its subjects before the next hook is.
func file(hooks map[subject][]*hook, s subject, h *hook) {
	if list := hooks[s]; len(list) == 0 || list[len(list)-1] != h {
		hooks[s] = append(list, h)
	}
}

// mainResource is the resource in an entry of a rule, and whether the entry matches more than subresources of it:
// objects are never subresources. `*/*` and `foos/*` match the resource too, as in admission webhooks.
func mainResource(entry string) (string, bool) {
	name, sub, has := strings.Cut(entry, "/")
	return name, !has || sub == wildcard
}

func scopeOf(rule v1alpha1.RuleWithOperations) admissionregistrationv1.ScopeType {
	if rule.Scope == nil {
		return admissionregistrationv1.AllScopes
	}
	return *rule.Scope
}

// find returns the hooks that may care about a request, in order. Their rules are still to be looked at.
func (ix *index) find(ctx context.Context, resources Resources, r explore.Request) (*target, []*hook) {
	t := &target{request: r, kind: r.Object.GroupVersionKind()}
	own, every := subject{operation: r.Operation, group: t.kind.Group}, subject{operation: r.Operation, group: wildcard}
	if len(ix.groups[own]) == 0 && len(ix.groups[every]) == 0 {
		return t, nil
	}
	if ix.named[own] || ix.named[every] {
		t.resource, t.namespaced, t.err = resources.Resource(ctx, t.kind)
		if t.err != nil {
			return t, merge(ix.groups[own], ix.groups[every])
		}
	}
	list := func(s subject, resource string) []*hook {
		s.resource = resource
		return ix.resources[s]
	}
	found := merge(list(own, wildcard), list(every, wildcard))
	if t.resource != "" {
		found = merge(found, merge(list(own, t.resource), list(every, t.resource)))
	}
	return t, found
}

// merge joins lists that are in order. Both may be shared, and are not changed.
func merge(a, b []*hook) []*hook {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y *hook) int { return cmp.Compare(x.order, y.order) })
	return slices.Compact(all)
}
