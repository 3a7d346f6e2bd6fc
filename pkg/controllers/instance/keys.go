package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/controllers/requeue"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/keyring"
	"kudo.dev/kudo/plans/trigger"
)

// unlock gets the keys. Without them nothing can be started, and nothing that was started can be told from what others
// have written.
func (p *pass) unlock(ctx context.Context) (bool, error) {
	ring, err := p.Keys.Ring(ctx)
	var missing *history.KeyMissingError
	switch {
	case err == nil:
		p.ring = ring
		return false, nil
	case !errors.As(err, &missing):
		return true, err
	}
	p.result.RequeueAfter = requeue.Look
	if p.instance.DeletionTimestamp != nil {
		going, err := p.namespaceGoes(ctx)
		if err != nil || going || !controllerutil.ContainsFinalizer(p.instance, v1beta1.CleanupFinalizer) {
			return true, p.letGo(ctx, err)
		}
	}
	return p.halted(ctx, v1beta1.ReasonHistoryKeyMissing, v1beta1.EventHistoryKeyMissing, missing.Error())
}

// letGo releases an Instance that is being deleted, unless there was an error.
func (p *pass) letGo(ctx context.Context, err error) error {
	if err != nil || !controllerutil.ContainsFinalizer(p.instance, v1beta1.CleanupFinalizer) {
		return err
	}
	return p.release(ctx)
}

// digests are those of the baseline.
func (p *pass) digests() keyring.Baseline {
	return keyring.Baseline{Ring: p.ring, Owner: string(p.instance.UID)}
}

var _ trigger.Digests = keyring.Baseline{}

// clear takes out of the inventory what no plan of the Instance can have written, and hashes that whoever reads the status
// could try out guesses on.
func (p *pass) clear(ctx context.Context) (bool, error) {
	status := &p.instance.Status
	status.Resources = slices.DeleteFunc(slices.Clone(status.Resources), func(r v1beta1.ResourceStatus) bool {
		foreign := r.Namespace != "" && r.Namespace != p.instance.Namespace
		if foreign {
			p.happened(corev1.EventTypeWarning, v1beta1.EventResourceIgnored, "ignored %s %s/%s of status.resources: it is of another namespace", r.Kind, r.Namespace, r.Name)
		}
		return foreign
	})
	if len(status.Resources) != len(p.written.Status.Resources) {
		if err := p.commit(ctx); err != nil { // whatever is decided then, this is told once
			return true, err
		}
	}
	for i, r := range status.Resources {
		id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}}
		if apply.Keyless(id, r.Hash) {
			status.Resources[i].Hash = "" // the next run that names the Secret compares it by a write
		}
	}
	if base := status.Baseline; base != nil && base.Sensitive {
		return false, p.discard(ctx, base)
	}
	return false, nil
}

// discard deletes the Secret in which kudo kept sensitive values before records were sealed.
func (p *pass) discard(ctx context.Context, base *v1beta1.Baseline) error {
	err := p.History.Discard(ctx, p.instance)
	if apierrors.IsForbidden(err) {
		name := history.SecretName(p.instance.Name)
		p.happened(corev1.EventTypeWarning, v1beta1.EventSecretKept, "Secret %s/%s is not used any more and could not be deleted: %s; delete it with kubectl delete secret %s -n %s",
			p.instance.Namespace, name, err, name, p.instance.Namespace)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("delete Secret %s of Instance %s/%s, which is not used any more: %w", history.SecretName(p.instance.Name), p.instance.Namespace, p.instance.Name, err)
	}
	base.Sensitive = false
	return nil
}

// rekey makes the digests of the baseline anew that are not of the current key. It starts nothing: a digest that can be
// read says whether its value has changed, and stays if it has; of one that cannot be read, the value has not changed if
// all that spec asks for had been started.
func (p *pass) rekey(context.Context) (bool, error) {
	base := p.instance.Status.Baseline
	if base == nil {
		return false, nil
	}
	digests, given := p.digests(), p.wanted()
	for name, digest := range base.Parameters {
		value, set := given[name]
		if !set || keyring.IDOf(digest) == p.ring.Current() {
			continue
		}
		if digests.Same(name, digest, value) || !digests.Knows(digest) && p.answered() {
			base.Parameters[name] = digests.Of(name, value)
		}
	}
	return false, nil
}
