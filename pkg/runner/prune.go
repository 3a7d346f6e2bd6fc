package runner

import (
	"context"
	"fmt"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/plans/task"
)

// AbandonedObjects lists the objects of the inventory that no task of the run's version names, in whatever plan, phase and step, be the
// version before that of the run, none, or the run's own.
func AbandonedObjects(run *Run, inventory Inventory) ([]apply.ID, error) {
	if err := run.resolve(); err != nil {
		return nil, err
	}
	named, spec := map[apply.ID]bool{}, run.Version.Spec
	from := []render.PackageVersion{render.PackageVersion(run.From)}
	if run.Version.Templates.UsesFrom() {
		from = append(from, render.PackageVersion{}, render.PackageVersion(v1beta1.NewPackageVersion(spec)))
	}
	for plan, p := range spec.Plans {
		for _, phase := range p.Phases {
			for _, step := range phase.Steps {
				v := run.variables(phase.Name, step.Name)
				v.PlanName = plan
				for _, v.From = range from {
					if err := run.collectNames(v, step, named); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	var out []apply.ID
	for id := range inventory {
		bare := id
		bare.Namespace = ""
		bare.Version = ""
		if !named[bare] {
			out = append(out, id)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].String() < out[j].String() })
	return out, nil
}

// collectNames collects the objects of a step, by group, kind and name. The variables are those of its templates.
func (run *Run) collectNames(v render.Variables, step v1beta1.Step, named map[apply.ID]bool) error {
	for _, name := range step.Tasks {
		def, ok := run.Version.Task(name)
		if !ok {
			continue
		}
		t, err := task.New(def)
		if err != nil {
			return err
		}
		var resources []string
		switch t := t.(type) {
		case task.Apply:
			resources = t.Resources
		case task.Toggle:
			resources = t.Resources
		case task.Delete:
			resources = t.Resources
		case task.Pipe:
			for _, pipe := range t.Pipes {
				artifact := apply.ID{}
				artifact.Kind, artifact.Name = pipe.Kind, operators.ArtifactName(run.Subject.Name, v.PlanName, v.PhaseName, step.Name, name, pipe)
				named[artifact] = true
			}
		case task.KudoOperator:
			child := apply.ID{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance")}
			child.Version, child.Name = "", t.InstanceName
			if t.InstanceName == "" {
				child.Name = operators.ChildInstanceName(run.Subject.Name, t.Package)
			}
			named[child] = true
			// It is there only if a value is sensitive, but the child may still take its parameters from there.
			secret := apply.ID{}
			secret.Kind, secret.Name = "Secret", childSecret(child.Name)
			named[secret] = true
		}
		made, err := run.render(resources, v)
		if err != nil {
			return fmt.Errorf("task %s of plan %s: %w", name, v.PlanName, err)
		}
		for _, obj := range made.objects {
			id := apply.IDOf(obj)
			id.Namespace, id.Version = "", ""
			named[id] = true
		}
	}
	return nil
}

// durable are the kinds that hold data which cannot be made again; their objects are never pruned.
var durable = map[string]bool{
	"PersistentVolumeClaim": true, "PersistentVolume": true, "Namespace": true, "CustomResourceDefinition": true,
}

const keepAnnotated = "it is annotated " + v1beta1.KeepAnnotation

// keepReason says why an abandoned object with these annotations is kept; empty if it is not.
func keepReason(id apply.ID, annotations map[string]string) string {
	switch {
	case durable[id.Kind]:
		return "objects of its kind hold data"
	case id.Namespace == "":
		return "it is cluster-scoped, so others may use it"
	case v1beta1.IsKept(annotations):
		return keepAnnotated
	}
	return ""
}

// Prune deletes an abandoned object, or says why it is kept.
func (r *Runner) Prune(ctx context.Context, run *Run, inventory Inventory, id apply.ID) (kept string, err error) {
	if kept := keepReason(id, nil); kept != "" {
		return kept, nil
	}
	live, err := r.engine.Live(ctx, id) // it may have been annotated a moment ago
	if err != nil || live == nil {
		return "", err
	}
	w, err := r.writer(run, inventory)
	if err != nil {
		return "", err
	}
	if kept := keepReason(id, live.GetAnnotations()); kept != "" {
		return kept, nil
	}
	removal := w.remove(ctx, []*unstructured.Unstructured{id.Object()})[0]
	switch {
	case removal.ForeignOwner != "":
		return "it belongs to " + removal.ForeignOwner, nil
	case removal.KeepAnnotated:
		return keepAnnotated, nil
	}
	return "", removal.Err
}
