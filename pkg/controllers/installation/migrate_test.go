package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/storedversions"
	"kudo.dev/kudo/test/apitest"
)

// scriptedMigrator answers each step with the same.
type scriptedMigrator struct {
	steps  []string
	owner  *metav1.OwnerReference
	change func(*v1beta1.StoredVersionMigration)
	result storedversions.Result
	err    error
}

func (s *scriptedMigrator) Step(_ context.Context, d storedversions.Definition, state *v1beta1.StoredVersionMigration,
	owner *metav1.OwnerReference) (storedversions.Result, error) {
	s.steps, s.owner = append(s.steps, d.Name), owner
	if s.change != nil {
		s.change(state)
	}
	return s.result, s.err
}

// define puts a definition that the Installation holds, with these stored versions.
func (f *fixture) define(name string, stored []any, modify ...func(*unstructured.Unstructured)) v1beta1.HeldResource {
	return f.hold("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, append([]func(*unstructured.Unstructured){func(obj *unstructured.Unstructured) {
		obj.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage})
		obj.SetGeneration(2)
		obj.Object["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"kind": "Ship", "plural": "ships"},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "storage": false}, map[string]any{"name": "v1", "served": true, "storage": true}}}
		obj.Object["status"] = map[string]any{"storedVersions": stored}
	}}, modify...)...)
}

// status returns the status that the Installation has in the cluster.
func (f *fixture) status() *v1beta1.InstallationStatus {
	now := &v1beta1.Installation{}
	now.Name = f.installation.Name
	f.Read(now)
	return &now.Status
}

var both = []any{"v1alpha1", "v1"}

// TestMigratedDefinitions checks which definitions an Installation migrates: those alone that kudo has installed for it (P18).
func TestMigratedDefinitions(t *testing.T) {
	other := func(f *fixture, deleted bool) func(*unstructured.Unstructured) {
		i := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}}
		if deleted {
			now := metav1.Now()
			i.DeletionTimestamp, i.Finalizers = &now, []string{v1beta1.InstallationFinalizer}
		}
		f.Put(i)
		return func(obj *unstructured.Unstructured) {
			obj.SetOwnerReferences(append([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: "other", UID: "other"}}, obj.GetOwnerReferences()...))
		}
	}
	for _, tc := range []struct {
		reason string
		hold   func(*fixture) v1beta1.HeldResource
		want   bool
	}{
		{"objects are stored in two versions", func(f *fixture) v1beta1.HeldResource { return f.define("ships.example.com", both) }, true},
		{"in one", func(f *fixture) v1beta1.HeldResource { return f.define("ships.example.com", []any{"v1"}) }, false},
		{"kudo did not create the definition", func(f *fixture) v1beta1.HeldResource {
			return f.define("ships.example.com", both, func(obj *unstructured.Unstructured) { obj.SetAnnotations(nil) })
		}, false},
		{"the Installation is no owner", func(f *fixture) v1beta1.HeldResource {
			return f.define("ships.example.com", both, func(obj *unstructured.Unstructured) { obj.SetOwnerReferences(nil) })
		}, false},
		{"another definition of the name", func(f *fixture) v1beta1.HeldResource {
			r := f.define("ships.example.com", both)
			r.UID = "before"
			return r
		}, false},
		{"one that was there", func(f *fixture) v1beta1.HeldResource {
			r := f.define("ships.example.com", both)
			r.State = v1beta1.HoldExisting
			return r
		}, false},
		{"another Installation holds it first", func(f *fixture) v1beta1.HeldResource {
			return f.define("ships.example.com", both, other(f, false))
		}, false},
		{"another one that is being deleted", func(f *fixture) v1beta1.HeldResource {
			return f.define("ships.example.com", both, other(f, true))
		}, true},
	} {
		f := newFixture(t)
		script := &scriptedMigrator{}
		f.Migrator = script
		f.installation.Status.Resources = []v1beta1.HeldResource{tc.hold(f)}
		f.Put(f.installation)
		f.reconcileOnce()
		if got := len(script.steps) > 0; got != tc.want {
			t.Errorf("%s: migrated %t", tc.reason, got)
		}
		if tc.want && (script.owner == nil || script.owner.UID != f.installation.UID) {
			t.Errorf("%s: owner %+v", tc.reason, script.owner)
		}
		if requests := f.Requests(); slices.ContainsFunc(requests, func(r string) bool { return strings.Contains(r, "Ship ") }) {
			t.Errorf("%s: %q", tc.reason, requests)
		}
	}
}

// TestMigrationReported checks what of a step is recorded, said, and asked for next.
func TestMigrationReported(t *testing.T) {
	begun := func(m *v1beta1.StoredVersionMigration) {
		*m = v1beta1.StoredVersionMigration{Definition: m.Definition, UID: "uid-ships.example.com", Generation: 2, From: []string{"v1alpha1"}, To: "v1"}
	}
	retry := metav1.NewTime(time.Now().Add(time.Minute))
	for _, tc := range []struct {
		reason string
		before func(*v1beta1.StoredVersionMigration)
		script scriptedMigrator
		left   int
		event  string
		after  time.Duration
	}{
		{"it begins", nil, scriptedMigrator{change: begun, result: storedversions.Result{After: 5 * time.Second}}, 1,
			"Normal MigrationStarted The objects of CustomResourceDefinition ships.example.com that are stored in v1alpha1 are rewritten in version v1", 5 * time.Second},
		{"a page is rewritten", begun, scriptedMigrator{change: func(m *v1beta1.StoredVersionMigration) { m.Done = 500 }}, 1, "", nextPage},
		{"it ends", begun, scriptedMigrator{result: storedversions.Result{Finished: true}}, 0,
			"Normal MigrationFinished All objects of CustomResourceDefinition ships.example.com are stored in version v1", 0},
		{"it is refused", begun, scriptedMigrator{change: func(m *v1beta1.StoredVersionMigration) { m.Message, m.RetryTime, m.Attempts = "no", &retry, 1 }}, 1,
			"Warning MigrationBlocked no", time.Minute},
		{"it fails", begun, scriptedMigrator{err: errors.New("away")}, 1, "Warning MigrationBlocked away", 250 * time.Millisecond},
	} {
		f := newFixture(t)
		f.Migrator = &tc.script
		f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
		if tc.before != nil {
			m := v1beta1.StoredVersionMigration{Definition: "ships.example.com"}
			tc.before(&m)
			f.installation.Status.Migrations = []v1beta1.StoredVersionMigration{m}
		}
		f.Put(f.installation)
		result, events := f.reconcileOnce()
		if left := f.status().Migrations; len(left) != tc.left {
			t.Errorf("%s: %+v", tc.reason, left)
		}
		if tc.event != strings.Join(events, "\n") {
			t.Errorf("%s: events %q", tc.reason, events)
		}
		if got := result.RequeueAfter; got > tc.after || got < tc.after-time.Second || tc.after > 0 && got <= 0 {
			t.Errorf("%s: next after %s, want %s", tc.reason, got, tc.after)
		}
	}
}

// TestManyMigrations checks that the list in the status is bounded and has no entry that has not begun, and that one page is rewritten in
// a reconcile.
func TestManyMigrations(t *testing.T) {
	f := newFixture(t)
	script := &scriptedMigrator{}
	f.Migrator = script
	for n := range v1beta1.MaxMigrations + 4 {
		f.installation.Status.Resources = append(f.installation.Status.Resources, f.define(fmt.Sprintf("ships-%02d.example.com", n), both))
	}
	f.Put(f.installation)
	read := func() int { return len(f.status().Migrations) }
	if f.reconcileOnce(); read() != 0 || len(script.steps) != 1 {
		t.Errorf("a page in a reconcile: %d migrations, steps %q", read(), script.steps)
	}
	script.steps, script.result.After = nil, time.Minute
	script.change = func(m *v1beta1.StoredVersionMigration) { m.UID = "x" }
	if f.reconcileOnce(); read() != v1beta1.MaxMigrations || len(script.steps) != v1beta1.MaxMigrations {
		t.Errorf("%d migrations, steps %q", read(), script.steps)
	}
}

// ships puts a definition with ships, which the Installation holds, and returns what counts rewritten ships and reads the stored versions.
func (f *fixture) ships(n int) (rewritten func() int, stored func() []string) {
	f.AddKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}, true)
	for i := range n {
		ship := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Ship"}}
		ship.SetNamespace("ns")
		ship.SetName(fmt.Sprintf("ship-%04d", i))
		f.Put(ship)
	}
	f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
	f.Put(f.installation)
	names := map[string]bool{}
	rewritten = func() int {
		for _, r := range f.Requests() {
			if name, is := strings.CutPrefix(r, "patch Ship ns/"); is {
				names[name] = true
			}
		}
		return len(names)
	}
	stored = func() []string {
		crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		crd.SetName("ships.example.com")
		versions, _, _ := unstructured.NestedStringSlice(f.Server.Get(crd).Object, "status", "storedVersions")
		return versions
	}
	return rewritten, stored
}

// TestNewManagers checks that a migration is finished by a manager that was started anew after each page (P18).
func TestNewManagers(t *testing.T) {
	f := newFixture(t)
	rewritten, stored := f.ships(1100)
	pages := 0
	for n := 0; len(stored()) > 1; n++ {
		if n == 50 {
			t.Fatal("the migration does not end")
		}
		f.Reconciler = &Reconciler{Client: f.Reconciler.Client, Reader: f.Reader, Share: f.Share, Events: f.events, Clock: f.clock, Migrator: f.Migrator}
		before := rewritten()
		f.reconcileOnce()
		if rewritten() > before {
			pages++
		}
		f.clock.SetTime(f.clock.Now().Add(10 * time.Second))
	}
	if n := rewritten(); n != 1100 || pages != 3 {
		t.Errorf("%d of 1100 objects were rewritten, in %d pages", n, pages)
	}
	f.reconcileOnce()
	if left := f.status().Migrations; left != nil {
		t.Errorf("%+v", left)
	}
}

// TestLostCommit checks that a page is rewritten again whose progress could not be recorded, and that no event tells of it.
func TestLostCommit(t *testing.T) {
	f := newFixture(t)
	rewritten, _ := f.ships(600)
	f.installation.Status.Migrations = []v1beta1.StoredVersionMigration{{Definition: "ships.example.com", UID: "uid-ships.example.com", Generation: 2,
		From: []string{"v1alpha1"}, To: "v1", StartTime: metav1.NewTime(time.Now().Add(-2 * time.Hour))}}
	f.Put(f.installation)
	f.Before(func(r apitest.Request) (any, error) {
		if r.Kind == "Installation" && r.Verb == "patch" {
			return nil, apierrors.NewConflict(schema.GroupResource{Resource: "installations"}, r.Name, errors.New("changed"))
		}
		return nil, nil
	})
	if _, events := f.reconcileOnce(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
	f.Before(nil)
	if n := rewritten(); n != 500 {
		t.Errorf("%d objects were rewritten", n)
	}
	f.reconcileOnce()
	if m := f.status().Migration("ships.example.com"); m == nil || m.Done != 500 || m.Of != 600 || m.Continue == "" {
		t.Errorf("%+v", m)
	}
}

// TestTurn checks that no second page is rewritten while one is, and that the Installation comes back for it.
func TestTurn(t *testing.T) {
	f := newFixture(t)
	script := &scriptedMigrator{}
	f.Migrator = script
	f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
	f.installation.Status.Migrations = []v1beta1.StoredVersionMigration{{Definition: "ships.example.com", UID: "uid-ships.example.com", Generation: 2,
		From: []string{"v1alpha1"}, To: "v1", StartTime: metav1.NewTime(time.Now().Add(-time.Hour))}}
	f.Put(f.installation)
	f.page.Lock()
	if result, _ := f.reconcileOnce(); len(script.steps) != 0 || result.RequeueAfter != turnInterval {
		t.Errorf("steps %q, next after %s", script.steps, result.RequeueAfter)
	}
	f.page.Unlock()
	script.change = func(m *v1beta1.StoredVersionMigration) { m.Done++ }
	if result, _ := f.reconcileOnce(); len(script.steps) != 1 || result.RequeueAfter != 2*turnInterval {
		t.Errorf("steps %q, next after %s: who has waited comes first", script.steps, result.RequeueAfter)
	}
	if result, _ := f.reconcileOnce(); len(script.steps) != 2 || result.RequeueAfter != nextPage {
		t.Errorf("steps %q, next after %s: no one waits", script.steps, result.RequeueAfter)
	}
}

// TestAnotherMigrates checks that an Installation is reconciled again while another one is to migrate a definition, and takes over when that one is
// being deleted: no event tells of it, since the definition does not change.
func TestAnotherMigrates(t *testing.T) {
	f := newFixture(t)
	script := &scriptedMigrator{}
	f.Migrator = script
	other := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other", Finalizers: []string{v1beta1.InstallationFinalizer}}}
	f.Put(other)
	f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both, func(obj *unstructured.Unstructured) {
		first := metav1.OwnerReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "Installation", Name: other.Name, UID: other.UID}
		obj.SetOwnerReferences(append([]metav1.OwnerReference{first}, obj.GetOwnerReferences()...))
	})}
	f.Put(f.installation)
	if result, _ := f.reconcileOnce(); len(script.steps) != 0 || result.RequeueAfter != pollInterval {
		t.Errorf("steps %q, next after %s, want none, and %s", script.steps, result.RequeueAfter, pollInterval)
	}
	now := metav1.Now()
	other.DeletionTimestamp = &now
	f.Put(other)
	if f.reconcileOnce(); len(script.steps) != 1 {
		t.Errorf("steps %q, want one", script.steps)
	}
}

// TestSelectMigrations checks that a migration stays whose definition is not known for a moment, as after the start of a manager.
func TestSelectMigrations(t *testing.T) {
	known := []v1beta1.StoredVersionMigration{{Definition: "a", Continue: "token"}, {Definition: "b"}, {Definition: "c"}}
	found := definitions{due: []storedversions.Definition{{Name: "b"}, {Name: "d"}}, unseen: []string{"a"}}
	var names []string
	for _, m := range selectMigrations(known, found) {
		names = append(names, m.Definition+m.Continue)
	}
	if want := []string{"atoken", "b", "d"}; !slices.Equal(names, want) {
		t.Errorf("migrations %q, want %q", names, want)
	}
}

// TestBlockedMigrationsYield checks that definitions which wait for room take the place of migrations that are refused again and again, and of
// no others.
func TestBlockedMigrationsYield(t *testing.T) {
	retry := metav1.Now()
	blocked := func(attempts int32) v1beta1.StoredVersionMigration {
		return v1beta1.StoredVersionMigration{Attempts: attempts, RetryTime: &retry}
	}
	for _, tc := range []struct {
		reason string
		last   v1beta1.StoredVersionMigration
		want   bool
	}{
		{"all continue", v1beta1.StoredVersionMigration{}, false},
		{"one was refused, and is tried again soon", blocked(fairAttempts - 1), false},
		{"one was refused again and again", blocked(fairAttempts), true},
		{"one was refused before, and continues now", v1beta1.StoredVersionMigration{Attempts: fairAttempts}, false},
	} {
		var known []v1beta1.StoredVersionMigration
		var due []storedversions.Definition
		for n := range v1beta1.MaxMigrations {
			m := v1beta1.StoredVersionMigration{}
			if n == v1beta1.MaxMigrations/2 {
				m = tc.last
			}
			m.Definition = fmt.Sprintf("d-%02d", n)
			known, due = append(known, m), append(due, storedversions.Definition{Name: m.Definition})
		}
		next := selectMigrations(known, definitions{due: append(due, storedversions.Definition{Name: "waits"}, storedversions.Definition{Name: "waits-too"})})
		has := func(name string) bool {
			return slices.ContainsFunc(next, func(m v1beta1.StoredVersionMigration) bool { return m.Definition == name })
		}
		if len(next) != v1beta1.MaxMigrations || has("waits") != tc.want || has("waits-too") || has(known[v1beta1.MaxMigrations/2].Definition) == tc.want {
			t.Errorf("%s: %+v", tc.reason, next)
		}
	}
}

// TestBlockedMigrationsWaitInTurn checks that a migration that gives its place away does not take that of another one in the same step.
func TestBlockedMigrationsWaitInTurn(t *testing.T) {
	retry := metav1.Now()
	var known []v1beta1.StoredVersionMigration
	due := []storedversions.Definition{{Name: "a-new"}}
	for n := range v1beta1.MaxMigrations {
		m := v1beta1.StoredVersionMigration{Definition: fmt.Sprintf("d-%02d", n), Attempts: fairAttempts + int32(n), RetryTime: &retry}
		known, due = append(known, m), append(due, storedversions.Definition{Name: m.Definition})
	}
	next := selectMigrations(known, definitions{due: due})
	if len(next) != v1beta1.MaxMigrations || next[len(next)-1].Definition != "a-new" || next[0].Definition != "d-01" || next[0].Attempts != fairAttempts+1 {
		t.Errorf("%+v", next)
	}
}

// TestFirstMessage checks that errors whose words differ each time write one message: a write has the migration tried again at once.
func TestFirstMessage(t *testing.T) {
	f := newFixture(t)
	f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
	f.Put(f.installation)
	script := &scriptedMigrator{change: func(m *v1beta1.StoredVersionMigration) { m.UID, m.To, m.From = "x", "v1", []string{"v1alpha1"} }}
	f.Migrator = script
	for n, words := range []string{"first\x1b[31m", "second", "third"} {
		script.err = errors.New(words)
		f.reconcileOnce()
		f.Read(f.installation)
		if m := f.installation.Status.Migrations; len(m) != 1 || m[0].Message != "first[31m" {
			t.Errorf("attempt %d: %+v", n, m)
		}
	}
}

// TestMigrationsDropped checks that migrations go that are not due any more: of definitions that were deleted, or that others migrate.
func TestMigrationsDropped(t *testing.T) {
	f := newFixture(t)
	f.installation.Status.Migrations = []v1beta1.StoredVersionMigration{{Definition: "boats.example.com", UID: "x", From: []string{"v0"}, To: "v1"}}
	f.Put(f.installation)
	if _, events := f.reconcileOnce(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
	if left := f.status().Migrations; left != nil {
		t.Errorf("%+v", left)
	}
}

// TestUnreadableDefinition checks that a definition that cannot be read is an error that names it.
func TestUnreadableDefinition(t *testing.T) {
	f := newFixture(t)
	held := f.define("ships.example.com", both, func(obj *unstructured.Unstructured) { obj.Object["spec"] = map[string]any{"versions": "text"} })
	f.installation.Status.Resources = []v1beta1.HeldResource{held}
	if _, err := f.observe(t.Context(), f.installation); err == nil || !strings.Contains(err.Error(), "ships.example.com") {
		t.Errorf("%v", err)
	}
}

// TestOnlyHeldMigrate checks that an Installation migrates nothing once it is to be released: others, if there are any, do.
func TestOnlyHeldMigrate(t *testing.T) {
	f := newFixture(t)
	script := &scriptedMigrator{}
	f.Migrator = script
	f.release(f.define("ships.example.com", both))
	f.reconcileOnce()
	if len(script.steps) > 0 {
		t.Errorf("an Installation that is being deleted has migrated %q", script.steps)
	}
}

// TestInterrupted checks that a step which the end of the manager has interrupted is no failure that people are told of.
func TestInterrupted(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.Migrator = &scriptedMigrator{err: context.Canceled, change: func(*v1beta1.StoredVersionMigration) { cancel() }}
	f.installation.Status.Resources = []v1beta1.HeldResource{f.define("ships.example.com", both)}
	f.Put(f.installation)
	if _, err := f.reconcile(ctx, loop.NewObject(f.Reconciler.Client, f.Reader, f.events, f.installation)); !errors.Is(err, context.Canceled) || len(f.events.Events) > 0 {
		t.Errorf("%v, %d events", err, len(f.events.Events))
	}
}
