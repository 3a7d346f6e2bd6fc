package history

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
)

// sealed is the version of what a seal stands for.
const sealed = "kudo/1"

// UnusableError says why a record does not tell what a run was started with.
type UnusableError struct {
	Namespace, Name string
	// Missing is set if there is no record; else it is there, and not ours.
	Missing bool
}

// Error implements error.
func (e *UnusableError) Error() string {
	if e.Missing {
		return fmt.Sprintf("ControllerRevision %s/%s is missing", e.Namespace, e.Name)
	}
	return fmt.Sprintf("ControllerRevision %s/%s was not written by this kudo", e.Namespace, e.Name)
}

// Unusable reports whether an error says that a record does not tell what a run was started with.
func Unusable(err error) bool {
	var unusable *UnusableError
	return errors.As(err, &unusable)
}

// seal makes the record of a run.
func seal(ring *keyring.Ring, owner client.Object, revision int64, run Run) (*appsv1.ControllerRevision, error) {
	run.Parameters = maps.Clone(run.Parameters)
	for _, name := range run.Sensitive {
		value, set := run.Parameters[name]
		if !set {
			continue
		}
		var err error
		if run.Parameters[name], err = ring.Encrypt(rand.Reader, value, valueContext(owner, revision, name)...); err != nil {
			return nil, fmt.Errorf("seal parameter %s: %w", name, err)
		}
	}
	text, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	if text, err = canonical(text); err != nil {
		return nil, err
	}
	name := NameFor(owner, revision)
	reference := *metav1.NewControllerRef(owner, v1beta1.GroupVersion.WithKind(kind(owner)))
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Name: name, Labels: labels(owner), OwnerReferences: []metav1.OwnerReference{reference},
			Annotations: map[string]string{v1beta1.SealAnnotation: ring.Seal(parts(owner, revision, text)...)},
		},
		Data:     runtime.RawExtension{Raw: text},
		Revision: revision,
	}, nil
}

// open reads the record of a run, if seal made it for the owner and the number. The sensitive values are opened, too.
func open(ring *keyring.Ring, owner client.Object, revision int64, record *appsv1.ControllerRevision) (*Run, error) {
	unusable := &UnusableError{Namespace: record.Namespace, Name: record.Name}
	text, err := canonical(record.Data.Raw)
	if err != nil || !metav1.IsControlledBy(record, owner) || record.Revision != revision || record.Name != NameFor(owner, revision) ||
		record.Namespace != owner.GetNamespace() || !ring.Sealed(record.Annotations[v1beta1.SealAnnotation], parts(owner, revision, text)...) {
		return nil, unusable
	}
	run := &Run{}
	if json.Unmarshal(text, run) != nil || run.UID != RunUID(owner.GetUID(), revision) {
		return nil, unusable
	}
	run.Key = keyring.IDOf(record.Annotations[v1beta1.SealAnnotation])
	for _, name := range run.Sensitive {
		value, set := run.Parameters[name]
		if !set {
			continue
		}
		if run.Parameters[name], err = ring.Decrypt(value, valueContext(owner, revision, name)...); err != nil {
			return nil, unusable
		}
	}
	return run, nil
}

// parts are what a seal stands for.
func parts(owner client.Object, revision int64, data []byte) []string {
	return []string{sealed, owner.GetNamespace(), NameFor(owner, revision), strconv.FormatInt(revision, 10), kind(owner), string(owner.GetUID()), string(data)}
}

// valueContext is what a sealed value is for.
func valueContext(owner client.Object, revision int64, name string) []string {
	return []string{string(owner.GetUID()), strconv.FormatInt(revision, 10), name}
}

// canonical writes JSON in the one way in which the API server writes it after a strategic merge patch: with sorted keys.
// The data of a ControllerRevision must not change, so that one that is written otherwise refuses each such patch, also
// those of the garbage collector.
func canonical(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}
