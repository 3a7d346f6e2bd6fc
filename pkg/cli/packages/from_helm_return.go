package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/helmstore"
	"kudo.dev/kudo/pkg/runner"
)

// releaseAttempts is how often the Instance is released while the manager writes it.
const releaseAttempts = 20

// giveBack releases the objects of the Instance, deletes the Instance, and lets Helm find the release again. What an interrupted call has
// done stays done.
func (m *helmMove) giveBack(ctx context.Context) error {
	aside, err := helmstore.ListAside(ctx, m.client, m.namespace, m.release, m.instance)
	if err != nil {
		return err
	}
	instance := &v1beta1.Instance{}
	err = m.client.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: m.instance}, instance)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get Instance %s/%s: %w", m.namespace, m.instance, err)
	}
	known, err := helmstore.List(ctx, m.client, m.namespace, m.release)
	switch {
	case err != nil:
		return err
	case len(aside)+len(known) == 0:
		return fmt.Errorf("namespace %s has no release %s of Helm, and none that was set aside for Instance %s: there is nothing to return to",
			m.namespace, m.release, m.instance)
	case !exists && len(aside) == 0:
		m.env.Printf("release %s/%s is Helm's already", m.namespace, m.release)
		return nil
	}
	var objs releaseObjects
	if exists {
		if objs, err = m.checkReturn(ctx, instance, aside, known); err != nil {
			return err
		}
	}
	question := "Give the objects back to Helm, and delete Instance " + m.instance + "? The objects stay as they are."
	if err := m.env.Ask(m.question(question)); err != nil {
		return err
	}
	if exists {
		if err := m.releaseInstance(ctx, objs); err != nil {
			return err
		}
		m.env.Printf("instance %s/%s deleted, its objects stay", m.namespace, m.instance)
	}
	if err := aside.Restore(ctx, m.client); err != nil {
		return err
	}
	m.env.Printf("release %s/%s is Helm's again", m.namespace, m.release)
	return nil
}

// releaseInstance takes the Instance off its objects, and deletes it. A plan that starts in between writes the Instance before it writes an
// object, so that the deletion, which is bound to the state in which the Instance was idle, does not succeed then.
func (m *helmMove) releaseInstance(ctx context.Context, objs releaseObjects) error {
	var last error
	for range releaseAttempts {
		instance := &v1beta1.Instance{}
		err := m.client.Get(ctx, types.NamespacedName{Namespace: m.namespace, Name: m.instance}, instance)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("get Instance %s/%s: %w", m.namespace, m.instance, err)
		}
		if plan := instance.Status.AggregatedStatus.ActivePlanName; plan != "" {
			return fmt.Errorf("plan %s of Instance %s/%s runs: wait until it has ended, or end it (kubectl kudo plan cancel)", plan, m.namespace,
				m.instance)
		}
		for _, r := range instance.Status.Resources {
			if err := m.releaseObject(ctx, instance, r, objs); err != nil {
				return err
			}
		}
		last = m.deleteReleased(ctx, instance)
		if last == nil || apierrors.IsNotFound(last) {
			return nil
		}
		if !apierrors.IsConflict(last) {
			break
		}
	}
	return fmt.Errorf("delete Instance %s/%s, whose objects do not belong to it any more: %w", m.namespace, m.instance, last)
}

// deleteReleased deletes an Instance that owns no objects, without its cleanup plan.
func (m *helmMove) deleteReleased(ctx context.Context, instance *v1beta1.Instance) error {
	before := instance.DeepCopy()
	if controllerutil.RemoveFinalizer(instance, v1beta1.CleanupFinalizer) {
		if err := m.client.Patch(ctx, instance, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	return m.client.Delete(ctx, instance, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion})
}

// releaseObject removes what kudo has put on an object, but for the metadata of its pods: to remove that would replace them.
func (m *helmMove) releaseObject(ctx context.Context, instance *v1beta1.Instance, r v1beta1.ResourceStatus, objs releaseObjects) error {
	kind, err := m.servedKind(ctx, schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if err != nil {
		return fmt.Errorf("release %s %s/%s: %w", r.Kind, r.Namespace, r.Name, err)
	}
	if kind.Empty() {
		return nil
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	heritage := objs[nameOf(r)].Heritage
	var last error
	for range releaseAttempts {
		err := m.client.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, live)
		if apierror.IsObjectNotFound(err) {
			return nil
		}
		if err == nil {
			// An entry has no uid if the manager has died after its write: then the owner reference counts, which has the object deleted.
			if live.UID != r.UID && !v1beta1.HasOwner(live, instance.UID) {
				return nil
			}
			patch := releasePatch(live, instance, heritage)
			if patch == nil {
				return nil
			}
			err = m.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch))
		}
		if err == nil || apierror.IsObjectNotFound(err) {
			return nil
		}
		if last = err; !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("release %s %s/%s: %w", r.Kind, r.Namespace, r.Name, last)
}

// releasePatch returns the patch that takes an Instance off an object, with kudo's labels, annotations and ownership of fields, or nil if
// there is nothing to take off. The label heritage gets a former value, or is removed if that is empty.
func releasePatch(live *metav1.PartialObjectMetadata, instance *v1beta1.Instance, heritage string) []byte {
	metadata := map[string]any{}
	labels, annotations := map[string]any{}, map[string]any{}
	for key, value := range live.Labels {
		switch {
		case isOwnKey(key), key == v1beta1.HeritageLabel && value == v1beta1.Heritage && heritage == "":
			labels[key] = nil
		case key == v1beta1.HeritageLabel && value == v1beta1.Heritage && heritage != value:
			labels[key] = heritage
		}
	}
	for key := range live.Annotations {
		// The package has added the annotation to what Helm keeps. Otherwise the user has, who wants the object to be kept.
		if isOwnKey(key) && (key != v1beta1.KeepAnnotation || live.Annotations[v1beta1.HelmResourcePolicyAnnotation] == "keep") {
			annotations[key] = nil
		}
	}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if v1beta1.HasOwner(live, instance.UID) {
		metadata["ownerReferences"] = v1beta1.OtherOwners(live, instance.UID)
	}
	manager := runner.Manager(instance.Namespace, instance.Name)
	others := slices.DeleteFunc(slices.Clone(live.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(others) < len(live.ManagedFields) && len(others) > 0 {
		metadata["managedFields"] = others
	}
	if len(metadata) == 0 {
		return nil
	}
	metadata["uid"], metadata["resourceVersion"] = live.UID, live.ResourceVersion
	patch, _ := json.Marshal(map[string]any{"metadata": metadata}) // texts and lists: this does not fail
	return patch
}

// isOwnKey reports whether a label or annotation is kudo's.
func isOwnKey(key string) bool { return strings.HasPrefix(key, v1beta1.GroupVersion.Group+"/") }
