package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Comparison is what an apply would change of one object. It is bound to the live object that was compared.
type Comparison struct {
	ID ID
	// Missing is set if there is no object.
	Missing bool
	// Fields would be changed, in order; those of a Secret are not named. Owner references do not count, nor does what every run
	// writes anew.
	Fields []string
	// Err says why the object must not be written, or why the comparison failed.
	Err error

	body, live *unstructured.Unstructured
	claim      Claim
	hash       string
}

// Equal reports whether an apply would change nothing of the object but its owners.
func (c Comparison) Equal() bool { return c.Err == nil && !c.Missing && len(c.Fields) == 0 }

// Compare finds out by dry runs what an apply of the objects would change. Each object is read live.
func (e *Engine) Compare(ctx context.Context, objs []*unstructured.Unstructured, o Options) []Comparison {
	out := make([]Comparison, len(objs))
	forEach(objs, func(i int, obj *unstructured.Unstructured) { out[i] = e.compareOne(ctx, obj, o) })
	return out
}

func (e *Engine) compareOne(ctx context.Context, obj *unstructured.Unstructured, o Options) Comparison {
	c := Comparison{ID: IDOf(obj), body: Body(obj), hash: Hash(obj, o.Keys)}
	resource, err := e.Resource(obj)
	if err == nil {
		c.live, err = GetOrNil(ctx, resource, obj.GetName())
	}
	if err != nil {
		c.Err = e.Classify(ctx, obj, err)
		return c
	}
	if c.live == nil {
		c.Missing = true
		return c
	}
	if c.live.GetDeletionTimestamp() != nil {
		c.Err = fmt.Errorf("%s is being deleted%s", c.ID, Finalizers(c.live))
		return c
	}
	owner := ""
	switch c.claim, owner = o.Claim(ctx, c.live); c.claim {
	case Foreign:
		c.Err = newCollision(c.live, owner)
		return c
	case OwnerGone:
		c.Err = fmt.Errorf("%s belongs to %s, which does not exist", c.ID, owner)
		return c
	}
	if body, err := e.withhold(ctx, resource, c.body, c.live, c.claim, o); err == nil {
		c.body = body
	} else if !IsSchemaError(err) { // that the dry run finds again
		c.Err = e.Classify(ctx, obj, err)
		return c
	}
	dry := metav1.ApplyOptions{FieldManager: o.Manager, DryRun: []string{metav1.DryRunAll}}
	written, err := e.send(ctx, resource, c.body, c.live, c.claim, dry)
	if IsSchemaError(err) {
		if dropped, _ := e.kinds.Prune(ctx, c.body); len(dropped) > 0 {
			written, err = e.send(ctx, resource, c.body, c.live, c.claim, dry)
		}
	}
	if err != nil {
		c.Err = e.Classify(ctx, obj, err)
		return c
	}
	c.Fields, c.Err = changedFields(c.live, written)
	return c
}

// changedFields lists the fields in which an object differs from the result of a dry run.
func changedFields(live, written *unstructured.Unstructured) ([]string, error) {
	before, err := typed.DeducedParseableType.FromUnstructured(comparedContent(live))
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", IDOf(live), err)
	}
	after, err := typed.DeducedParseableType.FromUnstructured(comparedContent(written))
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", IDOf(live), err)
	}
	difference, err := before.Compare(after)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", IDOf(live), err)
	}
	var out []string
	difference.Added.Union(difference.Removed).Union(difference.Modified).Leaves().Iterate(func(path fieldpath.Path) {
		out = append(out, path.String())
	})
	if len(out) > 0 && secret(live) { // the name of a key may be a secret, too
		out = []string{"its content"}
	}
	slices.Sort(out)
	return out, nil
}

// comparedContent returns what a comparison compares of an object: not what the API server keeps, its owners, its status, and what
// every run writes anew.
func comparedContent(obj *unstructured.Unstructured) map[string]any {
	out := obj.DeepCopy()
	delete(out.Object, "status")
	for _, field := range []string{
		"creationTimestamp", "managedFields", "generation", "selfLink", "resourceVersion", "uid", "ownerReferences",
	} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	annotations := out.GetAnnotations()
	for _, key := range volatile {
		delete(annotations, key)
	}
	out.SetAnnotations(annotations)
	return WithoutEmpty(out.Object).(map[string]any)
}

// TakeOver writes objects that were compared and are equal, so that the field manager owns their fields and they have the owners that
// they were rendered with. An object that is not equal any more is not written: the error says so.
func (e *Engine) TakeOver(ctx context.Context, compared []Comparison, o Options) ChangeSet {
	changes := make(ChangeSet, len(compared))
	forEach(compared, func(i int, c Comparison) { changes[i] = e.takeOver(ctx, c, o) })
	return changes
}

// takeOver writes one object. One that has changed since it was compared, as by a controller that writes its status, is compared again.
func (e *Engine) takeOver(ctx context.Context, c Comparison, o Options) Change {
	change := Change{ID: c.ID}
	resource, err := e.Resource(c.body)
	if err != nil {
		return change.fail(ctx, e, c.body, err)
	}
	hash := c.hash
	for range attempts {
		if !c.Equal() {
			return change.fail(ctx, e, c.body, cmp.Or(c.Err, fmt.Errorf("%s has changed since it was compared", c.ID)))
		}
		var written *unstructured.Unstructured
		written, err = e.send(ctx, resource, c.body, c.live, c.claim, metav1.ApplyOptions{FieldManager: o.Manager})
		if err == nil {
			change.Action, change.Live, change.Record = Configured, written, RecordOf(written, hash)
			change.Record.Fields = digestOf(ownerships(written), o.Manager)
			e.mirror.RecordWrite(written)
			return change
		}
		if !apierrors.IsConflict(err) && !isReplaced(err, c.live) || fieldConflicts(err) != nil {
			break
		}
		c = e.compareOne(ctx, c.body, o)
	}
	return change.fail(ctx, e, c.body, err)
}

// SetAnnotation sets an annotation of the object that TakeOver writes.
func (c Comparison) SetAnnotation(key, value string) {
	annotations := c.body.GetAnnotations()
	if _, set := annotations[key]; set {
		annotations[key] = value
		c.body.SetAnnotations(annotations)
	}
}
