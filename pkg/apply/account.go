package apply

import (
	"errors"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"
)

// Account is the ServiceAccount with whose rights a run reads and writes. The zero value names none, and nothing is
// written with it.
type Account struct{ Namespace, Name string }

// IsZero reports whether the account names no ServiceAccount.
func (a Account) IsZero() bool { return a.Namespace == "" || a.Name == "" }

// String is how people read the account: `ServiceAccount team-a/kudo`.
func (a Account) String() string { return "ServiceAccount " + a.Namespace + "/" + a.Name }

// Username is the name of the account at the API server, which adds the groups of the account by itself.
func (a Account) Username() string { return serviceaccount.MakeUsername(a.Namespace, a.Name) }

// maxEngines is how many engines of accounts are kept.
const maxEngines = 512

// Accounts makes engines that act as ServiceAccounts. It makes none that acts as the manager.
type Accounts struct {
	config  *rest.Config
	reader  metadata.Interface
	kinds   *Kinds
	mirror  View
	retain  Retainer
	names   *Names
	engines *lru.Cache
}

// NewAccounts returns the engines of accounts on the cluster of a config, whose user may impersonate the accounts. The
// reader, which is the manager's, tells which names are taken before a task writes: the answer to a create would tell the
// same, one object at a time. What an object holds is read with the rights of the account.
func NewAccounts(config *rest.Config, reader metadata.Interface, kinds *Kinds, mirror View, retain Retainer) *Accounts {
	return &Accounts{config: config, reader: reader, kinds: kinds, mirror: mirror, retain: retain, engines: lru.New(maxEngines)}
}

// UseNames is Engine.UseNames for the engines of all accounts. It is called before the first Engine.
func (a *Accounts) UseNames(names *Names) { a.names = names }

// ErrNoAccount is the error of whoever would act without an account.
var ErrNoAccount = errors.New("a run without a ServiceAccount must not read or write objects")

// Engine returns an engine with the rights of the account, and no others.
func (a *Accounts) Engine(account Account) (*Engine, error) {
	if account.IsZero() {
		return nil, ErrNoAccount
	}
	if known, ok := a.engines.Get(account); ok {
		return known.(*Engine), nil
	}
	as := rest.CopyConfig(a.config)
	as.Impersonate = rest.ImpersonationConfig{UserName: account.Username()}
	dyn, err := dynamic.NewForConfig(as)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", account, err)
	}
	own, err := metadata.NewForConfig(as)
	if err != nil {
		return nil, fmt.Errorf("metadata client of %s: %w", account, err)
	}
	engine := New(dyn, a.reader, a.kinds, a.mirror, a.retain)
	engine.own, engine.names = own, a.names
	a.engines.Add(account, engine)
	return engine, nil
}
