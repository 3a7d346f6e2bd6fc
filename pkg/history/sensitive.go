package history

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans/trigger"
)

// SecretName is the name of the Secret that keeps the sensitive values of an Instance's newest runs: who may read
// ControllerRevisions need not be allowed to read them.
func SecretName(instance string) string { return instance + "-kudo-parameters" }

const digestPrefix = "hmac-sha256:"

// digest stands in a ControllerRevision for a sensitive value. It is keyed by the owner's uid: equal values of two
// owners differ, as in the baseline.
func digest(owner types.UID, value string) string {
	return digestPrefix + trigger.Keyed(string(owner))(value)
}

// split takes the sensitive values out of a run: the run as it is written down, with digests in their place, and the
// values.
func (r Run) split(owner types.UID) (Run, map[string]string) {
	if len(r.Sensitive) == 0 {
		return r, nil
	}
	values := map[string]string{}
	r.Parameters = maps.Clone(r.Parameters)
	for _, name := range r.Sensitive {
		if value, set := r.Parameters[name]; set {
			values[name], r.Parameters[name] = value, digest(owner, value)
		}
	}
	return r, values
}

// conceal keeps the sensitive values of a run, along with those of the one before it, which may go on meanwhile. What is
// kept for a number is never replaced: who has an old Instance in hand may try to write down a run that is there.
func (s *Store) conceal(ctx context.Context, instance *v1beta1.Instance, revision int64, values map[string]string) error {
	secret, err := s.concealed(ctx, instance)
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for _, value := range values {
		data[key(revision, digest(instance.UID, value))] = []byte(value)
	}
	if secret == nil {
		err = s.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: instance.Namespace, Name: SecretName(instance.Name), Labels: labels(instance),
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(instance, v1beta1.GroupVersion.WithKind("Instance"))},
			},
			Data: data,
		})
	} else {
		for name, value := range secret.Data {
			if n, _, _ := strings.Cut(name, "."); n == strconv.FormatInt(revision, 10) || n == strconv.FormatInt(revision-1, 10) {
				data[name] = value
			}
		}
		if !maps.EqualFunc(data, secret.Data, bytes.Equal) {
			secret.Data = data
			err = s.client.Update(ctx, secret)
		}
	}
	if err != nil {
		return fmt.Errorf("keep the sensitive parameters of Instance %s/%s in Secret %s: %w", instance.Namespace, instance.Name, SecretName(instance.Name), err)
	}
	return nil
}

// key under which the Secret has a value: the number of the run, and the digest that stands in its ControllerRevision.
func key(revision int64, digest string) string {
	return strconv.FormatInt(revision, 10) + "." + strings.TrimPrefix(digest, digestPrefix)
}

// concealed reads the Instance's Secret; nil if there is none.
func (s *Store) concealed(ctx context.Context, instance *v1beta1.Instance) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: instance.Namespace, Name: SecretName(instance.Name)}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.UID != instance.UID {
		return nil, fmt.Errorf("the Secret %s/%s exists and is not of Instance %s, which keeps the values of its sensitive parameters there: rename or delete it",
			secret.Namespace, secret.Name, instance.Name)
	}
	return secret, nil
}

// reveal puts the sensitive values back into a run that was read. One that is neither kept nor among the values that the
// Instance has now is listed in Lost.
func (s *Store) reveal(ctx context.Context, instance *v1beta1.Instance, revision int64, run *Run, now map[string]string) error {
	if len(run.Sensitive) == 0 {
		return nil
	}
	secret, err := s.concealed(ctx, instance)
	if err != nil {
		return err
	}
	if secret == nil {
		secret = &corev1.Secret{}
	}
	for _, name := range run.Sensitive {
		written, set := run.Parameters[name]
		if !set {
			continue
		}
		value, kept := secret.Data[key(revision, written)]
		switch {
		case kept:
			run.Parameters[name] = string(value)
		case digest(instance.UID, now[name]) == written:
			run.Parameters[name] = now[name]
		default:
			delete(run.Parameters, name)
			run.Lost = append(run.Lost, name)
		}
	}
	return nil
}

// Discard deletes the sensitive values of an Instance whose runs have none any more.
func (s *Store) Discard(ctx context.Context, instance *v1beta1.Instance) error {
	secret, err := s.concealed(ctx, instance)
	if secret == nil || err != nil {
		return err
	}
	return client.IgnoreNotFound(s.client.Delete(ctx, secret, client.Preconditions{UID: &secret.UID}))
}
