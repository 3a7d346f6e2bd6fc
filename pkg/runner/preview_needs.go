package runner

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans/task"
)

// maxPreviewed is of how many objects a preview says what they depend on.
const maxPreviewed = 256

// previewNeeds returns what the objects that a run would apply depend on and is missing or not known: a text for each such object. It looks
// with the rights of the client.
func (r *Runner) previewNeeds(ctx context.Context, c client.Client, run *Run) ([]string, error) {
	objs, err := run.applied()
	if err != nil {
		return nil, err
	}
	run.depends.begin(true)
	run.noteArtifacts()
	for _, obj := range objs {
		if _, namespaced, err := r.kinds.Resource(obj.GroupVersionKind()); err != nil || namespaced {
			obj.SetNamespace(run.Subject.Namespace)
		}
		run.depends.made[unversioned(apply.IDOf(obj))] = obj.GetLabels()
	}
	objs = objs[:min(len(objs), maxPreviewed)]
	if err := r.pack(ctx, run, objs); err != nil {
		return nil, err
	}
	var out []string
	for _, obj := range objs {
		n := run.depends.find(ctx, r.all, obj, func(id apply.ID, selector labels.Selector) (bool, error) { return exists(ctx, c, id, selector) })
		if n.String() != "" {
			out = append(out, fmt.Sprintf("%s: %s", apply.IDOf(obj), n))
		}
	}
	return out, nil
}

// noteArtifacts notes what the Pipe tasks of the run's plan make, by kind and name.
func (run *Run) noteArtifacts() {
	for _, phase := range run.Version.Spec.Plans[run.Plan].Phases {
		for _, step := range phase.Steps {
			for _, name := range step.Tasks {
				def, _ := run.Version.Task(name)
				t, err := task.New(def)
				pipes, isPipe := t.(task.Pipe)
				if err != nil || !isPipe {
					continue
				}
				for _, pipe := range pipes.Pipes {
					id := apply.ID{}
					id.Kind, id.Namespace = pipe.Kind, run.Subject.Namespace
					id.Name = operators.ArtifactName(run.Subject.Name, run.Plan, phase.Name, step.Name, name, pipe)
					run.depends.made[id] = nil
				}
			}
		}
	}
}

// exists reports whether an object exists, or one that the selector matches if the ID has no name, by one request for its metadata.
func exists(ctx context.Context, c client.Reader, id apply.ID, selector labels.Selector) (bool, error) {
	if id.Name != "" {
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(id.GroupVersionKind)
		err := c.Get(ctx, id.NamespacedName, live)
		return err == nil, apierror.IgnoreObjectNotFound(err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(id.GroupVersion().WithKind(id.Kind + "List"))
	err := c.List(ctx, list, client.InNamespace(id.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(1))
	return len(list.Items) > 0, err
}
