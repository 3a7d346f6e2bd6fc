package lint

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators"
)

// dependencyModes finds wrong values of the annotation DependenciesAnnotation, which end a plan.
func dependencyModes(s *Subject) (found Findings) {
	reported := map[string]bool{}
	for _, r := range s.rendered() {
		for _, o := range r.result.Objects {
			if _, err := v1beta1.DependencyModeOf(o.GetAnnotations()); err != nil && !reported[r.use.Template] {
				reported[r.use.Template] = true
				found.Errors = append(found.Errors, templateFinding(r.use.Template, 0, "%s %s: %s", o.GetKind(), o.GetName(), err))
			}
		}
	}
	return found
}

// secretMakers are kinds whose controllers make a Secret, and where they name it. Without a name there, it is that of the object.
var secretMakers = map[schema.GroupKind][]string{
	{Group: "cert-manager.io", Kind: "Certificate"}:        {"spec", "secretName"},
	{Group: "external-secrets.io", Kind: "ExternalSecret"}: {"spec", "target", "name"},
	{Group: "bitnami.com", Kind: "SealedSecret"}:           {"spec", "template", "metadata", "name"},
	{Group: "kafka.strimzi.io", Kind: "KafkaUser"}:         nil,
}

// ownDependencies finds objects that await a Secret which a controller makes from another object of the same task: a task that waits writes
// none of its objects, so that the task would wait for ever.
func ownDependencies(s *Subject) (found Findings) {
	reported := map[string]bool{}
	for _, renderings := range renderingsOfTasks(s) {
		makers := secretMakersAmong(renderings)
		for _, r := range renderings {
			if reported[r.use.Template] {
				continue
			}
			if finding := ownDependency(r, makers); finding != nil {
				reported[r.use.Template] = true
				found.Warnings = append(found.Warnings, *finding)
			}
		}
	}
	return found
}

// renderingsOfTasks returns what the templates of each task render to, for each place of the task in a plan, in order.
func renderingsOfTasks(s *Subject) (tasks [][]rendering) {
	position := map[operators.Use]int{}
	for _, r := range s.rendered() {
		place := operators.Use{Plan: r.use.Plan, Phase: r.use.Phase, Step: r.use.Step, Task: r.use.Task}
		at, known := position[place]
		if !known {
			at = len(tasks)
			position[place], tasks = at, append(tasks, nil)
		}
		tasks[at] = append(tasks[at], r)
	}
	return tasks
}

// secretMakersAmong maps the names of the Secrets that controllers make from rendered objects to these objects.
func secretMakersAmong(renderings []rendering) map[string]*unstructured.Unstructured {
	makers := map[string]*unstructured.Unstructured{}
	for _, r := range renderings {
		for _, o := range r.result.Objects {
			if name := madeSecret(o); name != "" {
				makers[name] = o
			}
		}
	}
	return makers
}

// ownDependency returns a finding on the first object of a template that awaits a made Secret, or nil if there is none.
func ownDependency(r rendering, makers map[string]*unstructured.Unstructured) *operators.Finding {
	for _, o := range r.result.Objects {
		name := awaitedSecret(o, makers)
		if name == "" {
			continue
		}
		maker := makers[name]
		finding := templateFinding(r.use.Template, 0, "%s %s awaits its dependencies and names Secret %s, "+
			"which %s %s of the same task makes: task %s would wait, and write neither; apply the %s in a task of an earlier step", o.GetKind(),
			o.GetName(), name, maker.GetKind(), maker.GetName(), r.use.Task, maker.GetKind())
		return &finding
	}
	return nil
}

// madeSecret returns the name of the Secret that a controller makes from an object, or "".
func madeSecret(o *unstructured.Unstructured) string {
	path, makes := secretMakers[o.GroupVersionKind().GroupKind()]
	if !makes {
		return ""
	}
	name := ""
	if path != nil {
		name, _, _ = unstructured.NestedString(o.Object, path...)
	}
	return cmp.Or(name, o.GetName())
}

// awaitedSecret returns the name of a made Secret that an object names anywhere below its other fields than metadata, if the object awaits
// its dependencies; else "". The name alone decides, since the rules of a cluster say which fields refer to Secrets.
func awaitedSecret(o *unstructured.Unstructured, makers map[string]*unstructured.Unstructured) string {
	mode, err := v1beta1.DependencyModeOf(o.GetAnnotations())
	if err != nil || mode != v1beta1.AwaitDependencies || len(makers) == 0 {
		return ""
	}
	fields := maps.Clone(o.Object)
	delete(fields, "metadata")
	return findText(fields, func(text string) bool {
		maker := makers[text]
		return maker != nil && maker != o
	})
}

// findText returns the first text within a value, keys in alphabetical order, that matches; "" if none does.
func findText(value any, matches func(text string) bool) string {
	switch v := value.(type) {
	case string:
		if matches(v) {
			return v
		}
	case []any:
		for _, entry := range v {
			if found := findText(entry, matches); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := findText(v[key], matches); found != "" {
				return found
			}
		}
	}
	return ""
}
