package explore

import (
	"context"
	"errors"
	"fmt"
)

// Chain asks layers in its order. The first answer wins; the first layer that cannot answer ends the search.
//
//	user -> webhook -> library -> native -> no opinion
//	  |        |          |         |
//	  +--------+----------+---------+--> Answer (checked) | *Unknown
type Chain []Explorer

// NewChain puts layers, of which any may be nil, in the order of the chain.
func NewChain(user, webhook, library, native Explorer) Chain {
	var c Chain
	for _, e := range []Explorer{user, webhook, library, native} {
		if e != nil {
			c = append(c, e)
		}
	}
	return c
}

// Explore asks. The answer says which layer gave it; what a layer must not answer (see Check) is unknown, and answers have one
// form (see Normalize). Errors are of type *UnknownError, but for a request that is itself wrong.
func (c Chain) Explore(ctx context.Context, r Request) (Answer, bool, error) {
	if err := r.Validate(); err != nil {
		return Answer{}, false, err
	}
	for _, layer := range c {
		if err := ctx.Err(); err != nil {
			return Answer{}, false, r.NewUnknown(layer.Layer(), "", err)
		}
		answer, known, err := layer.Explore(ctx, r)
		if err != nil {
			var unknown *UnknownError
			if !errors.As(err, &unknown) {
				err = r.NewUnknown(layer.Layer(), "", err)
			}
			return Answer{}, false, err
		}
		if !known {
			continue
		}
		if err := Check(r, &answer); err != nil {
			return Answer{}, false, r.NewUnknown(layer.Layer(), answer.Who, err)
		}
		answer.Ignored = Normalize(r, &answer)
		answer.Layer = layer.Layer()
		return answer, true, nil
	}
	return Answer{}, false, nil
}

// Validate refuses requests that lack what their operation needs.
func (r Request) Validate() error {
	switch {
	case r.Object == nil || r.Object.Object == nil:
		return fmt.Errorf("%s: there is no object", r.Operation)
	case r.Object.GetKind() == "" || r.Object.GetAPIVersion() == "":
		return fmt.Errorf("%s of an object without apiVersion or kind", r.Operation)
	case r.Operation == Retaining && (r.Observed == nil || r.Observed.Object == nil):
		return fmt.Errorf("%s of %s: there is no observed object", r.Operation, NameOf(r.Object))
	case r.Operation == ReplicaRevising && r.Replicas < 0:
		return fmt.Errorf("%s of %s: %d replicas: must be 0 or more", r.Operation, NameOf(r.Object), r.Replicas)
	}
	for _, o := range Operations() {
		if r.Operation == o {
			return nil
		}
	}
	return fmt.Errorf("operation %q is unknown: use one of %v", r.Operation, Operations())
}
