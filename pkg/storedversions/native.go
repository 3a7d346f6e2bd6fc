package storedversions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// nativeKind is the cluster's own migration. Its spec is the same in the versions below.
var nativeKind = schema.GroupKind{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}

var nativeVersions = []string{"v1", "v1beta1"}

const (
	// nativePoll is the time between two reads of the cluster's own migration.
	nativePoll = 5 * time.Second
	// nativeStart is how long the cluster's own migration may take to begin before kudo rewrites the objects itself: the kind may be
	// served where no controller works on it.
	nativeStart = 5 * time.Minute
)

// nativeMapping returns how the cluster serves its own migrations, or nil if it does not.
func (m *Migrator) nativeMapping() (*meta.RESTMapping, error) {
	mapping, err := m.mapper.RESTMapping(nativeKind, nativeVersions...)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out whether the cluster migrates stored versions: %w", err)
	}
	return mapping, nil
}

// nativeName is the same for the same content of a definition and the same owner: a manager finds what the one before it has created, and
// removes nothing that another owner waits for.
func nativeName(d Definition, owner *metav1.OwnerReference) string {
	var uid types.UID
	if owner != nil {
		uid = owner.UID
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s", d.UID, d.Generation, uid))
	return "kudo-" + hex.EncodeToString(sum[:8])
}

// stepNative has the cluster migrate a definition, and waits until it has. It believes the migration alone that it has created, which it
// knows by the UID in the state: another client may create one of the name before the storage version changes, which ends well and has
// rewritten nothing.
//
//	live migration                              next
//	none                                        create it
//	without our label, or of another resource   fail: it is not ours to delete
//	no UID in the state                         remove it: it is foreign, or the manager has died before it wrote the UID down
//	another UID than in the state               rewrite the objects without the cluster
//	else                                        wait for its end
func (m *Migrator) stepNative(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration,
	owner *metav1.OwnerReference) (Result, error) {
	result := Result{Action: Rewrite, After: nativePoll}
	mapping, err := m.nativeMapping()
	if err != nil {
		return result, err
	}
	if mapping == nil { // it was turned off since
		forgetNative(state)
		return Result{Action: Rewrite}, nil
	}
	resource := m.dynamic.Resource(mapping.Resource)
	live, err := resource.Get(ctx, state.StorageVersionMigration, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return result, m.createNative(ctx, mapping, d, state, owner)
	case err != nil:
		return result, err
	case !migrates(live, d):
		return result, fmt.Errorf("StorageVersionMigration %s exists, and does not migrate %s: delete it", live.GetName(), d.Name)
	case state.StorageVersionMigrationUID == "":
		return result, remove(ctx, resource, live)
	case state.StorageVersionMigrationUID != live.GetUID():
		forgetNative(state)
		state.Message = fmt.Sprintf("StorageVersionMigration %s of %s is not the one that kudo has created: kudo rewrites the objects itself",
			live.GetName(), d.Name)
		return Result{Action: Rewrite}, nil
	}
	return m.awaitNative(ctx, resource, live, d, state)
}

// forgetNative has kudo rewrite the objects itself.
func forgetNative(state *v1beta1.StoredVersionMigration) {
	state.StorageVersionMigration, state.StorageVersionMigrationUID = "", ""
}

// createNative creates the cluster's own migration, and writes its UID into the state.
func (m *Migrator) createNative(ctx context.Context, mapping *meta.RESTMapping, d Definition, state *v1beta1.StoredVersionMigration,
	owner *metav1.OwnerReference) error {
	created, err := m.dynamic.Resource(mapping.Resource).Create(ctx, nativeMigration(mapping, d, state.StorageVersionMigration, owner),
		metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return nil // the next step looks at it
	}
	if err == nil {
		state.StorageVersionMigrationUID = created.GetUID()
	}
	return err
}

// awaitNative waits for the cluster's own migration that kudo has created.
func (m *Migrator) awaitNative(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured, d Definition,
	state *v1beta1.StoredVersionMigration) (result Result, err error) {
	result = Result{Action: Rewrite, After: nativePoll}
	status, message := nativeOutcome(live)
	switch status {
	case "Succeeded":
		if result.Finished, err = m.trim(ctx, state); err != nil {
			return result, err
		}
	case "Failed": // its words seldom name what is in the way: the next attempt is kudo's own
		forgetNative(state)
		deferRetry(state, fmt.Sprintf("StorageVersionMigration %s of %s has failed: %s", live.GetName(), d.Name, message), m.clock.Now())
	default:
		since := live.GetCreationTimestamp().Time // it may be created long after the start of the attempt
		if since.Before(state.StartTime.Time) {
			since = state.StartTime.Time
		}
		if hasBegun(live) || m.clock.Now().Sub(since) < nativeStart {
			return result, nil
		}
		if err := remove(ctx, resource, live); err != nil {
			return result, err
		}
		forgetNative(state)
		return Result{Action: Rewrite}, nil
	}
	return result, remove(ctx, resource, live)
}

// hasBegun reports whether a controller has taken up a migration of the cluster.
func hasBegun(live *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	return len(conditions) > 0
}

// nativeMigration is the object that has the cluster migrate a definition.
func nativeMigration(mapping *meta.RESTMapping, d Definition, name string, owner *metav1.OwnerReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"resource": map[string]any{"group": d.Resource.Group, "resource": d.Resource.Resource}},
	}}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	obj.SetName(name)
	obj.SetLabels(map[string]string{v1beta1.HeritageLabel: v1beta1.Heritage})
	if owner != nil {
		obj.SetOwnerReferences([]metav1.OwnerReference{*owner})
	}
	return obj
}

// migrates reports whether a migration has the label of kudo, which anyone can set, and is for this definition.
func migrates(live *unstructured.Unstructured, d Definition) bool {
	resource, _, _ := unstructured.NestedStringMap(live.Object, "spec", "resource")
	return resource["group"] == d.Resource.Group && resource["resource"] == d.Resource.Resource &&
		live.GetLabels()[v1beta1.HeritageLabel] == v1beta1.Heritage
}

// nativeOutcome returns the condition that is true of an ended migration, and its message; empty while it continues.
func nativeOutcome(live *unstructured.Unstructured) (status, message string) {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		kind, _ := c["type"].(string)
		if c["status"] == "True" && (kind == "Succeeded" || kind == "Failed") {
			said, _ := c["message"].(string)
			return kind, text.Plain(said, maxMessage)
		}
	}
	return "", ""
}

// removeNative deletes the cluster's own migration of a definition that needs none; the name may be empty.
func (m *Migrator) removeNative(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	mapping, err := m.nativeMapping()
	if mapping == nil || err != nil {
		return err
	}
	resource := m.dynamic.Resource(mapping.Resource)
	live, err := resource.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if live.GetLabels()[v1beta1.HeritageLabel] != v1beta1.Heritage {
		return nil
	}
	return remove(ctx, resource, live)
}

// remove deletes a migration of the cluster.
func remove(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured) error {
	uid := live.GetUID()
	err := resource.Delete(ctx, live.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
