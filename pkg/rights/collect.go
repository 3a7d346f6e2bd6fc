package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/enhance"
	"kudo.dev/kudo/operators/params"
	"kudo.dev/kudo/operators/render"
	"kudo.dev/kudo/plans/task"
)

// What the object engine asks of the API server, by what it does with an object. An apply that creates needs create beside
// patch, and all writes and deletions look at the live object first.
var (
	writing  = []string{"get", "patch", "delete"} // delete, since the next version may not have the object
	deleting = []string{"get", "delete"}
)

// collector goes through the plans of an Instance and of its dependencies.
type collector struct {
	known Known
	kinds kinds
	// inside is what is needed in the namespace, outside for the whole cluster.
	inside, outside *grants
	// made are the roles that the plans write, bound the roles that bindings of the plans name.
	made  map[roleRef]bool
	bound map[binding]bool
	// clusterScoped are the objects without a namespace that the plans write or delete, by group, resource and name.
	clusterScoped map[string]*ClusterScoped
	images, notes map[string]bool
	// budget bounds the work of all templates and tasks: a package may have thousands, or children that have children.
	budget *render.Budget
}

// place is a task at its place in the plans of an Instance.
type place struct {
	subject   Subject
	templates *render.Set
	variables render.Variables
	task      string
}

func (p place) String() string {
	return strings.Join([]string{p.variables.PlanName, p.variables.PhaseName, p.variables.StepName, p.task}, ".")
}

// taskWork is the work of a task of any kind, in units of a Budget.
const taskWork = 4096

// deepest bounds how many Instances depend on one another in a row.
const deepest = 8

// plans collects what the plans of an Instance need. The trail holds the versions of the Instances that made it.
func (c *collector) plans(s Subject, trail []string) error {
	values, err := params.Resolve(s.Version.Parameters, s.Parameters)
	if err != nil {
		return err
	}
	at := place{subject: s, templates: render.New(s.Version.Templates)}
	at.variables = render.Variables{
		OperatorName: s.Version.Operator.Name, OperatorVersion: s.Version.Version, AppVersion: s.Version.AppVersion,
		Name: s.Name, Namespace: s.Namespace, From: render.PackageVersion(s.From), Params: values, Budget: c.budget,
	}
	c.define(at)
	all := s.Version.InstancePlans()
	for _, plan := range slices.Sorted(maps.Keys(all)) {
		at.variables.PlanName = plan
		if at.variables.Pipes, err = operators.Pipes(s.Version, s.Name, plan); err != nil {
			return err
		}
		for _, phase := range all[plan].Phases {
			for _, step := range phase.Steps {
				at.variables.PhaseName, at.variables.StepName = phase.Name, step.Name
				for _, name := range step.Tasks {
					at.task = name
					if err := c.task(at, trail); err != nil {
						return fmt.Errorf("task %s: %w", at, err)
					}
				}
			}
		}
	}
	return nil
}

// define takes the CustomResourceDefinitions of a package, those of its install plan among them. What does not render
// defines nothing: that the plans cannot be run is said where they are looked at.
func (c *collector) define(at place) {
	for _, t := range at.subject.Version.Tasks {
		if t.Kind != v1beta1.ApplyTask && t.Kind != v1beta1.ToggleTask {
			continue
		}
		for _, name := range t.Spec.Resources {
			if !strings.Contains(at.subject.Version.Templates[name], "CustomResourceDefinition") {
				continue
			}
			v := at.variables
			v.PlanName = at.subject.Version.InstallPlan
			result, err := at.templates.Objects(name, v)
			if err == nil {
				c.kinds.define(result.Objects)
			}
		}
	}
}

// task collects what one task needs.
func (c *collector) task(at place, trail []string) error {
	if err := c.budget.Spend(taskWork + len(at.subject.Version.Tasks)); err != nil {
		return err
	}
	index := slices.IndexFunc(at.subject.Version.Tasks, func(t v1beta1.Task) bool { return t.Name == at.task })
	if index < 0 {
		return nil // the plan fails there, and says so
	}
	t, err := task.New(at.subject.Version.Tasks[index])
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case task.Apply:
		return c.apply(at, t.Resources)
	case task.Toggle:
		return c.apply(at, t.Resources)
	case task.Delete:
		objects, err := at.objects(t.Resources)
		for _, o := range objects {
			c.delete(at, o)
		}
		return err
	case task.Pipe:
		c.pipe(at, t)
	case task.KudoOperator:
		if t.Shared { // it is awaited by kudo itself, and has an account of its own
			return nil
		}
		return c.child(at, t, trail)
	}
	return nil
}

func (p place) objects(resources []string) ([]*unstructured.Unstructured, error) {
	results, err := p.templates.All(resources, p.variables)
	var out []*unstructured.Unstructured
	for _, result := range results {
		out = append(out, result.Objects...)
	}
	return out, err
}

// apply collects what writing the objects of templates needs. Toggles need the same: deleting is part of it.
func (c *collector) apply(at place, resources []string) error {
	objects, err := at.objects(resources)
	if err != nil {
		return err
	}
	c.kinds.define(objects)
	own := map[enhance.Dependency]bool{}
	for _, o := range objects {
		if o.GetAPIVersion() == "v1" {
			own[enhance.Dependency{Kind: o.GetKind(), Name: o.GetName()}] = true
		}
	}
	for _, o := range objects {
		c.write(at, o)
		c.addImages(o.Object)
		if err := c.roles(o); err != nil {
			return err
		}
		dependencies, err := enhance.Dependencies(o)
		if err != nil {
			return err
		}
		for _, d := range dependencies {
			if !own[d] {
				c.read(d.Kind, d.Name)
			}
		}
	}
	return nil
}

// write collects what applying an object needs.
func (c *collector) write(at place, o *unstructured.Unstructured) {
	r := c.kinds.find(o.GroupVersionKind())
	into := c.inside
	if !r.namespaced {
		into = c.outside
		c.addClusterScoped(at, o, r).Deleted = false
	}
	into.allow(r.group, r.name, nil, "create")
	into.allow(r.group, r.name, []string{o.GetName()}, writing...)
}

// imagePaths are the fields with an image in the items of the lists of a pod's spec.
var imagePaths = map[string][]string{
	"containers": {"image"}, "initContainers": {"image"}, "ephemeralContainers": {"image"}, "volumes": {"image", "reference"},
}

// addImages adds the images of all lists of containers and volumes in a part of an object: also those of kinds that are not known here,
// whose pods another controller makes.
func (c *collector) addImages(part any) {
	switch part := part.(type) {
	case map[string]any:
		for name, value := range part {
			if path, known := imagePaths[name]; known {
				list, _ := value.([]any)
				c.addImagesAt(path, list)
			}
			c.addImages(value)
		}
	case []any:
		for _, value := range part {
			c.addImages(value)
		}
	}
}

// addImagesAt adds the image in a field of each item of a list.
func (c *collector) addImagesAt(path []string, list []any) {
	for _, item := range list {
		fields, _ := item.(map[string]any)
		if image, _, _ := unstructured.NestedString(fields, path...); image != "" {
			c.images[image] = true
		}
	}
}

// delete collects what deleting an object needs.
func (c *collector) delete(at place, o *unstructured.Unstructured) {
	r := c.kinds.find(o.GroupVersionKind())
	into := c.inside
	if !r.namespaced {
		into = c.outside
		c.addClusterScoped(at, o, r)
	}
	into.allow(r.group, r.name, []string{o.GetName()}, deleting...)
}

// addClusterScoped lists a cluster-scoped object, and returns its entry.
func (c *collector) addClusterScoped(at place, o *unstructured.Unstructured, r resource) *ClusterScoped {
	key := r.group + "\x00" + r.name + "\x00" + o.GetName()
	if c.clusterScoped[key] == nil {
		c.clusterScoped[key] = &ClusterScoped{Kind: o.GetKind(), Name: o.GetName(), Group: r.group, Resource: r.name, Task: at.String(),
			Instance: at.subject.Name, Deleted: true}
	}
	return c.clusterScoped[key]
}

// read collects what looking at a ConfigMap or Secret needs.
func (c *collector) read(kind, name string) {
	c.inside.allow("", strings.ToLower(kind)+"s", []string{name}, "get")
}

// prune collects what deleting an object needs that plans have written.
func (c *collector) prune(r v1beta1.ResourceStatus) {
	at := c.kinds.find(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	if at.namespaced {
		c.inside.allow(at.group, at.name, []string{r.Name}, deleting...)
	}
}

// pipe collects what a Pipe task needs: its pod, the files in it, and the objects that these become.
func (c *collector) pipe(at place, t task.Pipe) {
	v := at.variables
	pod := []string{operators.PipeName(v.Name, v.PlanName, v.PhaseName, v.StepName, at.task, operators.PodSuffix)}
	c.inside.allow("", "pods", nil, "create")
	c.inside.allow("", "pods", pod, writing...)
	c.inside.allow("", "pods/exec", pod, "create")
	for _, pipe := range t.Pipes {
		artifact := strings.ToLower(pipe.Kind) + "s"
		c.inside.allow("", artifact, nil, "create")
		name := operators.ArtifactName(v.Name, v.PlanName, v.PhaseName, v.StepName, at.task, pipe)
		c.inside.allow("", artifact, []string{name}, writing...)
	}
}

// child collects what the Instance of a dependency needs, and its plans, which run as the same account.
func (c *collector) child(at place, t task.KudoOperator, trail []string) error {
	s := Subject{Namespace: at.subject.Namespace, Name: t.InstanceName}
	if s.Name == "" {
		s.Name = operators.ChildInstanceName(at.subject.Name, t.Package)
	}
	group := v1beta1.GroupVersion.Group
	c.inside.allow(group, "instances", nil, "create")
	c.inside.allow(group, "instances", []string{s.Name}, writing...)
	if t.ParameterFile != "" {
		var err error
		if s.Parameters, err = at.templates.Parameters(t.ParameterFile, at.variables); err != nil {
			return err
		}
		if at.sensitive() { // its values go to the child by a Secret
			c.inside.allow("", "secrets", nil, "create")
			c.inside.allow("", "secrets", []string{operators.ChildSecretName(s.Name)}, writing...)
			s.Sources = []v1beta1.ParametersSource{{Kind: "Secret", Name: operators.ChildSecretName(s.Name)}}
		}
	}
	version := operators.VersionName(t.Package, t.AppVersion, t.OperatorVersion)
	if c.known.Versions != nil && t.OperatorVersion != "" {
		s.Version = c.known.Versions(version)
	}
	switch {
	case s.Version == nil:
		c.notes[fmt.Sprintf("OperatorVersion %s of Instance %s is not known: what its plans need is not listed", version, s.Name)] = true
		return nil
	case slices.Contains(trail, version), len(trail) >= deepest:
		return nil // the plan is refused there, and says so
	}
	return c.plans(s, append(slices.Clone(trail), version))
}

// sensitive reports whether a value that is given may be sensitive.
func (p place) sensitive() bool {
	return slices.ContainsFunc(p.subject.Version.Parameters, func(d v1beta1.Parameter) bool {
		return d.Sensitive &&
			p.subject.Parameters[d.Name] != ""
	}) ||
		slices.ContainsFunc(p.subject.Sources, func(s v1beta1.ParametersSource) bool { return s.Kind == "Secret" })
}
