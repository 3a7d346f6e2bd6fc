package history

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/keyring"
)

// KeyMissingError says that there is no key to seal records with.
type KeyMissingError struct {
	Secret types.NamespacedName
	// Cause says what is wrong with the Secret; nil if there is none.
	Cause error
}

// Error implements error.
func (e *KeyMissingError) Error() string {
	state := "is missing"
	if e.Cause != nil {
		state = "cannot be used: " + e.Cause.Error()
	}
	return fmt.Sprintf("Secret %s, with whose key kudo seals the records of its runs, %s: restore it from a backup; if there is none, "+
		"kubectl kudo init --upgrade creates one, or prints what would be lost",
		e.Secret, state)
}

// TryRing returns the keys. That there are none is no error: missing says so then, and what to do. Without them nothing can
// be started, and nothing that was started can be told from what others have written.
func TryRing(ctx context.Context, keys Keys) (ring *keyring.Ring, missing string, err error) {
	ring, err = keys.Ring(ctx)
	var none *KeyMissingError
	if errors.As(err, &none) {
		return nil, none.Error(), nil
	}
	return ring, "", err
}

// SecretKeys reads the keys from the Secret that init has made.
type SecretKeys struct {
	reader client.Reader
	secret types.NamespacedName

	mu sync.Mutex
	// version is the resourceVersion of the Secret that ring was read from.
	version string
	ring    *keyring.Ring
}

// NewKeys returns the keys of the Secret in kudo's namespace. The reader is asked each time.
func NewKeys(reader client.Reader, namespace string) *SecretKeys {
	return &SecretKeys{reader: reader, secret: types.NamespacedName{Namespace: namespace, Name: keyring.SecretName}}
}

// Ring implements Keys.
func (k *SecretKeys) Ring(ctx context.Context) (*keyring.Ring, error) {
	secret := &corev1.Secret{}
	err := k.reader.Get(ctx, k.secret, secret)
	if apierror.IsObjectNotFound(err) {
		return nil, &KeyMissingError{Secret: k.secret}
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", k.secret, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if version := string(secret.UID) + "/" + secret.ResourceVersion; k.ring == nil || version != k.version {
		ring, err := keyring.Parse(secret.Data)
		if err != nil {
			return nil, &KeyMissingError{Secret: k.secret, Cause: err}
		}
		k.version, k.ring = version, ring
	}
	return k.ring, nil
}
