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

// Format is the version of the form in which a record holds a run: what is in its data, and what that means. A record without one has
// format 1. The seal is the same for all formats, so that a version of kudo that cannot read a record can see that it is kudo's.
const Format = 1

// content is the data of a record.
type content struct {
	Format int `json:"format,omitempty"`
	Run
}

// FormatError says that a newer version of kudo has written a record. It is no UnusableError: that version can continue with the run.
type FormatError struct {
	Namespace, Name string
	Format          int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("ControllerRevision %s/%s has format %d, and this version of kudo reads formats up to %d: a newer one has written "+
		"it. Upgrade kudo to that version with kubectl kudo init --upgrade", e.Namespace, e.Name, e.Format, Format)
}

// CheckFormat returns a *FormatError if a record has a format that is not known. Whether it is sealed does not count.
func CheckFormat(record *appsv1.ControllerRevision) error {
	head := struct {
		Format int `json:"format"`
	}{}
	if json.Unmarshal(record.Data.Raw, &head) != nil || head.Format <= Format {
		return nil
	}
	return &FormatError{Namespace: record.Namespace, Name: record.Name, Format: head.Format}
}

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
	text, err := json.Marshal(content{Format, run})
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

// open reads the record of a run, if seal made it for the owner and the number. The sensitive values are opened, too. The error is an
// *UnusableError, or a *FormatError.
func open(ring *keyring.Ring, owner client.Object, revision int64, record *appsv1.ControllerRevision) (*Run, error) {
	unusable := &UnusableError{Namespace: record.Namespace, Name: record.Name}
	text, err := canonical(record.Data.Raw)
	if err != nil || !metav1.IsControlledBy(record, owner) || record.Revision != revision || record.Name != NameFor(owner, revision) ||
		record.Namespace != owner.GetNamespace() || !ring.Sealed(record.Annotations[v1beta1.SealAnnotation], parts(owner, revision, text)...) {
		return nil, unusable
	}
	if err := CheckFormat(record); err != nil { // only what is sealed is believed
		return nil, err
	}
	data := &content{}
	run := &data.Run
	if json.Unmarshal(text, data) != nil || run.UID != RunUID(owner.GetUID(), revision) {
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

// CheckSealedFormat returns a *FormatError if kudo has sealed a record that has an unknown format.
func CheckSealedFormat(ring *keyring.Ring, record *appsv1.ControllerRevision) error {
	reference := metav1.GetControllerOf(record)
	if reference == nil {
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: record.Namespace, Name: reference.Name, UID: reference.UID}
	var owner client.Object = &v1beta1.Instance{ObjectMeta: meta}
	if reference.Kind == "OperatorVersion" {
		owner = &v1beta1.OperatorVersion{ObjectMeta: meta}
	}
	if _, err := open(ring, owner, record.Revision, record); !Unusable(err) {
		return err
	}
	return nil
}

// parts are what a seal stands for.
func parts(owner client.Object, revision int64, data []byte) []string {
	return []string{sealed, owner.GetNamespace(), NameFor(owner, revision), strconv.FormatInt(revision, 10), kind(owner),
		string(owner.GetUID()), string(data)}
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
