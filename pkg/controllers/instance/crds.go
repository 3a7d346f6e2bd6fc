package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// awaitCRDs reports whether the CustomResourceDefinitions of the Instance are there. If they are not, it shows what the run that is to
// start waits for, or that a tarball was refused.
func (a *action) awaitCRDs(ctx context.Context) (bool, error) {
	waits, err := a.ensureCRDs(ctx)
	var wrong *crdtarball.Error
	switch {
	case errors.As(err, &wrong):
		return false, a.refuse(ctx, refusedSpec(err))
	case err != nil:
		return false, err
	case waits != "":
		a.waitForCRDs(a.start.Plan, waits)
		return false, nil
	}
	return true, nil
}

// ensureCRDs installs the CustomResourceDefinitions of the Instance before a plan starts. It
// returns what the plan waits for; empty if nothing. A retry after an error comes with the back-off of the reconcile.
func (a *action) ensureCRDs(ctx context.Context) (waits string, err error) {
	wanted, err := a.Tarballs.Resolve(a.Next, a.Next.OperatorVersionKey().Namespace, a.content.Spec)
	if err != nil {
		return "", err
	}
	if wanted.Tarball == nil {
		return "", nil
	}
	revision := int64(0)
	if base := a.Next.Status.Baseline; base != nil {
		revision = base.Revision
	}
	key := client.ObjectKeyFromObject(a.Next)
	run := fmt.Sprintf("%s/%d/%d", a.Next.UID, a.Next.Generation, revision)
	if wanted.Digest, err = a.rememberedDigest(ctx, wanted); err != nil {
		return "", err
	}
	resolved, progress, err := a.Tarballs.Poll(key, run, wanted)
	switch {
	case err != nil:
		a.result.Transient = true // nothing tells when a folder can be written again
		a.reportFetchError(err)
		return a.crdWait(err.Error()), nil
	case resolved == nil:
		return a.reportDownload(wanted, progress), nil
	}
	before := a.crdStatus().CRDs
	a.reportFetched(resolved)
	objs := resolved.Objects()
	digest := &v1beta1.TarballDigest{SpecHash: wanted.SpecHash, Digest: resolved.Digest}
	if waits, err = a.installCRDs(ctx, objs, digest, wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe); waits != "" || err != nil {
		a.Next.Status.CRDs.CRDs = before // what runs needs these, until a version that needs others can run
		return waits, err
	}
	if crds := a.Next.Status.CRDs; crds != nil {
		crds.Download = nil
	}
	return "", nil
}

// rememberedDigest returns the digest of the tarball when the Instance used it first, or "" if it has not.
func (a *action) rememberedDigest(ctx context.Context, wanted fetch.Wanted) (string, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(a.Next.Namespace, a.Next.Name, a.Next.UID)
	if err := a.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return "", apierror.IgnoreObjectNotFound(err)
	}
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == wanted.SpecHash && holder.Spec.Subject.UID == a.Next.UID {
		return known.Digest, nil
	}
	return "", nil
}

// reportDownload shows a fetch that is under way.
func (a *action) reportDownload(wanted fetch.Wanted, progress crdtarball.Progress) string {
	url := crdtarball.Display(wanted.Source.Identity())
	status := a.crdStatus()
	status.Download = &v1beta1.CRDDownloadStatus{Attempt: int32(max(progress.Attempt, 1)), Bytes: progress.Bytes, TotalBytes: progress.Total}
	cause := fmt.Sprintf("downloads %s, attempt %d", url, max(progress.Attempt, 1))
	if progress.Last != nil {
		cause += fmt.Sprintf(" (the one before failed: %s)", progress.Last)
	}
	return a.crdWait(cause)
}

// crdWait returns the message of a plan that waits for the CustomResourceDefinitions of the Instance. The plan of a parent may have
// it too, and so it names the Instance.
func (a *action) crdWait(cause string) string {
	return fmt.Sprintf("waits for the CustomResourceDefinitions of Instance %s/%s: %s", a.Next.Namespace, a.Next.Name, cause)
}

func (a *action) crdStatus() *v1beta1.CRDTarballStatus {
	if a.Next.Status.CRDs == nil {
		a.Next.Status.CRDs = &v1beta1.CRDTarballStatus{}
	}
	return a.Next.Status.CRDs
}

// reportFetched puts into the status which tarball is used, and tells when it is another one.
func (a *action) reportFetched(r *crdtarball.Resolved) {
	status := a.crdStatus()
	at := metav1.NewTime(r.CachedAt).Rfc3339Copy()
	next := &v1beta1.CRDTarballStatus{URL: r.URL, Digest: r.Digest, CachedAt: &at, CRDs: slices.Clone(r.Names)}
	if r.Stale != nil {
		next.Stale, next.StaleReason = true, r.Stale.Error()
	}
	if r.Fetched && status.Digest != next.Digest {
		a.Event(corev1.EventTypeNormal, v1beta1.EventCRDsFetched, "Fetched %s (%s)", r.URL, r.Digest)
	}
	if next.Stale && !status.Stale {
		a.Warn(v1beta1.EventCRDsStale, "%s cannot be asked for a newer tarball, and the one fetched at %s is used: %s", r.URL,
			at.Format("2006-01-02T15:04:05Z07:00"), r.Stale)
	}
	a.Next.Status.CRDs = next
}

// reportFetchError tells why a tarball could not be had, once for each reason.
func (a *action) reportFetchError(err error) {
	if status := a.Next.Status.CRDs; status != nil {
		status.Download = nil
	}
	before := meta.FindStatusCondition(a.Committed.Status.Conditions, v1beta1.CRDsReadyCondition)
	if before == nil || before.Message != text.Truncate(a.crdWait(err.Error()), conditions.MaxMessage) {
		a.Warn(v1beta1.EventCRDsNotInstalled, "%s", err)
	}
}

// installCRDs installs definitions through an Installation of the Instance, and shares them with whoever wants the same. The
// Installation remembers the digest of their tarball before the first of them is written.
func (a *action) installCRDs(ctx context.Context, objs []*unstructured.Unstructured, digest *v1beta1.TarballDigest,
	safe bool) (waits string, err error) {
	holder, err := a.ensureInstallation(ctx)
	if err != nil {
		return "", err
	}
	// Another replica, or a fetch that was begun before the first use, may have come in between.
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == digest.SpecHash && known.Digest != digest.Digest {
		a.Tarballs.Forget(client.ObjectKeyFromObject(a.Next))
		a.result.Transient = true
		return a.crdWait(fmt.Sprintf("the tarball's content has digest %s, not %s, which it had when it was used first", digest.Digest,
			known.Digest)), nil
	}
	held := share.Inventory(holder.DeepCopy().Status.Resources)
	session := a.Share.Session(holder, share.Policy{Tarball: true, SafeCRDs: safe}, held)
	if refused := session.Check(ctx, objs); refused != nil {
		return a.blockedCRD(refused), nil
	}
	for _, obj := range objs {
		if id := apply.IDOf(obj); held.Find(id) < 0 {
			r := share.HeldResourceFor(apply.Change{ID: id}, holder)
			r.State = v1beta1.HoldPending
			held = append(held, r)
		}
	}
	if holder, err = a.writeInstallation(ctx, holder, held, digest); err != nil {
		return "", err
	}
	held = holder.DeepCopy().Status.Resources
	changes := session.Join(ctx, objs)
	for _, change := range changes {
		if change.Record.UID != "" {
			held[held.Find(change.ID)] = share.HeldResourceFor(change, holder)
		}
	}
	if _, err := a.writeInstallation(ctx, holder, held, digest); err != nil {
		return "", session.ReleaseOrphans(ctx, held, err)
	}
	for _, change := range changes {
		if change.Err != nil {
			return a.blockedCRD(changes), nil
		}
	}
	return "", nil
}

// blockedCRD says what keeps a definition from being installed. A transient error is tried again; a mismatch waits for a user
// who mends it, and is tried again less often.
func (a *action) blockedCRD(changes apply.ChangeSet) string {
	a.result.Transient = true
	if err := changes.Err(); err != nil {
		var mismatch *share.MismatchError
		if errors.As(err, &mismatch) {
			a.reportFetchError(err)
		}
		return a.crdWait(err.Error())
	}
	for _, change := range changes {
		if change.Err != nil {
			return a.crdWait(change.Err.Error())
		}
	}
	return ""
}

// ensureInstallation returns the Installation of the Instance. It needs no finalizer on the Instance: the Installation
// notices that its Instance was deleted, and then waits until the garbage collector has deleted the custom resources of
// the Instance.
func (a *action) ensureInstallation(ctx context.Context) (*v1beta1.Installation, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(a.Next.Namespace, a.Next.Name, a.Next.UID)
	err := a.Client.Get(ctx, types.NamespacedName{Name: name}, holder)
	if err == nil && holder.Spec.Subject.UID != a.Next.UID { // the name holds a part of a hash only
		return nil, fmt.Errorf("the Installation %s is of %s %s/%s: another Instance has the same name for it; create this Instance again", name,
			holder.Spec.Subject.Kind, holder.Spec.Subject.Namespace, holder.Spec.Subject.Name)
	}
	if err == nil || !apierror.IsObjectNotFound(err) {
		return holder, err
	}
	holder = &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{v1beta1.InstallationFinalizer}, Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage},
	}}
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: a.Next.Namespace, Name: a.Next.Name, UID: a.Next.UID}
	return holder, a.Client.Create(ctx, holder)
}

// writeInstallation writes the inventory of an Installation and the digest of its tarball, if they have changed.
func (a *action) writeInstallation(ctx context.Context, holder *v1beta1.Installation, held share.Inventory,
	digest *v1beta1.TarballDigest) (*v1beta1.Installation, error) {
	next := holder.DeepCopy()
	next.Status.SetInventory(held)
	next.Status.CRDTarball = digest
	return next, share.Commit(ctx, a.Client, holder, next)
}

// releaseDroppedCRDs releases definitions that the tarball of the Instance's version does not hold any more, after an upgrade.
func (a *action) releaseDroppedCRDs(ctx context.Context) error {
	name := v1beta1.InstallationName(a.Next.Namespace, a.Next.Name, a.Next.UID)
	holder := &v1beta1.Installation{}
	if err := a.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return apierror.IgnoreObjectNotFound(err)
	}
	var wanted []string
	if crds := a.Next.Status.CRDs; crds != nil {
		wanted = crds.CRDs
	}
	session := a.Share.Session(holder, share.Policy{}, holder.Status.Resources)
	held := slices.DeleteFunc(slices.Clone(share.Inventory(holder.Status.Resources)), func(r v1beta1.HeldResource) bool {
		return !slices.Contains(wanted, r.Name) && session.Release(ctx, r, false).Done
	})
	_, err := a.writeInstallation(ctx, holder, held, holder.Status.CRDTarball)
	return err
}

// restoreCRDs installs definitions again that another client has deleted while idle.
func (a *action) restoreCRDs(ctx context.Context) error {
	if running, _ := a.activePlan(); running != "" || a.Next.Status.CRDs == nil || a.content == nil || a.wasPending() {
		return nil
	}
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(a.Next.Namespace, a.Next.Name, a.Next.UID)
	if err := a.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return apierror.IgnoreObjectNotFound(err)
	}
	for _, r := range holder.Status.Resources {
		if r.State == v1beta1.HoldExisting || r.UID == "" {
			continue
		}
		if !slices.Contains(a.Next.Status.CRDs.CRDs, r.Name) { // left of the version before, which may still run
			if !plans.HasArrived(a.Next.Status.PlanStatus) {
				continue
			}
			return a.releaseDroppedCRDs(ctx)
		}
		live, known, err := a.Share.Observe(ctx, r)
		if err != nil {
			return err
		}
		if known && live == nil {
			if refused, err := a.packageRefused(ctx); refused != nil || err != nil {
				return err
			}
			a.Warn(v1beta1.EventRestoreStarted, "%s, which was deleted, is installed again", share.IDOf(r))
			_, err := a.ensureCRDs(ctx)
			return err
		}
	}
	return nil
}

// waitForCRDs puts into the status that a plan waits for the CustomResourceDefinitions of the Instance.
func (a *action) waitForCRDs(plan, message string) {
	crds := a.Next.Status.CRDs.DeepCopy()
	a.setPending(plan, v1beta1.ReasonWaitingForCRDs, message)
	a.Next.Status.CRDs = crds
	conditions.SetCRDsReady(a.Next, message)
	a.result.RequeueAfter = 0
}
