package preview

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
)

// maxDepth is how many Instances in a row a preview follows that make one another.
const maxDepth = 8

// previewChildren previews what the Instances would do that the runs create or change.
func (c *computation) previewChildren(ctx context.Context) error {
	for _, id := range c.order {
		if id.GroupKind() != v1beta1.GroupVersion.WithKind("Instance").GroupKind() {
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
		if after == nil || before != nil && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
			continue
		}
		if err := c.previewChild(ctx, id, before, after); err != nil {
			return err
		}
	}
	return nil
}

func (c *computation) previewChild(ctx context.Context, id apply.ID, before, after *v1beta1.Instance) error {
	edit := Edit{Verb: c.edit.Verb, Before: before, After: after, Versions: c.edit.Versions}
	edit.Version = c.versionOf(ctx, after.OperatorVersionKey())
	switch {
	case c.depth == maxDepth:
		c.unknown("what %s would do: more than %d Instances in a row make one another", id, maxDepth)
		return nil
	case edit.Version == nil:
		c.unknown("what %s would do: OperatorVersion %s cannot be read", id, after.OperatorVersionKey())
		return nil
	case before != nil && before.OperatorVersionKey() != after.OperatorVersionKey():
		edit.Old = c.versionOf(ctx, before.OperatorVersionKey())
	}
	o := c.Options
	o.Incomplete = nil // it is said of the Instance of the edit
	child := newComputationOn(c.cluster, o, edit)
	child.depth = c.depth + 1
	if err := child.compute(ctx); err != nil {
		return err
	}
	child.collect()
	c.out.Children = append(c.out.Children, child.out)
	return child.out.seal()
}

// toInstance converts an object; nil stays nil.
func toInstance(obj *unstructured.Unstructured) (*v1beta1.Instance, error) {
	if obj == nil {
		return nil, nil
	}
	out := &v1beta1.Instance{}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, out)
}
