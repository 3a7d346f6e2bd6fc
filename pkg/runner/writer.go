package runner

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/share"
)

// writer writes the objects of a task. What tasks do is the same for Instances and OperatorVersions; whose their objects
// are is not.
type writer interface {
	// enhance puts kudo's metadata on rendered objects.
	enhance(ctx context.Context, v render.Variables, objs []*unstructured.Unstructured) error
	// preflight returns what must not be written, before anything is.
	preflight(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet
	apply(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet
	remove(ctx context.Context, objs []*unstructured.Unstructured) []apply.Removal
	// lookup reads an object with the rights of the run, and returns nil if the object does not exist.
	lookup(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error)
}

func (r *Runner) writer(run *Run, inventory Inventory) (writer, error) {
	if run.Installation != nil {
		return &sharedWriter{Runner: r, run: run, session: r.share.Session(run.Installation, run.Policy, run.Held)}, nil
	}
	engine, err := r.accounts.Engine(run.Account)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", run.Subject.Kind, run.Subject.Namespace, run.Subject.Name, err)
	}
	return &instanceWriter{kinds: r.kinds, engine: engine, options: r.options(run, inventory), run: run}, nil
}

// instanceWriter writes the objects of an Instance, which belong to it alone.
type instanceWriter struct {
	kinds   *apply.Kinds
	engine  *apply.Engine
	options apply.Options
	run     *Run
}

func (o *instanceWriter) preflight(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return o.engine.Preflight(ctx, objs, o.options)
}

func (o *instanceWriter) apply(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return o.engine.Apply(ctx, objs, o.options)
}

func (o *instanceWriter) remove(ctx context.Context, objs []*unstructured.Unstructured) []apply.Removal {
	options := o.options
	options.Claim = o.run.claimer(marked(options.Known, options.Manager, o.run.Subject.Name))
	return o.engine.Delete(ctx, objs, options)
}

func (o *instanceWriter) enhance(ctx context.Context, v render.Variables, objs []*unstructured.Unstructured) error {
	definitions := apply.Definitions(objs)
	var failed error
	err := enhance.Enhance(objs, enhance.Context{
		Operator: v.OperatorName, OperatorVersion: v.OperatorVersion,
		Instance:    types.NamespacedName{Namespace: v.Namespace, Name: v.Name},
		InstanceUID: o.run.Subject.UID,
		Plan:        v.PlanName, Phase: v.PhaseName, Step: v.StepName, PlanUID: o.run.UID,
		Digest: func(text []byte) ([16]byte, error) { return o.run.Keys.Sum("dependency", string(text)) },
		Live: func(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return o.lookup(ctx, apply.IDOf(obj))
		},
		Scope: func(gk schema.GroupKind) (bool, error) {
			namespaced, err := o.kinds.Namespaced(gk, definitions)
			if err != nil {
				failed = o.engine.Classify(ctx, firstOf(objs, gk), err)
			}
			return namespaced, err
		},
	}, func(kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
		id := apply.ID{GroupVersionKind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
		live, err := o.lookup(ctx, id)
		if err == nil {
			o.run.depends.note(id, live != nil)
		}
		return live, err
	})
	if failed != nil {
		return failed
	}
	return err
}

// lookup reads from the mirror only what the Instance itself has made: the mirror holds what the manager may read, and the
// account may not be allowed to.
func (o *instanceWriter) lookup(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error) {
	if o.options.Known[id].UID != "" && id.Namespace == o.run.Subject.Namespace {
		return o.engine.Lookup(ctx, id)
	}
	return o.engine.Live(ctx, id)
}

func firstOf(objs []*unstructured.Unstructured, gk schema.GroupKind) *unstructured.Unstructured {
	for _, obj := range objs {
		if obj.GroupVersionKind().GroupKind() == gk {
			return obj
		}
	}
	return objs[0]
}

// sharedWriter writes the objects of an install plan, which others may hold too.
type sharedWriter struct {
	*Runner
	run     *Run
	session *share.Session
}

// enhance settles the namespaces: objects keep the one that they name, and get the OperatorVersion's if they name none.
// kudo's metadata comes with the write, and at the top only: with labels in pod templates, no two OperatorVersions could
// ever share a Deployment.
func (s *sharedWriter) enhance(ctx context.Context, _ render.Variables, objs []*unstructured.Unstructured) error {
	definitions := apply.Definitions(objs)
	for _, obj := range objs {
		if obj.GetName() == "" {
			return &apply.FatalError{Err: fmt.Errorf("an object of kind %s has no name: name each object of an install plan, since others may "+
				"share it", obj.GetKind())}
		}
		namespaced, err := s.kinds.Namespaced(obj.GroupVersionKind().GroupKind(), definitions)
		switch {
		case err != nil:
			return s.engine.Classify(ctx, obj, err)
		case !namespaced:
			obj.SetNamespace("")
		case obj.GetNamespace() == "":
			obj.SetNamespace(s.run.Subject.Namespace)
		}
	}
	return nil
}

func (s *sharedWriter) preflight(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return s.session.Check(ctx, objs)
}

func (s *sharedWriter) apply(ctx context.Context, objs []*unstructured.Unstructured) apply.ChangeSet {
	return s.session.Join(ctx, objs)
}

func (s *sharedWriter) lookup(ctx context.Context, id apply.ID) (*unstructured.Unstructured, error) {
	engine, err := s.accounts.Engine(s.run.Account)
	if err != nil {
		return nil, err
	}
	return engine.Lookup(ctx, id)
}

// remove releases what the OperatorVersion holds; any other object is foreign.
func (s *sharedWriter) remove(ctx context.Context, objs []*unstructured.Unstructured) []apply.Removal {
	out := make([]apply.Removal, len(objs))
	for i, obj := range objs {
		id := apply.IDOf(obj)
		if at := s.run.Held.Find(id); at >= 0 && s.run.Held[at].State != v1beta1.HoldExisting {
			out[i] = s.session.Release(ctx, s.run.Held[at], false)
			continue
		}
		out[i] = apply.Removal{ID: id, Done: true}
		if live, err := s.engine.Lookup(ctx, id); err != nil {
			out[i] = apply.Removal{ID: id, Err: err}
		} else if live != nil {
			out[i].ForeignOwner = "another client"
		}
	}
	return out
}
