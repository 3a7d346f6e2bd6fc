package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/storedversions"
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

// TestMigrationReported checks what of a step is written down, said, and asked for next.
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
		now := &v1beta1.Installation{}
		now.Name = f.installation.Name
		f.Read(now)
		if len(now.Status.Migrations) != tc.left {
			t.Errorf("%s: %+v", tc.reason, now.Status.Migrations)
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
	read := func() int {
		now := &v1beta1.Installation{}
		now.Name = f.installation.Name
		f.Read(now)
		return len(now.Status.Migrations)
	}
	if f.reconcileOnce(); read() != 0 || len(script.steps) != 1 {
		t.Errorf("a page in a reconcile: %d migrations, steps %q", read(), script.steps)
	}
	script.steps, script.result.After = nil, time.Minute
	script.change = func(m *v1beta1.StoredVersionMigration) { m.UID = "x" }
	if f.reconcileOnce(); read() != v1beta1.MaxMigrations || len(script.steps) != v1beta1.MaxMigrations {
		t.Errorf("%d migrations, steps %q", read(), script.steps)
	}
}
