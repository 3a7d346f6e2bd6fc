package controllers

import (
	"fmt"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"kudo.dev/kudo/pkg/apply"
)

// accounts is how many engines of ServiceAccounts are kept.
const accounts = 512

// impersonator returns a function that makes object engines with the rights of ServiceAccounts. The API server adds the
// groups of an account by itself.
func impersonator(config *rest.Config, kinds *apply.Kinds, mirror *apply.Mirror, retain apply.Retainer) func(namespace, account string) (*apply.Engine, error) {
	engines := lru.New(accounts)
	return func(namespace, account string) (*apply.Engine, error) {
		user := serviceaccount.MakeUsername(namespace, account)
		if known, ok := engines.Get(user); ok {
			return known.(*apply.Engine), nil
		}
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: user}
		dyn, err := dynamic.NewForConfig(as)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", user, err)
		}
		meta, err := metadata.NewForConfig(as)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", user, err)
		}
		engine := apply.New(dyn, meta, kinds, mirror, retain)
		engines.Add(user, engine)
		return engine, nil
	}
}
