// Package enhance puts kudo's metadata on rendered objects: namespace, owner, labels, annotations, and the hash of
// what their pods depend on.
package enhance

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// Context says for whom, and in which place of which plan, objects were rendered.
type Context struct {
	// Operator is the name of the operator; the value of the label kudo.dev/operator.
	Operator string
	// OperatorVersion is the version of the operator package; it stands on pod templates.
	OperatorVersion string
	// Instance is the namespace and name of the Instance that owns the objects.
	Instance types.NamespacedName
	// InstanceUID is the uid of that Instance.
	InstanceUID types.UID
	// Plan that runs.
	Plan string
	// Phase of the plan.
	Phase string
	// Step of the phase.
	Step string
	// PlanUID is the uid of the run.
	PlanUID types.UID
	// Digest returns a keyed digest of the text of a Secret: pod templates are seen by more people than Secrets. Without it,
	// the hash of pods that read a Secret is an error.
	Digest func(text []byte) ([16]byte, error)
	// Live returns the object on the cluster that an object is going to replace, or nil when there is none. It is called for objects
	// whose pods read a Secret, so that a hash that KUDO has written can stay. Nil finds nothing. Its errors are returned as they are.
	Live func(object *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// Scope reports whether a kind is namespaced. Its errors are returned wrapped, so that the caller can tell an
	// unknown kind from a discovery that failed.
	Scope Scope
}

// Scope reports whether the objects of a kind live in namespaces.
type Scope func(kind schema.GroupKind) (namespaced bool, err error)

// Lookup returns the live object, whole (its data is hashed), or nil when there is none. It must not be answered
// from a cache that is older than our own last write of the object, or that leaves out data. It is called only for
// ConfigMaps and Secrets that are not among the objects of the task. The object is not changed. A nil Lookup finds
// nothing: rendering without a cluster.
type Lookup func(kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)

// Enhance changes the objects of one task in place, as KUDO does: a namespaced object moves to
// the Instance's namespace and gets the Instance as its controller, unless it is to be kept; every object gets the three labels and the
// annotations of the run; pod templates get the labels, the operator version and the dependencies hash.
// Enhancing an object twice gives the same object.
//
// An object that cannot be enhanced gives a *MalformedError, which is fatal. Errors of Scope and lookup are
// wrapped. After an error the objects may be partly enhanced and must not be applied.
func Enhance(objects []*unstructured.Unstructured, ctx Context, lookup Lookup) error {
	for _, object := range objects {
		if err := enhanceObject(object, ctx); err != nil {
			return err
		}
	}
	// Only now: the hash of a dependency in the same task is that of the enhanced object.
	h := hasher{objects: objects, namespace: ctx.Instance.Namespace, lookup: lookup, live: ctx.Live, keyed: ctx.Digest}
	for _, object := range objects {
		if err := h.setHash(object); err != nil {
			return err
		}
	}
	return nil
}

func enhanceObject(object *unstructured.Unstructured, ctx Context) error {
	if object == nil || object.Object == nil {
		return &MalformedError{Object: "an object", Problem: "is empty"}
	}
	root := rootOf(object)
	metadata, err := root.child("metadata", create)
	if err != nil {
		return err
	}
	if err := setOwner(object, metadata, ctx); err != nil {
		return err
	}
	if err := metadata.setStrings("labels", ctx.labels()); err != nil {
		return err
	}
	if err := metadata.setStrings("annotations", ctx.annotations()); err != nil {
		return err
	}
	return enhanceTemplates(object, ctx)
}

// setOwner gives a namespaced object its place and its controller. One that is to be kept gets no controller, since the garbage
// collector would delete it with the Instance. A cluster-scoped one gets neither: a namespaced
// owner is no valid owner of it, and a namespace it has by mistake is dropped, as the apiserver does.
func setOwner(object *unstructured.Unstructured, metadata node, ctx Context) error {
	kind := object.GroupVersionKind().GroupKind()
	namespaced, err := ctx.Scope(kind)
	if err != nil {
		return fmt.Errorf("finding out whether %s is namespaced: %w", describe(object), err)
	}
	if !namespaced {
		delete(metadata.fields, "namespace")
		return nil
	}
	metadata.fields["namespace"] = ctx.Instance.Namespace
	return metadata.setController(ctx, v1beta1.CanBeKept(kind) && v1beta1.IsKept(object.GetAnnotations()))
}

func (c Context) labels() map[string]string {
	return map[string]string{
		v1beta1.HeritageLabel: v1beta1.Heritage,
		v1beta1.OperatorLabel: c.Operator,
		v1beta1.InstanceLabel: c.Instance.Name,
	}
}

func (c Context) annotations() map[string]string {
	return map[string]string{
		v1beta1.PlanAnnotation:    c.Plan,
		v1beta1.PhaseAnnotation:   c.Phase,
		v1beta1.StepAnnotation:    c.Step,
		v1beta1.PlanUIDAnnotation: string(c.PlanUID),
	}
}

func (c Context) controller() map[string]any {
	return map[string]any{
		"apiVersion":         v1beta1.GroupVersion.String(),
		"kind":               "Instance",
		"name":               c.Instance.Name,
		"uid":                string(c.InstanceUID),
		"controller":         true,
		"blockOwnerDeletion": true,
	}
}
