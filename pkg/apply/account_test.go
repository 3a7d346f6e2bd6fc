package apply

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"
)

// TestAccounts: T1, nothing acts without an account.
func TestAccounts(t *testing.T) {
	accounts := NewAccounts(&rest.Config{Host: "https://localhost:1"}, nil, &Kinds{}, nil, nil)
	for _, tc := range []struct {
		reason  string
		account Account
		want    error
	}{
		{"the zero value", Account{}, ErrNoAccount},
		{"no name", Account{Namespace: "a"}, ErrNoAccount},
		{"no namespace", Account{Name: "a"}, ErrNoAccount},
		{"an account", Account{"a", "b"}, nil},
	} {
		engine, err := accounts.Engine(tc.account)
		if !errors.Is(err, tc.want) || (err == nil) != (engine != nil) {
			t.Errorf("%s: %v, %v", tc.reason, engine, err)
		}
	}
	if got, want := (Account{"a", "b"}).Username(), "system:serviceaccount:a:b"; got != want {
		t.Errorf("username %s, want %s", got, want)
	}
}
