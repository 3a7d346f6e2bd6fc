package exploreconfig

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/explore/config"
	"kudo.dev/kudo/pkg/explore/webhook"
)

// Affects reports whether answers about objects of a kind may be others than before.
type Affects func(ctx context.Context, kind schema.GroupVersionKind) bool

// publication is what has become of the layers when configuration was handed to them.
type publication struct {
	// rules are those of the Configs, and former those before, or nil if there were none.
	rules, former *config.Layer
	// unanswered are the kinds that were asked about before there were any rules.
	unanswered []schema.GroupVersionKind
	// webhooks are the changes of configurations, and of what answers in time.
	webhooks []webhook.Change
}

// publish compiles the configuration, and has the layers answer by it from now on.
func (r *Reconciler) publish(o *observation) publication {
	i := r.Interpreter
	rules := config.New(i.host, o.configs, i.user.Get())
	former := i.user.Set(rules)
	return publication{rules: rules, former: former, webhooks: append(i.takePending(), i.webhook.Set(o.hooks)),
		unanswered: i.user.TakeUnanswered()}
}

// affects returns which kinds a publication affects.
func (p publication) affects() Affects {
	if p.former == nil {
		return func(_ context.Context, kind schema.GroupVersionKind) bool { return slices.Contains(p.unanswered, kind) }
	}
	kinds := p.rules.Changed(p.former)
	return func(ctx context.Context, kind schema.GroupVersionKind) bool {
		return slices.Contains(kinds, kind) ||
			slices.ContainsFunc(p.webhooks, func(c webhook.Change) bool { return c.Affects(ctx, kind) })
	}
}

// state names what a publication means for the answers.
type state string

const (
	// loaded: nothing was asked before.
	loaded state = "loaded"
	// changed: answers may differ from those before.
	changed state = "changed"
	// unchanged: answers are those of before.
	unchanged state = "unchanged"
)

// state returns the state after a publication:
//
//	former rules    rules, webhooks    state
//	none            any                loaded, or changed if something was asked before
//	any             differ             changed
//	any             same               unchanged
func (p publication) state() state {
	switch {
	case p.former == nil && len(p.unanswered) > 0:
		return changed
	case p.former == nil:
		return loaded
	case len(p.rules.Changed(p.former)) > 0 || slices.ContainsFunc(p.webhooks, func(c webhook.Change) bool { return !c.Empty() }):
		return changed
	}
	return unchanged
}
