package karmada

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// appliedAnnotation on a policy holds a hash of what was applied last. It shows that a field has to be taken out, which the fields of the
// live object do not: others may have set it.
const appliedAnnotation = "kudo.dev/applied-hash"

// version identifies a state of an object.
type version struct {
	uid             types.UID
	resourceVersion string
}

func versionOf(o *unstructured.Unstructured) version {
	return version{o.GetUID(), o.GetResourceVersion()}
}

// isShownBy reports whether an object of the cache is as new as the version.
func (v version) isShownBy(cached *unstructured.Unstructured) bool {
	if cached == nil || cached.GetUID() != v.uid {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), v.resourceVersion)
	return err == nil && order >= 0
}

// write is an object as it should be, and as it is; live is nil if there is none.
type write struct {
	want, live *unstructured.Unstructured
	// equal is set if nothing has to be written.
	equal bool
}

// compare reads the live object of a document. It asks the API server only if the cache shows that something has to be written.
func (e *Engine) compare(ctx context.Context, instance *v1beta1.Instance, want *unstructured.Unstructured) (write, error) {
	hash, err := hashOf(want)
	if err != nil {
		return write{}, err
	}
	want.SetAnnotations(map[string]string{appliedAnnotation: hash})
	key := client.ObjectKeyFromObject(want)
	for _, from := range []client.Reader{e.cache, e.client} {
		live, err := get(ctx, from, want.GroupVersionKind(), key)
		if err != nil {
			return write{}, err
		}
		out := write{want: want, live: live, equal: live != nil && isAsApplied(live, want) && metav1.IsControlledBy(live, instance)}
		if out.equal && (from != e.cache || e.isFresh(keyOf(instance), live)) {
			return out, nil
		}
		if from == e.cache {
			continue
		}
		if live != nil && !metav1.IsControlledBy(live, instance) {
			return write{}, foreign(instance, live)
		}
		return out, nil
	}
	return write{}, nil
}

// isFresh reports whether an object of the cache is as new as what was written.
func (e *Engine) isFresh(instance types.NamespacedName, cached *unstructured.Unstructured) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.written[instance]
	return !known || last.of(cached.GetKind()).isShownBy(cached)
}

// note records the version of a policy.
func (e *Engine) note(instance types.NamespacedName, kind string, v version) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.written[instance]
	*last.of(kind) = v
	e.written[instance] = last
}

// of returns the version of a kind of policies.
func (v *versions) of(kind string) *version {
	if kind == OverrideKind.Kind {
		return &v.override
	}
	return &v.policy
}

// foreign returns the error that an object of the name of a policy belongs to another owner.
func foreign(instance *v1beta1.Instance, live *unstructured.Unstructured) error {
	owner := "no controller"
	if ref := metav1.GetControllerOf(live); ref != nil {
		owner = fmt.Sprintf("controller %s %s with uid %s", ref.Kind, ref.Name, ref.UID)
	}
	return &clusters.RefusedError{Reason: v1beta1.ReasonForeignPolicy, Message: message(fmt.Sprintf(
		"%s %s/%s has %s, and is not of Instance %s with uid %s: delete it, or give the Instance another name",
		live.GetKind(), live.GetNamespace(), live.GetName(), owner, keyOf(instance), instance.UID))}
}

// apply writes what differs, and notes the version that there is then.
func (e *Engine) apply(ctx context.Context, instance types.NamespacedName, w write) error {
	if w.equal {
		e.note(instance, w.live.GetKind(), versionOf(w.live))
		return nil
	}
	sent := w.want
	if w.live != nil {
		// An object that another client has replaced since it was read is a conflict, and is not written to.
		sent.SetUID(w.live.GetUID())
		sent.SetResourceVersion(w.live.GetResourceVersion())
	}
	kind, key := sent.GetKind(), client.ObjectKeyFromObject(sent)
	e.note(instance, kind, version{}) // a write that fails may have reached the API server
	options := []client.ApplyOption{client.FieldOwner(clusters.FieldManager), client.ForceOwnership}
	if err := e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(sent), options...); err != nil {
		return fmt.Errorf("apply %s %s: %w", kind, key, err)
	}
	e.note(instance, kind, versionOf(sent))
	return nil
}

// isAsApplied reports whether a live object has all that is wanted, and was applied with nothing else.
func isAsApplied(live, want *unstructured.Unstructured) bool {
	return live.GetAnnotations()[appliedAnnotation] == want.GetAnnotations()[appliedAnnotation] &&
		covers(live.Object["spec"], want.Object["spec"]) && covers(at(live.Object, "metadata", "labels"), at(want.Object, "metadata", "labels"))
}

// hashOf returns a hash of the content of a document.
func hashOf(document *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(document.Object)
	if err != nil {
		return "", fmt.Errorf("encode %s %s: %w", document.GetKind(), client.ObjectKeyFromObject(document), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
