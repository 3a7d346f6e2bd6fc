package storedversions

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// nativeFixture is a fixture whose API server migrates by itself, after the first step.
func nativeFixture(t *testing.T) *fixture {
	f := newFixture(t, 3)
	f.AddKind(nativeKind.WithVersion("v1beta1"), false)
	f.mapper = f.Mapper()
	if _, err := f.step(); err != nil || f.state.StorageVersionMigration == "" {
		t.Fatalf("%v %+v", err, f.state)
	}
	if _, err := f.step(); err != nil {
		t.Fatal(err)
	}
	return f
}

// native reads the migration of the cluster; it returns nil if there is none.
func (f *fixture) native(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(nativeKind.WithVersion("v1beta1"))
	obj.SetName(name)
	return f.Server.Get(obj)
}

// end gives the migration of the cluster a condition.
func (f *fixture) end(kind, message string) {
	live := f.native(f.state.StorageVersionMigration).DeepCopy()
	live.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Running", "status": "False"}, map[string]any{"type": kind, "status": "True", "message": message},
	}}
	f.Put(live)
}

// TestNative checks that the cluster's own migration is used where it is served, and removed at the end (P18).
func TestNative(t *testing.T) {
	f := nativeFixture(t)
	name := f.state.StorageVersionMigration
	live := f.native(name)
	if live == nil {
		t.Fatal("no StorageVersionMigration was created")
		return
	}
	resource, _, _ := unstructured.NestedStringMap(live.Object, "spec", "resource")
	if resource["group"] != "example.com" || resource["resource"] != "ships" || live.GetLabels()[v1beta1.HeritageLabel] != v1beta1.Heritage {
		t.Errorf("%v", live.Object)
	}
	if result, err := f.step(); err != nil || result.Finished || len(f.stored()) != 2 {
		t.Errorf("before its end: %+v %v", result, err)
	}
	f.end("Succeeded", "")
	if result, err := f.step(); err != nil || !result.Finished || len(f.stored()) != 1 || f.native(name) != nil {
		t.Errorf("after its end: %+v %v, storedVersions %v", result, err, f.stored())
	}
	if n := len(rewritten(f.Requests())); n > 0 {
		t.Errorf("%d objects were rewritten besides", n)
	}
}

// TestNativeFails checks that a migration reports a failure of the cluster's own migration, keeps the old version, and has kudo rewrite the
// objects in the next attempt.
func TestNativeFails(t *testing.T) {
	f := nativeFixture(t)
	name := f.state.StorageVersionMigration
	f.end("Failed", "ship-0001 is refused")
	if _, err := f.step(); err != nil || f.state.RetryTime == nil || f.native(name) != nil || len(f.stored()) != 2 {
		t.Fatalf("%v %+v", err, f.state)
	}
	if want := "StorageVersionMigration " + name + " of ships.example.com has failed: ship-0001 is refused"; f.state.Message != want {
		t.Errorf("%q, want %q", f.state.Message, want)
	}
	f.clock.SetTime(f.state.RetryTime.Time)
	finished := false
	for range 2 {
		result, err := f.step()
		if err != nil {
			t.Fatal(err)
		}
		finished = result.Finished
	}
	if !finished || f.native(name) != nil || len(f.stored()) != 1 || len(rewritten(f.Requests())) == 0 {
		t.Errorf("kudo has not rewritten the objects: %+v", f.state)
	}
}

// TestNativeForeign checks that a migration of the name that is for something else is left alone.
func TestNativeForeign(t *testing.T) {
	f := nativeFixture(t)
	live := f.native(f.state.StorageVersionMigration).DeepCopy()
	live.Object["spec"] = map[string]any{"resource": map[string]any{"group": "example.com", "resource": "boats"}}
	f.Put(live)
	f.end("Succeeded", "")
	if _, err := f.step(); err == nil || len(f.stored()) != 2 || f.native(f.state.StorageVersionMigration) == nil {
		t.Errorf("%v %v", err, f.stored())
	}
}

// TestNativeForged checks that a migration of the cluster that another client has created counts for nothing, whatever its name, label,
// resource and status: it may have ended before the storage version changed (P18).
func TestNativeForged(t *testing.T) {
	forge := func(f *fixture, name string) {
		mapping, err := f.Migrator.nativeMapping()
		if err != nil {
			t.Fatal(err)
		}
		forged := nativeMigration(mapping, f.definition(), name, nil)
		forged.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Succeeded", "status": "True"}}}
		f.Put(forged)
	}
	t.Run("Before", func(t *testing.T) {
		f := newFixture(t, 3)
		f.AddKind(nativeKind.WithVersion("v1beta1"), false)
		f.mapper = f.Mapper()
		name := nativeName(f.definition(), nil)
		forge(f, name)
		forged := f.native(name).GetUID()
		for range 3 {
			if result, err := f.step(); err != nil || result.Finished || len(f.stored()) != 2 {
				t.Fatalf("one that was there before kudo began: %+v, %v, storedVersions %v", result, err, f.stored())
			}
		}
		own := f.native(name)
		if own == nil || own.GetUID() == forged || own.GetUID() != f.state.StorageVersionMigrationUID {
			t.Fatalf("kudo has not created its own: %v, %+v", own, f.state)
		}
		f.end("Succeeded", "")
		if result, err := f.step(); err != nil || !result.Finished || len(f.stored()) != 1 {
			t.Errorf("its own has ended: %+v, %v, storedVersions %v", result, err, f.stored())
		}
	})
	t.Run("Meanwhile", func(t *testing.T) {
		f := nativeFixture(t)
		name := f.state.StorageVersionMigration
		f.Remove(f.native(name))
		forge(f, name)
		if result, err := f.step(); err != nil || result.Finished || len(f.stored()) != 2 || f.state.Message == "" {
			t.Fatalf("one that has replaced that of kudo: %+v, %v, storedVersions %v, %+v", result, err, f.stored(), f.state)
		}
		f.Requests()
		f.finish()
		if n := len(rewritten(f.Requests())); n != 3 || len(f.stored()) != 1 {
			t.Errorf("kudo has rewritten %d objects itself, want 3; storedVersions %v", n, f.stored())
		}
	})
	t.Run("Lost", func(t *testing.T) {
		f := nativeFixture(t)
		name := f.state.StorageVersionMigration
		f.end("Succeeded", "")
		f.state.StorageVersionMigrationUID = "" // the manager was killed before it wrote the state down
		if result, err := f.step(); err != nil || result.Finished || f.native(name) != nil || len(f.stored()) != 2 {
			t.Fatalf("%+v, %v, storedVersions %v", result, err, f.stored())
		}
		if _, err := f.step(); err != nil || f.native(name) == nil {
			t.Errorf("kudo has not created another one: %v", err)
		}
	})
}

// TestNativeName checks that owners do not share a migration of the cluster, and that managers of one do.
func TestNativeName(t *testing.T) {
	d := Definition{UID: "crd", Generation: 2}
	a, b := &metav1.OwnerReference{UID: "a"}, &metav1.OwnerReference{UID: "b"}
	names := map[string]bool{nativeName(d, nil): true, nativeName(d, a): true, nativeName(d, b): true}
	d.Generation = 3
	names[nativeName(d, a)] = true
	if len(names) != 4 || nativeName(d, a) != nativeName(d, a.DeepCopy()) {
		t.Errorf("%v", names)
	}
}

// TestNativeWithoutController checks that kudo rewrites the objects itself where the kind of the cluster's migration is served and no
// controller takes it up, and that it waits for one that has begun.
func TestNativeWithoutController(t *testing.T) {
	f := nativeFixture(t)
	name := f.state.StorageVersionMigration
	f.clock.SetTime(f.clock.Now().Add(nativeStart - time.Minute))
	if result, err := f.step(); err != nil || f.state.StorageVersionMigration != name || result.After != nativePoll {
		t.Errorf("before the time is over: %+v, %v, %+v", result, err, f.state)
	}
	live := f.native(name).DeepCopy()
	live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Running", "status": "True"}}}
	f.Put(live)
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	if _, err := f.step(); err != nil || f.state.StorageVersionMigration != name {
		t.Errorf("one that runs is given up: %v, %+v", err, f.state)
	}
	live = f.native(name).DeepCopy()
	delete(live.Object, "status")
	live.SetCreationTimestamp(metav1.NewTime(f.clock.Now()))
	f.Put(live)
	if _, err := f.step(); err != nil || f.state.StorageVersionMigration != name {
		t.Errorf("one that was created late: %v, %+v", err, f.state)
	}
	f.clock.SetTime(f.clock.Now().Add(nativeStart))
	f.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "delete" && r.Kind == nativeKind.Kind {
			return nil, apierrors.NewInternalError(errors.New("down"))
		}
		return nil, nil
	})
	if _, err := f.step(); err == nil || f.state.StorageVersionMigration != name {
		t.Errorf("one that cannot be deleted: %v, %+v", err, f.state)
	}
	f.Before(func(apitest.Request) (any, error) { return nil, nil })
	if _, err := f.step(); err != nil || f.state.StorageVersionMigration != "" || f.native(name) != nil {
		t.Errorf("one that no controller takes up: %v, %+v", err, f.state)
	}
	before := f.state.DeepCopy()
	deferRetry(f.state, "refused", f.clock.Now())
	if err := f.begin(t.Context(), f.definition(), f.state, nil); err != nil || f.state.StorageVersionMigration != "" {
		t.Errorf("the next attempt waits for a controller again: %v, %+v", err, f.state)
	}
	*f.state = *before
	for range 10 {
		if result, err := f.step(); err != nil {
			t.Fatal(err)
		} else if result.Finished {
			break
		}
	}
	if stored := f.stored(); len(stored) != 1 {
		t.Errorf("kudo has not rewritten the objects: the versions %v are stored", stored)
	}
}

// definition reads the definition of Ships.
func (f *fixture) definition() Definition {
	f.t.Helper()
	d, err := f.Migrator.Get(f.t.Context(), "ships.example.com")
	if err != nil {
		f.t.Fatal(err)
	}
	return d
}

// TestNativeOff checks that kudo rewrites the objects if the cluster stops to serve its own migrations.
func TestNativeOff(t *testing.T) {
	f := nativeFixture(t)
	f.RemoveKind(nativeKind.WithVersion("v1beta1"))
	f.mapper = f.Mapper()
	f.finish()
	if n := len(rewritten(f.Requests())); n != 3 || len(f.stored()) != 1 {
		t.Errorf("%d objects were rewritten, storedVersions %v", n, f.stored())
	}
}

// TestNativeOwner checks that what is created has the owner.
func TestNativeOwner(t *testing.T) {
	f := nativeFixture(t)
	mapping, err := f.Migrator.nativeMapping()
	if err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "kudo.dev/v1beta1", Kind: "Installation", Name: "x", UID: "y"}
	obj := nativeMigration(mapping, Definition{}, "n", &owner)
	if got := obj.GetOwnerReferences(); len(got) != 1 || got[0].UID != "y" {
		t.Errorf("owners %v", got)
	}
}
