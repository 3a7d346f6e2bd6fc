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

// nativeName is the same for the same content of a definition, so that two managers create one object.
func nativeName(d Definition) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", d.UID, d.Generation))
	return "kudo-" + hex.EncodeToString(sum[:8])
}

// stepNative has the cluster migrate a definition, and waits until it has.
func (m *Migrator) stepNative(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration,
	owner *metav1.OwnerReference) (Result, error) {
	result := Result{Action: Rewrite, After: nativePoll}
	mapping, err := m.nativeMapping()
	if err != nil {
		return result, err
	}
	if mapping == nil { // it was turned off since
		state.StorageVersionMigration = ""
		return Result{Action: Rewrite}, nil
	}
	resource := m.dynamic.Resource(mapping.Resource)
	live, err := resource.Get(ctx, state.StorageVersionMigration, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = resource.Create(ctx, nativeMigration(mapping, d, state.StorageVersionMigration, owner),
			metav1.CreateOptions{FieldManager: manager})
		if apierrors.IsAlreadyExists(err) {
			return result, nil
		}
		return result, err
	case err != nil:
		return result, err
	case !migrates(live, d):
		return result, fmt.Errorf("StorageVersionMigration %s exists, and does not migrate %s: delete it", live.GetName(), d.Name)
	}
	status, message := nativeOutcome(live)
	switch status {
	case "Succeeded":
		if result.Finished, err = m.trim(ctx, state); err != nil {
			return result, err
		}
	case "Failed":
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
		state.StorageVersionMigration = ""
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

// migrates reports whether kudo created a migration, for this definition.
func migrates(live *unstructured.Unstructured, d Definition) bool {
	resource, _, _ := unstructured.NestedStringMap(live.Object, "spec", "resource")
	return resource["group"] == d.Resource.Group && resource["resource"] == d.Resource.Resource &&
		live.GetLabels()[v1beta1.HeritageLabel] == v1beta1.Heritage
}

// nativeOutcome returns the condition that is true of an ended migration, and its message; empty while it goes on.
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
