// Package interpreter puts the explore layers together, in one way for the manager and the command line.
package interpreter

import (
	"fmt"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
)

// Layers are those that differ between users of the chain.
type Layers struct {
	// User answers by Configs. Webhook asks the webhooks of the cluster; it may be nil. Native has kudo's own rules.
	User, Webhook, Native explore.Explorer
	// Hub adds the bundled rules for Instances, by which a hub places them on clusters.
	Hub bool
}

// New returns the chain of all layers, with the bundled rules, and the chain without the native layer. An error says that a bundled rule is
// malformed.
func New(host *lua.Host, l Layers) (all, external explore.Chain, err error) {
	load := library.New
	if l.Hub {
		load = library.NewForHub
	}
	bundled, err := load(host)
	if err != nil {
		return nil, nil, fmt.Errorf("bundled explore rules: %w", err)
	}
	return explore.NewChain(l.User, l.Webhook, bundled, l.Native), explore.NewChain(l.User, l.Webhook, bundled, nil), nil
}
