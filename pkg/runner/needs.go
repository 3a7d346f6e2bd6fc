package runner

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/plans/task"
)

// maxNeeding bounds the objects whose dependencies FindNeeds looks for.
const maxNeeding = 256

// States of a dependency.
const (
	// DependencyMissing means that the object does not exist.
	DependencyMissing = "missing"
	// DependencyUnknown means that it is not known whether it exists.
	DependencyUnknown = "unknown"
)

// DependencyFinding is an object that another one depends on, and that is missing or not known.
type DependencyFinding struct {
	v1alpha1.DependentObjectReference `json:",inline"`
	// State is DependencyMissing or DependencyUnknown.
	State string `json:"state"`
	// Reason says why the state is not known.
	Reason string `json:"reason,omitempty"`
}

// ObjectNeeds is what an object of a plan depends on and is missing or not known.
type ObjectNeeds struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Mode is the annotation that says what a run does about it; empty if it continues.
	Mode         v1beta1.DependencyMode `json:"mode,omitempty"`
	Dependencies []DependencyFinding    `json:"dependencies,omitempty"`
	// Message says the same to people, and what is not known at all.
	Message string `json:"message"`
}

// String is the object and what it needs.
func (n ObjectNeeds) String() string {
	id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(n.APIVersion, n.Kind)}
	id.Namespace, id.Name = n.Namespace, n.Name
	return fmt.Sprintf("%s: %s", id, n.Message)
}

// FindNeeds returns the missing and unknown dependencies of the objects that a plan of an Instance applies, for each object that has such
// dependencies. It reads with the rights of the client, and changes nothing.
func FindNeeds(ctx context.Context, c client.Client, instance *v1beta1.Instance, version *v1beta1.OperatorVersion, plan string,
	layers Interpreter) ([]ObjectNeeds, error) {
	content, err := NewVersions().ForSpec(&version.Spec)
	if err != nil {
		return nil, err
	}
	sourced, err := paramsource.Read(ctx, c, instance, version.Spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("read what spec.parametersFrom names: %w", err)
	}
	given := sourced.Given
	maps.Copy(given, instance.Spec.Parameters)
	sensitive := append(params.GivenSensitive(version.Spec.Parameters, given), sourced.Sensitive...)
	run := &Run{
		Subject: Subject{Kind: "Instance", Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID},
		Source:  version.Name, Version: content, Plan: plan, Parameters: given, Sensitive: sensitive, Suspend: instance.Spec.Suspend,
		From: instance.CompletedVersion(),
	}
	if err := run.resolve(); err != nil {
		return nil, err
	}
	return New(Options{All: layers, Kinds: apply.NewKinds(c.RESTMapper(), nil, nil)}).findNeedsOfRun(ctx, c, run)
}

// findNeedsOfRun returns what the objects that a run would apply depend on and is missing or not known. The parameters of the run are
// resolved.
func (r *Runner) findNeedsOfRun(ctx context.Context, c client.Client, run *Run) ([]ObjectNeeds, error) {
	objs, err := run.applied()
	if err != nil {
		return nil, err
	}
	run.depends.begin(true, clock.RealClock{}, run.mask)
	run.noteArtifacts()
	for _, obj := range objs {
		if _, namespaced, err := r.kinds.Resource(obj.GroupVersionKind()); err != nil || namespaced {
			obj.SetNamespace(run.Subject.Namespace)
		}
		run.depends.made[unversioned(apply.IDOf(obj))] = obj.GetLabels()
	}
	objs = objs[:min(len(objs), maxNeeding)]
	if err := r.pack(ctx, run, objs); err != nil {
		return nil, err
	}
	var out []ObjectNeeds
	for _, obj := range annotatedFirst(objs) {
		n := run.depends.find(ctx, r.all, obj, func(ctx context.Context, id apply.ID, selector labels.Selector) (bool, error) {
			return exists(ctx, c, id, selector)
		})
		if n.String() == "" {
			continue
		}
		mode, _ := v1beta1.DependencyModeOf(obj.GetAnnotations()) // a wrong value is the plan's to report
		out = append(out, ObjectNeeds{
			APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Mode: mode,
			Dependencies: run.maskFound(n.found), Message: run.mask(n.String()),
		})
	}
	return out, nil
}

// maskFound removes sensitive values from dependencies, which templates and layers may make from them.
func (run *Run) maskFound(found []DependencyFinding) []DependencyFinding {
	for i := range found {
		f := &found[i]
		f.APIVersion, f.Kind, f.Reason = run.mask(f.APIVersion), run.mask(f.Kind), run.mask(f.Reason)
		f.Namespace, f.Name = run.mask(f.Namespace), run.mask(f.Name)
		f.LabelSelector = run.maskSelector(f.LabelSelector)
	}
	return found
}

// maskSelector returns a selector without sensitive values. The one that is given belongs to an answer that is kept, and does not change.
func (run *Run) maskSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if selector == nil {
		return nil
	}
	out := &metav1.LabelSelector{}
	for key, value := range selector.MatchLabels {
		metav1.AddLabelToSelector(out, run.mask(key), run.mask(value))
	}
	for _, e := range selector.MatchExpressions {
		masked := metav1.LabelSelectorRequirement{Key: run.mask(e.Key), Operator: e.Operator}
		for _, value := range e.Values {
			masked.Values = append(masked.Values, run.mask(value))
		}
		out.MatchExpressions = append(out.MatchExpressions, masked)
	}
	return out
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
