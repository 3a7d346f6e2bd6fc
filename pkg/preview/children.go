package preview

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// maxDepth bounds how deep a preview follows Instances whose plans create Instances.
const maxDepth = 8

// previewChildren previews what the Instances would do that the runs create or change.
func (c *computation) previewChildren(ctx context.Context) error {
	for _, id := range c.order {
		if id.GroupKind() != instances {
			continue
		}
		change, _ := c.cluster.Find(id)
		before, err := toInstance(change.Before)
		if err != nil {
			return err
		}
		after, err := toInstance(change.After)
		if err != nil {
			return err
		}
		switch {
		case before == nil && after == nil:
		case after == nil:
			err = c.previewDeletion(ctx, id, before)
		case before == nil || !equality.Semantic.DeepEqual(before.Spec, after.Spec) || c.changesSource(after):
			err = c.previewChild(ctx, id, before, after)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changesSource reports whether the runs change a Secret or ConfigMap that gives parameters to an Instance. The spec of the Instance does
// not show this.
func (c *computation) changesSource(i *v1beta1.Instance) bool {
	return slices.ContainsFunc(i.Spec.ParametersFrom, func(source v1beta1.ParametersSource) bool {
		id := apply.ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: source.Kind}}
		id.Namespace, id.Name = i.Namespace, source.Name
		change, written := c.cluster.Find(id)
		return written && (change.Before == nil || change.After == nil || len(compare(change.Before, change.After, c.mask).fields) > 0)
	})
}

// child returns the computation of an edit of a child of this Instance, or nil if the Instances are nested deeper than maxDepth.
func (c *computation) child(id apply.ID, edit Edit) *computation {
	if c.depth == maxDepth {
		c.unknown("what %s would do: more than %d Instances in a row make one another", id, maxDepth)
		return nil
	}
	o := c.Options
	o.Incomplete = nil // it is said of the Instance of the edit
	child := newComputationOn(c.cluster, o, edit)
	child.depth, child.keepsClaims, child.deleted, child.listed = c.depth+1, c.keepsClaims, c.deleted, c.listed
	child.secrets, child.mask = c.secrets, c.mask // templates may make names and values of children from them
	child.out.Subject = c.mask.Whole(child.out.Subject)
	c.children = append(c.children, child)
	return child
}

// previewDeletion previews what is deleted with an Instance that a run deletes, or that is itself deleted with the Instance of the edit.
func (c *computation) previewDeletion(ctx context.Context, id apply.ID, before *v1beta1.Instance) error {
	version := c.versionOf(ctx, before.OperatorVersionKey())
	child := c.child(id, uninstallEdit(before, version))
	if child == nil {
		return nil
	}
	if err := child.uninstall(ctx); err != nil {
		return err
	}
	child.noteObjects(ctx, child.order)
	return nil
}

func (c *computation) previewChild(ctx context.Context, id apply.ID, before, after *v1beta1.Instance) error {
	edit := Edit{Verb: c.edit.Verb, Before: before, After: after, Versions: c.edit.Versions}
	if edit.Version = c.versionOf(ctx, after.OperatorVersionKey()); edit.Version == nil {
		c.unknown("what %s would do: OperatorVersion %s cannot be read", id, after.OperatorVersionKey())
		return nil
	}
	if before != nil && before.OperatorVersionKey() != after.OperatorVersionKey() {
		edit.Old = c.versionOf(ctx, before.OperatorVersionKey())
	}
	child := c.child(id, edit)
	if child == nil {
		return nil
	}
	if err := child.compute(ctx); err != nil {
		return err
	}
	child.noteObjects(ctx, child.order)
	return nil
}

// toInstance converts an object; nil stays nil.
func toInstance(obj *unstructured.Unstructured) (*v1beta1.Instance, error) {
	if obj == nil {
		return nil, nil
	}
	out := &v1beta1.Instance{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out)
}
