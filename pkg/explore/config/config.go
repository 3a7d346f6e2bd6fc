// Package config is the user layer of package explore: the fields and scripts of Config objects.
package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/fields"
	"kudo.dev/kudo/pkg/explore/lua"
)

// key is what a rule answers.
type key struct {
	kind      schema.GroupVersionKind
	operation explore.Operation
}

// rule answers one operation for one kind.
type rule struct {
	config string
	// place is the field of the Config that holds the rule.
	place  string
	paths  []fields.Path
	source string
	script *lua.Script
	health *healthRule
	// err is why the rule cannot be used; then its answer is unknown.
	err error
	// fingerprint tells rules apart.
	fingerprint string
}

// who names the Config in errors and answers.
func (r *rule) who() string { return "Config/" + r.config }

// Layer answers by the rules of a set of Configs. It is immutable; New makes another for each change.
type Layer struct {
	host  *lua.Host
	rules map[key]*rule
	// kinds are those of the rules.
	kinds map[schema.GroupVersionKind]bool
}

// New makes the layer of some Configs. A rule that cannot be used, and two Configs that answer the same operation for
// the same kind, make these answers unknown; Validate and Conflicts say so beforehand. Scripts that the previous layer
// (which may be nil) has compiled are not compiled again.
func New(host *lua.Host, configs []v1alpha1.Config, previous *Layer) *Layer {
	l := &Layer{host: host, rules: map[key]*rule{}, kinds: map[schema.GroupVersionKind]bool{}}
	known := map[string]*lua.Script{}
	if previous != nil {
		for _, r := range previous.rules {
			if r.script != nil {
				known[string(r.script.Operation())+r.source] = r.script
			}
		}
	}
	configs = slices.Clone(configs)
	slices.SortFunc(configs, func(a, b v1alpha1.Config) int { return cmp.Compare(a.Name, b.Name) })
	for i := range configs {
		for _, entry := range rulesOf(&configs[i]) {
			r := entry.rule
			l.kinds[entry.kind] = true
			if other, taken := l.rules[entry.key]; taken {
				other.err = conflict(entry.key, other, r)
				other.fingerprint += r.fingerprint
				continue
			}
			r.compile(entry.operation, known)
			l.rules[entry.key] = r
		}
	}
	return l
}

func conflict(k key, a, b *rule) error {
	if a.config == b.config {
		return fmt.Errorf("%s of %s is answered twice by %s, in %s and %s: leave one", k.operation, kindText(k.kind), a.who(), a.place, b.place)
	}
	return fmt.Errorf("%s of %s is answered by %s (%s) and by %s (%s): leave one of them", k.operation, kindText(k.kind), a.who(), a.place,
		b.who(), b.place)
}

func kindText(kind schema.GroupVersionKind) string {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return apiVersion + " " + name
}

// compile makes the script of a rule, unless a former layer has it.
func (r *rule) compile(operation explore.Operation, known map[string]*lua.Script) {
	if r.err != nil || r.source == "" {
		return
	}
	if r.script = known[string(operation)+r.source]; r.script == nil {
		r.script, r.err = lua.Compile(operation, r.source)
	}
	if r.err != nil {
		r.err = fmt.Errorf("%s: %w", r.place, r.err)
	}
}

// Layer implements explore.Explorer.
func (l *Layer) Layer() explore.Layer { return explore.User }

// Explore implements explore.Explorer: fields first, and then the script.
func (l *Layer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	found := l.rules[key{r.Object.GroupVersionKind(), r.Operation}]
	if found == nil {
		return explore.Answer{}, false, nil
	}
	answer, err := l.answer(ctx, found, r)
	if err != nil {
		return explore.Answer{}, false, r.NewUnknown(explore.User, found.who(), err)
	}
	answer.Who = found.who()
	return answer, true, nil
}

func (l *Layer) answer(ctx context.Context, found *rule, r explore.Request) (explore.Answer, error) {
	if found.err != nil {
		return explore.Answer{}, found.err
	}
	if found.health != nil {
		return found.health.answer(r.Object), ctx.Err()
	}
	if len(found.paths) > 0 {
		r.Object = fields.Retain(found.paths, r.Object, r.Observed)
	}
	if found.script == nil {
		return explore.Answer{Object: r.Object}, ctx.Err()
	}
	return l.host.Run(ctx, found.script, r)
}

// Names reports whether a Config has a rule for a kind, whether or not the rule can be used.
func (l *Layer) Names(kind schema.GroupVersionKind) bool { return l.kinds[kind] }

// Kinds are those that any Config speaks of, in order.
func (l *Layer) Kinds() []schema.GroupVersionKind { return l.Changed(nil) }

// Changed are the kinds for which this layer may answer otherwise than a former one (which may be nil), in order. What
// is known of their objects has to be determined again.
func (l *Layer) Changed(former *Layer) []schema.GroupVersionKind {
	changed := map[schema.GroupVersionKind]bool{}
	if former == nil {
		former = &Layer{}
	}
	for k, r := range l.rules {
		if was := former.rules[k]; was == nil || was.fingerprint != r.fingerprint {
			changed[k.kind] = true
		}
	}
	for k := range former.rules {
		if l.rules[k] == nil {
			changed[k.kind] = true
		}
	}
	return slices.SortedFunc(maps.Keys(changed), compareKinds)
}

// SwappableLayer is a layer that can be exchanged while it is asked. Until the first is set all answers are unknown.
type SwappableLayer struct {
	layer atomic.Pointer[Layer]

	mu sync.Mutex
	// unanswered are the kinds that were asked about before the first Set. Only kinds that packages render are asked about.
	unanswered map[schema.GroupVersionKind]bool
}

// errNotLoaded is the answer before the Configs have been read.
var errNotLoaded = errors.New("the Configs have not been read yet")

// Set exchanges the layer, and returns the former, which is nil at first.
func (c *SwappableLayer) Set(l *Layer) *Layer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.layer.Swap(l)
}

// TakeUnanswered returns the kinds that were asked about before the first Set, in order, and forgets them.
func (c *SwappableLayer) TakeUnanswered() []schema.GroupVersionKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	kinds := slices.SortedFunc(maps.Keys(c.unanswered), compareKinds)
	c.unanswered = nil
	return kinds
}

// Get returns the layer; nil before the first Set.
func (c *SwappableLayer) Get() *Layer { return c.layer.Load() }

// Layer implements explore.Explorer.
func (c *SwappableLayer) Layer() explore.Layer { return explore.User }

// Explore implements explore.Explorer.
func (c *SwappableLayer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	l := c.layer.Load()
	if l == nil {
		l = c.refuse(r.Object.GroupVersionKind())
	}
	if l == nil {
		return explore.Answer{}, false, r.NewUnknown(explore.User, "", errNotLoaded)
	}
	return l.Explore(ctx, r)
}

// refuse notes that a kind was asked about, and returns nil; or the layer that was set meanwhile.
func (c *SwappableLayer) refuse(kind schema.GroupVersionKind) *Layer {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.layer.Load()
	if l == nil {
		if c.unanswered == nil {
			c.unanswered = map[schema.GroupVersionKind]bool{}
		}
		c.unanswered[kind] = true
	}
	return l
}

func compareKinds(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }
