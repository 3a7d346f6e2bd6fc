package instance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/crdtarball"
	"kudo.dev/kudo/pkg/crdtarball/fetch"
	"kudo.dev/kudo/pkg/share"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// crdInstaller installs and releases the CustomResourceDefinitions of the Instance.
type crdInstaller struct{ *scope }

// fetchPatience is for how long a fetch is not shown. Most tarballs are in the cache, and cost no write of the status then. A manager that
// dies after each write would otherwise write first, after each start, that it fetches, and then again what the Instance waits for besides.
const fetchPatience = 500 * time.Millisecond

// errFetchBegun is returned while a fetch is not shown yet. It ends the reconcile without a write: another one follows.
var errFetchBegun = errors.New("the fetch of the CRD tarball has just begun")

// awaitCRDs reports whether the CustomResourceDefinitions of the Instance are there. If they are not, it shows what the run that is to
// start waits for, or that a tarball was refused.
func (a *action) awaitCRDs(ctx context.Context) (bool, error) {
	waits, err := a.crds.ensure(ctx)
	var wrong *crdtarball.Error
	switch {
	case errors.Is(err, errFetchBegun):
		a.result.Undecided, a.result.Transient = true, false
		return false, nil
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

// ensure installs the CustomResourceDefinitions of the Instance before a plan starts. It
// returns what the plan waits for; empty if nothing. A retry after an error comes with the back-off of the reconcile.
func (c *crdInstaller) ensure(ctx context.Context) (waits string, err error) {
	wanted, err := c.Tarballs.Resolve(c.Next, c.Next.OperatorVersionKey().Namespace, c.content.Spec)
	if err != nil {
		return "", err
	}
	if wanted.Tarball == nil {
		return "", nil
	}
	revision := int64(0)
	if base := c.Next.Status.Baseline; base != nil {
		revision = base.Revision
	}
	key := client.ObjectKeyFromObject(c.Next)
	run := fmt.Sprintf("%s/%d/%d", c.Next.UID, c.Next.Generation, revision)
	if wanted.Digest, err = c.rememberedDigest(ctx, wanted); err != nil {
		return "", err
	}
	resolved, progress, err := c.Tarballs.Poll(key, run, wanted)
	switch {
	case err != nil:
		c.result.Transient = true // nothing tells when a folder can be written again
		c.reportFetchError(err)
		return c.waitMessage(err.Error()), nil
	case resolved == nil && progress.Last == nil && progress.Age < fetchPatience:
		c.requeueAt(c.Clock.Now().Add(fetchPatience - progress.Age))
		return "", errFetchBegun
	case resolved == nil:
		return c.reportDownload(wanted, progress), nil
	}
	before := c.status().CRDs
	c.reportFetched(resolved)
	objs := resolved.Objects()
	digest := &v1beta1.TarballDigest{SpecHash: wanted.SpecHash, Digest: resolved.Digest}
	if waits, err = c.install(ctx, objs, digest, wanted.Tarball.CRDUpdatePolicy == v1beta1.UpdateIfSafe); waits != "" || err != nil {
		c.Next.Status.CRDs.CRDs = before // what runs needs these, until a version that needs others can run
		return waits, err
	}
	if crds := c.Next.Status.CRDs; crds != nil {
		crds.Download = nil
	}
	return "", nil
}

// rememberedDigest returns the digest of the tarball when the Instance used it first, or "" if it has not.
func (c *crdInstaller) rememberedDigest(ctx context.Context, wanted fetch.Wanted) (string, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(c.Next.Namespace, c.Next.Name, c.Next.UID)
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return "", apierror.IgnoreObjectNotFound(err)
	}
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == wanted.SpecHash && holder.Spec.Subject.UID == c.Next.UID {
		return known.Digest, nil
	}
	return "", nil
}

// reportDownload shows a fetch that is under way.
func (c *crdInstaller) reportDownload(wanted fetch.Wanted, progress crdtarball.Progress) string {
	url := crdtarball.Display(wanted.Source.Identity())
	status := c.status()
	status.Download = &v1beta1.CRDDownloadStatus{Attempt: int32(max(progress.Attempt, 1)), Bytes: progress.Bytes, TotalBytes: progress.Total}
	cause := fmt.Sprintf("downloads %s, attempt %d", url, max(progress.Attempt, 1))
	if progress.Last != nil {
		cause += fmt.Sprintf(" (the one before failed: %s)", progress.Last)
	}
	return c.waitMessage(cause)
}

// waitMessage returns the message of a plan that waits for the CustomResourceDefinitions of the Instance. The plan of a parent may have
// it too, and so it names the Instance.
func (c *crdInstaller) waitMessage(cause string) string {
	return fmt.Sprintf("waits for the CustomResourceDefinitions of Instance %s/%s: %s", c.Next.Namespace, c.Next.Name, cause)
}

func (c *crdInstaller) status() *v1beta1.CRDTarballStatus {
	if c.Next.Status.CRDs == nil {
		c.Next.Status.CRDs = &v1beta1.CRDTarballStatus{}
	}
	return c.Next.Status.CRDs
}

// reportFetched puts into the status which tarball is used, and records an event if it is another one than before.
func (c *crdInstaller) reportFetched(r *crdtarball.Resolved) {
	status := c.status()
	at := metav1.NewTime(r.CachedAt).Rfc3339Copy()
	next := &v1beta1.CRDTarballStatus{URL: r.URL, Digest: r.Digest, CachedAt: &at, CRDs: slices.Clone(r.Names)}
	if r.Stale != nil {
		next.Stale, next.StaleReason = true, r.Stale.Error()
	}
	if r.Fetched && status.Digest != next.Digest {
		c.Event(corev1.EventTypeNormal, v1beta1.EventCRDsFetched, "Fetched %s (%s)", r.URL, r.Digest)
	}
	if next.Stale && !status.Stale {
		c.Warn(v1beta1.EventCRDsStale, "%s cannot be asked for a newer tarball, and the one fetched at %s is used: %s", r.URL,
			at.Format("2006-01-02T15:04:05Z07:00"), r.Stale)
	}
	c.Next.Status.CRDs = next
}

// reportFetchError tells why a tarball could not be had, once for each reason.
func (c *crdInstaller) reportFetchError(err error) {
	if status := c.Next.Status.CRDs; status != nil {
		status.Download = nil
	}
	before := meta.FindStatusCondition(c.Committed.Status.Conditions, v1beta1.CRDsReadyCondition)
	if before == nil || before.Message != text.Truncate(c.waitMessage(err.Error()), conditions.MaxMessage) {
		c.Warn(v1beta1.EventCRDsNotInstalled, "%s", err)
	}
}

// install installs definitions through an Installation of the Instance, and shares them with whoever wants the same. The
// Installation remembers the digest of their tarball before the first of them is written.
func (c *crdInstaller) install(ctx context.Context, objs []*unstructured.Unstructured, digest *v1beta1.TarballDigest,
	safe bool) (waits string, err error) {
	holder, err := c.ensureInstallation(ctx)
	if err != nil {
		return "", err
	}
	// Another replica, or a fetch that was begun before the first use, may have come in between.
	if known := holder.Status.CRDTarball; known != nil && known.SpecHash == digest.SpecHash && known.Digest != digest.Digest {
		c.Tarballs.Forget(client.ObjectKeyFromObject(c.Next))
		c.result.Transient = true
		return c.waitMessage(fmt.Sprintf("the tarball's content has digest %s, not %s, which it had when it was used first", digest.Digest,
			known.Digest)), nil
	}
	held := share.Inventory(holder.DeepCopy().Status.Resources)
	session := c.Share.Session(holder, share.Policy{Tarball: true, SafeCRDs: safe}, held)
	if refused := session.Check(ctx, objs); refused != nil {
		return c.blockedMessage(refused), nil
	}
	for _, obj := range objs {
		if id := apply.IDOf(obj); held.Find(id) < 0 {
			r := share.HeldResourceFor(apply.Change{ID: id}, holder)
			r.State = v1beta1.HoldPending
			held = append(held, r)
		}
	}
	if holder, err = c.writeInstallation(ctx, holder, held, digest); err != nil {
		return "", err
	}
	held = holder.DeepCopy().Status.Resources
	changes := session.Join(ctx, objs)
	for _, change := range changes {
		if change.Record.UID != "" {
			held[held.Find(change.ID)] = share.HeldResourceFor(change, holder)
		}
	}
	if _, err := c.writeInstallation(ctx, holder, held, digest); err != nil {
		return "", session.ReleaseOrphans(ctx, held, err)
	}
	c.announceReadopted(changes)
	for _, change := range changes {
		if change.Err != nil {
			return c.blockedMessage(changes), nil
		}
	}
	return "", nil
}

// maxReadopted is how many definitions an event names that were taken over again.
const maxReadopted = 10

// announceReadopted records an event that names the definitions that an earlier Instance has left, and that this one holds now.
func (c *crdInstaller) announceReadopted(changes apply.ChangeSet) {
	if names := changes.Readopted(); len(names) > 0 {
		c.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventObjectsReadopted, "The Instance took over again what was kept: %s",
			text.List(names, maxReadopted))
	}
}

// blockedMessage returns why a definition cannot be installed. After a transient error, the installation is tried again with back-off;
// after a mismatch, which a user must resolve, it is tried less often.
func (c *crdInstaller) blockedMessage(changes apply.ChangeSet) string {
	c.result.Transient = true
	if err := changes.Err(); err != nil {
		var mismatch *share.MismatchError
		if errors.As(err, &mismatch) {
			c.reportFetchError(err)
		}
		return c.waitMessage(err.Error())
	}
	for _, change := range changes {
		if change.Err != nil {
			return c.waitMessage(change.Err.Error())
		}
	}
	return ""
}

// ensureInstallation returns the Installation of the Instance. It needs no finalizer on the Instance: the Installation
// notices that its Instance was deleted, and then waits until the garbage collector has deleted the custom resources of
// the Instance.
func (c *crdInstaller) ensureInstallation(ctx context.Context) (*v1beta1.Installation, error) {
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(c.Next.Namespace, c.Next.Name, c.Next.UID)
	err := c.Client.Get(ctx, types.NamespacedName{Name: name}, holder)
	if err == nil && holder.Spec.Subject.UID != c.Next.UID { // the name holds a part of a hash only
		return nil, fmt.Errorf("the Installation %s is of %s %s/%s: another Instance has the same name for it; create this Instance again", name,
			holder.Spec.Subject.Kind, holder.Spec.Subject.Namespace, holder.Spec.Subject.Name)
	}
	if err == nil || !apierror.IsObjectNotFound(err) {
		return holder, err
	}
	holder = &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{
		Name: name, Finalizers: []string{v1beta1.InstallationFinalizer}, Labels: map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage},
	}}
	holder.Spec.Subject = v1beta1.InstallationSubject{Kind: "Instance", Namespace: c.Next.Namespace, Name: c.Next.Name, UID: c.Next.UID}
	return holder, c.Client.Create(ctx, holder)
}

// writeInstallation writes the inventory of an Installation and the digest of its tarball, if they have changed.
func (c *crdInstaller) writeInstallation(ctx context.Context, holder *v1beta1.Installation, held share.Inventory,
	digest *v1beta1.TarballDigest) (*v1beta1.Installation, error) {
	obj := loop.NewObject(c.Client, c.Reader, c.Events, holder)
	obj.Next.Status.SetInventory(held)
	obj.Next.Status.CRDTarball = digest
	return obj.Next, obj.Commit(ctx)
}

// releaseDropped releases definitions that the tarball of the Instance's version does not hold any more, after an upgrade.
func (c *crdInstaller) releaseDropped(ctx context.Context) error {
	name := v1beta1.InstallationName(c.Next.Namespace, c.Next.Name, c.Next.UID)
	holder := &v1beta1.Installation{}
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return apierror.IgnoreObjectNotFound(err)
	}
	var wanted []string
	if crds := c.Next.Status.CRDs; crds != nil {
		wanted = crds.CRDs
	}
	session := c.Share.Session(holder, share.Policy{}, holder.Status.Resources)
	held := slices.DeleteFunc(slices.Clone(share.Inventory(holder.Status.Resources)), func(r v1beta1.HeldResource) bool {
		return !slices.Contains(wanted, r.Name) && session.Release(ctx, r, false).Done
	})
	_, err := c.writeInstallation(ctx, holder, held, holder.Status.CRDTarball)
	return err
}

// restore installs definitions again that another client has deleted while idle.
func (c *crdInstaller) restore(ctx context.Context) error {
	if running, _ := c.activePlan(); running != "" || c.Next.Status.CRDs == nil || c.content == nil || c.wasPending() {
		return nil
	}
	holder := &v1beta1.Installation{}
	name := v1beta1.InstallationName(c.Next.Namespace, c.Next.Name, c.Next.UID)
	if err := c.Client.Get(ctx, types.NamespacedName{Name: name}, holder); err != nil {
		return apierror.IgnoreObjectNotFound(err)
	}
	for _, r := range holder.Status.Resources {
		if r.State == v1beta1.HoldExisting || r.UID == "" {
			continue
		}
		if !slices.Contains(c.Next.Status.CRDs.CRDs, r.Name) { // left of the version before, which may still run
			if !plans.HasArrived(c.Next.Status.PlanStatus) {
				continue
			}
			return c.releaseDropped(ctx)
		}
		live, known, err := c.Share.Observe(ctx, r)
		if err != nil {
			return err
		}
		if known && live == nil {
			return c.reinstall(ctx, r)
		}
	}
	return nil
}

// reinstall installs the definitions of the Instance again after one of them was deleted. It does nothing if a policy refuses the package.
func (c *crdInstaller) reinstall(ctx context.Context, deleted v1beta1.HeldResource) error {
	if refused, err := c.packageRefused(ctx); refused != nil || err != nil {
		return err
	}
	c.Warn(v1beta1.EventRestoreStarted, "%s, which was deleted, is installed again", share.IDOf(deleted))
	if _, err := c.ensure(ctx); !errors.Is(err, errFetchBegun) {
		return err
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
