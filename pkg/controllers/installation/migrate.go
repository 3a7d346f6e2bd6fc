package installation

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/pkg/text"
)

const (
	// nextPage is the time until the next page, once the last one is committed.
	nextPage = time.Millisecond
	// turnInterval is how long an Installation waits while another one rewrites a page, before it tries again.
	turnInterval = time.Second
	// fairAttempts is how often a migration is tried before another definition takes its place, if the list of migrations is full.
	fairAttempts = 3
	// maxMessage bounds a message of a migration, in bytes.
	maxMessage = 2048
)

// Migrator migrates the stored versions of definitions.
type Migrator interface {
	Step(ctx context.Context, d storedversions.Definition, state *v1beta1.StoredVersionMigration,
		owner *metav1.OwnerReference) (storedversions.Result, error)
}

// migrate takes the next steps of the migrations of stored versions that this Installation is responsible for: at most one page of
// objects in a reconcile.
func (a *action) migrate(ctx context.Context) (loop.Result, error) {
	result := a.hold()
	a.Next.Status.Migrations = selectMigrations(a.Next.Status.Migrations, a.definitions)
	for _, d := range a.definitions.due {
		state := a.Next.Status.Migration(d.Name)
		if state == nil {
			continue // others come first
		}
		if err := a.step(ctx, d, state, &result); err != nil {
			return loop.Result{}, err
		}
		if result.RequeueAfter == nextPage {
			break
		}
	}
	a.Next.Status.Migrations = withoutEmpty(a.Next.Status.Migrations)
	return result, nil
}

// selectMigrations drops the migrations of definitions that are not due, and adds those that are, as far as there is room. Those that wait
// take the place of migrations that were refused again and again.
func selectMigrations(known []v1beta1.StoredVersionMigration, found definitions) []v1beta1.StoredVersionMigration {
	stays := func(m v1beta1.StoredVersionMigration) bool {
		return slices.Contains(found.unseen, m.Definition) ||
			slices.ContainsFunc(found.due, func(d storedversions.Definition) bool { return d.Name == m.Definition })
	}
	next := slices.DeleteFunc(slices.Clone(known), func(m v1beta1.StoredVersionMigration) bool { return !stays(m) })
	listed := slices.Clone(next) // one that gives its place away does not come back at once
	for _, d := range found.due {
		if slices.ContainsFunc(listed, func(m v1beta1.StoredVersionMigration) bool { return m.Definition == d.Name }) {
			continue
		}
		if len(next) == v1beta1.MaxMigrations {
			at := slices.IndexFunc(next, isBlocked)
			if at < 0 {
				break
			}
			next = slices.Delete(next, at, at+1)
		}
		next = append(next, v1beta1.StoredVersionMigration{Definition: d.Name})
	}
	return next
}

// isBlocked reports whether a migration was refused again and again, and waits for its next attempt.
func isBlocked(m v1beta1.StoredVersionMigration) bool {
	return m.Attempts >= fairAttempts && m.RetryTime != nil
}

// withoutEmpty drops the migrations that have not begun: the API server takes no entry without its fields.
func withoutEmpty(all []v1beta1.StoredVersionMigration) []v1beta1.StoredVersionMigration {
	left := slices.DeleteFunc(all, func(m v1beta1.StoredVersionMigration) bool { return m.UID == "" })
	if len(left) == 0 {
		return nil
	}
	return left
}

// step takes the next step of one migration. Its message reports a failure, which is tried again after a back-off.
func (a *action) step(ctx context.Context, d storedversions.Definition, state *v1beta1.StoredVersionMigration, result *loop.Result) error {
	action, _ := storedversions.Next(d, state, a.Clock.Now())
	if action == storedversions.Rewrite && state.StorageVersionMigration == "" {
		if !a.page.TryLock() { // one page at a time leaves the workers to others
			a.contended.Store(true)
			requeue(result, turnInterval)
			return nil
		}
		defer a.page.Unlock()
		defer func() {
			if a.contended.Swap(false) && result.RequeueAfter == nextPage { // an Installation that waits rewrites the next page
				result.RequeueAfter = 2 * turnInterval
			}
		}()
	}
	before := state.DeepCopy()
	after, err := a.Migrator.Step(ctx, d, state, a.reference())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		// The first message stays: a commit for each text that differs would have the migration tried again at once.
		state.Message = cmp.Or(before.Message, text.Plain(err.Error(), maxMessage))
		result.Transient = true
	case after.Finished:
		a.finish(d, before)
		return nil
	case state.RetryTime != nil:
		requeue(result, max(state.RetryTime.Sub(a.Clock.Now()), nextPage+1))
	default:
		requeue(result, max(after.After, nextPage))
	}
	a.reportMigration(d, before, state)
	return nil
}

// finish drops a migration that is over.
func (a *action) finish(d storedversions.Definition, before *v1beta1.StoredVersionMigration) {
	a.Next.Status.Migrations = slices.DeleteFunc(slices.Clone(a.Next.Status.Migrations),
		func(m v1beta1.StoredVersionMigration) bool { return m.Definition == d.Name })
	if before.UID != "" { // else it has not begun
		a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventMigrationFinished,
			"All objects of CustomResourceDefinition %s are stored in version %s", d.Name, d.Storage)
	}
}

// reportMigration records what is new of a migration.
func (a *action) reportMigration(d storedversions.Definition, before, state *v1beta1.StoredVersionMigration) {
	switch {
	case state.Message != "" && (state.Message != before.Message || state.Attempts != before.Attempts):
		a.EventAfterCommit(corev1.EventTypeWarning, v1beta1.EventMigrationBlocked, "%s", state.Message)
	case before.Generation != state.Generation || before.UID != state.UID:
		a.EventAfterCommit(corev1.EventTypeNormal, v1beta1.EventMigrationStarted,
			"The objects of CustomResourceDefinition %s that are stored in %s are rewritten in version %s", d.Name, text.List(state.From, maxListed),
			state.To)
	}
}

// requeue requests a reconcile after a time, unless an earlier one is requested.
func requeue(result *loop.Result, after time.Duration) {
	if result.RequeueAfter == 0 || after < result.RequeueAfter {
		result.RequeueAfter = after
	}
}

// reference makes the Installation the owner of what a migration creates.
func (a *action) reference() *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: a.Next.Name, UID: a.Next.UID}
}
