package preview

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/dryrun"
)

// Known is an object of a command that runs no plan, with what the command would make of it.
type Known struct {
	ID apply.ID
	// Before and After are the object as it is and as it would be; nil if it does not exist.
	Before, After map[string]any
	// Why explains a deletion, and Lost is set if data goes with the object.
	Why  string
	Lost bool
}

// Of completes a preview with the objects of a command that runs no plan. An object without After counts as deleted, even if it has no
// Before.
func Of(p *Preview, objects []Known) (*Preview, error) {
	p.APIVersion = Version
	for _, known := range objects {
		p.Objects = append(p.Objects, known.object())
	}
	return p, p.seal()
}

func (k Known) object() Object {
	out := newObject(k.ID)
	out.Why, out.Lost = k.Why, k.Lost
	before, after := &unstructured.Unstructured{Object: k.Before}, &unstructured.Unstructured{Object: k.After}
	switch {
	case k.After == nil:
		out.Effect = Delete
	case k.Before == nil:
		out.Effect, out.content = Create, contentOf(after, params.Mask{})
	default:
		d := compare(before, after, params.Mask{})
		out.Fields, out.Metadata = d.fields, d.metadata
		out.Effect = Unchanged
		if len(d.fields)+d.metadata > 0 {
			out.Effect = Modify
		}
		out.Restart = restartOf(dryrun.Change{ID: k.ID, Before: before, After: after}, d, "")
	}
	return out
}
