package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/controllers/tarball"
	"kudo.dev/kudo/pkg/crds"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/plans"
)

// definitions sees to it that the CustomResourceDefinitions of the Instance are installed before a plan starts. It
// returns what the plan waits for; empty if nothing. A retry after an error comes with the pass's back-off.
func (p *pass) definitions(ctx context.Context) (waits string, err error) {
	wanted, err := p.Tarballs.Of(p.instance, p.instance.OperatorVersionKey().Namespace, p.live.Spec)
	if err != nil {
		return "", err
	}
	if wanted.Tarball == nil {
		return "", nil
	}
	revision := int64(0)
	if base := p.instance.Status.Baseline; base != nil {
		revision = base.Revision
	}
	key := client.ObjectKeyFromObject(p.instance)
	run := fmt.Sprintf("%s/%d/%d", p.instance.UID, p.instance.Generation, revision)
	if wanted.Digest, err = p.rememberedDigest(ctx, wanted); err != nil {
		return "", err
	}
	resolved, progress, err := p.Tarballs.Get(key, run, wanted)
	switch {
	case err != nil:
		p.transient = true // nothing tells when a folder can be written again
		p.tarballFailed(err)
		return fmt.Sprintf("waits for its CRDs: %s", err), nil
	case resolved == nil:
		return p.downloading(wanted, progress), nil
	}
	before := p.crdStatus().CRDs
	p.fetched(resolved)
	objs := resolved.Objects()
	digest := &v1beta1.TarballDigest{SpecHash: wanted.SpecHash, Digest: resolved.Digest}
	if waits, err = p.define(ctx, objs, digest, wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe); waits != "" || err != nil {
		p.instance.Status.CRDs.CRDs = before // what runs needs these, until a version that needs others can run
		return waits, err
	}
	if crds := p.instance.Status.CRDs; crds != nil {
		crds.Download = nil
	}
	return "", nil
}

// rememberedDigest returns the digest of the tarball when the Instance used it first, or "" if it has not.
func (p *pass) rememberedDigest(ctx context.Context, wanted tarball.Wanted) (string, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(p.instance.Namespace, p.instance.Name, p.instance.UID)
	if err := p.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == wanted.SpecHash && holder.Spec.For.UID == p.instance.UID {
		return known.Digest, nil
	}
	return "", nil
}

// downloading shows a fetch that is under way.
func (p *pass) downloading(wanted tarball.Wanted, progress crds.Progress) string {
	url := crds.Display(wanted.Source.Identity())
	status := p.crdStatus()
	status.Download = &v1beta1.CRDDownloadStatus{Attempt: int32(max(progress.Attempt, 1)), Bytes: progress.Bytes, TotalBytes: progress.Total}
	text := fmt.Sprintf("waits for its CRDs: downloads %s, attempt %d", url, max(progress.Attempt, 1))
	if progress.Last != nil {
		text += fmt.Sprintf(" (the one before failed: %s)", progress.Last)
	}
	return text
}

func (p *pass) crdStatus() *v1beta1.CRDTarballStatus {
	if p.instance.Status.CRDs == nil {
		p.instance.Status.CRDs = &v1beta1.CRDTarballStatus{}
	}
	return p.instance.Status.CRDs
}

// fetched puts into the status which tarball is used, and tells when it is another one.
func (p *pass) fetched(r *crds.Resolved) {
	status := p.crdStatus()
	at := metav1.NewTime(r.CachedAt).Rfc3339Copy()
	next := &v1beta1.CRDTarballStatus{URL: r.URL, Digest: r.Digest, CachedAt: &at, CRDs: slices.Clone(r.Names)}
	if r.Stale != nil {
		next.Stale, next.StaleReason = true, r.Stale.Error()
	}
	if r.Fetched && status.Digest != next.Digest {
		p.event(corev1.EventTypeNormal, v1beta1.EventCRDsFetched, "Fetched %s (%s)", r.URL, r.Digest)
	}
	if next.Stale && !status.Stale {
		p.warn(v1beta1.EventCRDsStale, "%s cannot be asked for a newer tarball, and the one fetched at %s is used: %s", r.URL, at.Format("2006-01-02T15:04:05Z07:00"), r.Stale)
	}
	p.instance.Status.CRDs = next
}

// tarballFailed tells why a tarball could not be had, once for each reason.
func (p *pass) tarballFailed(err error) {
	if status := p.instance.Status.CRDs; status != nil {
		status.Download = nil
	}
	before := meta.FindStatusCondition(p.written.Status.Conditions, v1beta1.CRDsReadyCondition)
	if before == nil || before.Message != fmt.Sprintf("waits for its CRDs: %s", err) {
		p.warn(v1beta1.EventCRDsRefused, "%s", err)
	}
}

// define installs definitions through an Installation of the Instance, and shares them with whoever wants the same. The
// Installation remembers the digest of their tarball before the first of them is written.
func (p *pass) define(ctx context.Context, objs []*unstructured.Unstructured, digest *v1beta1.TarballDigest, safe bool) (waits string, err error) {
	holder, err := p.holder(ctx)
	if err != nil {
		return "", err
	}
	// Another replica, or a fetch that was begun before the first use, may have come in between.
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == digest.SpecHash && known.Digest != digest.Digest {
		p.Tarballs.Forget(client.ObjectKeyFromObject(p.instance))
		p.transient = true
		return fmt.Sprintf("waits for its CRDs: the tarball's content has digest %s, not %s, which it had when it was used first", digest.Digest, known.Digest), nil
	}
	held := share.Inventory(holder.DeepCopy().Status.Resources)
	session := p.Share.Session(holder, share.Policy{Tarball: true, SafeCRDs: safe}, held)
	if refused := session.Check(ctx, objs); refused != nil {
		return p.unheld(refused), nil
	}
	for _, obj := range objs {
		if id := apply.IDOf(obj); held.Find(id) < 0 {
			r := share.Held(apply.Change{ID: id}, holder)
			r.State = v1beta1.HoldPending
			held = append(held, r)
		}
	}
	if holder, err = p.keep(ctx, holder, held, digest); err != nil {
		return "", err
	}
	held = holder.DeepCopy().Status.Resources
	changes := session.Join(ctx, objs)
	for _, change := range changes {
		if change.Record.UID != "" {
			held[held.Find(change.ID)] = share.Held(change, holder)
		}
	}
	if _, err := p.keep(ctx, holder, held, digest); err != nil {
		return "", session.Orphaned(ctx, held, err)
	}
	for _, change := range changes {
		if change.Err != nil {
			return p.unheld(changes), nil
		}
	}
	return "", nil
}

// unheld says what keeps a definition from being installed. What may pass is tried again; a mismatch waits for somebody
// to mend it, and is tried again less often.
func (p *pass) unheld(changes apply.ChangeSet) string {
	p.transient = true
	if err := changes.Err(); err != nil {
		var mismatch *share.MismatchError
		if errors.As(err, &mismatch) {
			p.tarballFailed(err)
		}
		return "waits for its CRDs: " + err.Error()
	}
	for _, change := range changes {
		if change.Err != nil {
			return "waits for its CRDs: " + change.Err.Error()
		}
	}
	return ""
}

// holder returns the Installation of the Instance. It needs no finalizer on the Instance: the Installation notices when
// its Instance is gone, and then waits for the custom resources to go, which the garbage collector takes after it.
func (p *pass) holder(ctx context.Context) (*v1beta1.Installation, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(p.instance.Namespace, p.instance.Name, p.instance.UID)
	err := p.Client.Get(ctx, types.NamespacedName{Name: name}, holder)
	if err == nil && holder.Spec.For.UID != p.instance.UID { // the name holds a part of a hash only
		return nil, fmt.Errorf("the Installation %s is of %s %s/%s: another Instance has the same name for it; create this Instance again", name, holder.Spec.For.Kind, holder.Spec.For.Namespace, holder.Spec.For.Name)
	}
	if err == nil || !apierrors.IsNotFound(err) {
		return holder, err
	}
	holder = &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{v1beta1.InstallationFinalizer}, Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage},
	}}
	holder.Spec.For = v1beta1.InstallationSubject{Kind: "Instance", Namespace: p.instance.Namespace, Name: p.instance.Name, UID: p.instance.UID}
	return holder, p.Client.Create(ctx, holder)
}

// keep writes the inventory of an Installation and the digest of its tarball, if they have changed.
func (p *pass) keep(ctx context.Context, holder *v1beta1.Installation, held share.Inventory, digest *v1beta1.TarballDigest) (*v1beta1.Installation, error) {
	next := holder.DeepCopy()
	next.Status.Take(held)
	next.Status.CRDTarball = digest
	return next, share.Commit(ctx, p.Client, holder, next)
}

// dropped lets go of definitions that the tarball of the Instance's version does not hold any more, after an upgrade.
func (p *pass) dropped(ctx context.Context) error {
	name := v1beta1.InstallationName(p.instance.Namespace, p.instance.Name, p.instance.UID)
	holder := &v1beta1.Installation{}
	if err := p.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return client.IgnoreNotFound(err)
	}
	var wanted []string
	if crds := p.instance.Status.CRDs; crds != nil {
		wanted = crds.CRDs
	}
	session := p.Share.Session(holder, share.Policy{}, holder.Status.Resources)
	held := slices.DeleteFunc(slices.Clone(share.Inventory(holder.Status.Resources)), func(r v1beta1.HeldResource) bool {
		return !slices.Contains(wanted, r.Name) && session.Leave(ctx, r, false).Gone
	})
	_, err := p.keep(ctx, holder, held, holder.Status.CRDTarball)
	return err
}

// settled tells whether the Instance has arrived at its version: the newest run of a plan that brings it there is complete.
func (p *pass) settled() bool {
	newest := v1beta1.PlanStatus{}
	for plan, st := range p.instance.Status.PlanStatus {
		if plans.Shapes(plan) && st.Revision > newest.Revision {
			newest = st
		}
	}
	return newest.Status == v1beta1.Complete
}

// restore installs definitions again that somebody has deleted, at rest.
func (p *pass) restore(ctx context.Context) error {
	if running, _ := p.running(); running != "" || p.instance.Status.CRDs == nil || p.live == nil || p.waited() {
		return nil
	}
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(p.instance.Namespace, p.instance.Name, p.instance.UID)
	if err := p.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, r := range holder.Status.Resources {
		if r.State == v1beta1.HoldExisting || r.UID == "" {
			continue
		}
		if !slices.Contains(p.instance.Status.CRDs.CRDs, r.Name) { // left of the version before, which may still run
			if !p.settled() {
				continue
			}
			return p.dropped(ctx)
		}
		live, known, err := p.Share.Seen(ctx, r)
		if err != nil {
			return err
		}
		if known && live == nil {
			p.warn(v1beta1.EventRestoring, "%s, which was deleted, is installed again", share.IDOf(r))
			_, err := p.definitions(ctx)
			return err
		}
	}
	return nil
}

// pendingCRDs shows that a plan waits for its CRDs.
func (p *pass) pendingCRDs(ctx context.Context, plan, message string) (bool, error) {
	crds := p.instance.Status.CRDs.DeepCopy()
	transient := p.transient
	p.pend(plan, v1beta1.ReasonWaitingForCRDs, message)
	p.instance.Status.CRDs, p.transient = crds, transient
	conditions.CRDs(p.instance, message)
	p.result.RequeueAfter = 0
	return true, p.commit(ctx)
}
