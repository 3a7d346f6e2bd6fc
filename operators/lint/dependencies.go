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
	byPlace := map[operators.Use][]rendering{}
	var order []operators.Use
	for _, r := range s.rendered() {
		place := operators.Use{Plan: r.use.Plan, Phase: r.use.Phase, Step: r.use.Step, Task: r.use.Task}
		if byPlace[place] == nil {
			order = append(order, place)
		}
		byPlace[place] = append(byPlace[place], r)
	}
	reported := map[string]bool{}
	for _, place := range order {
		makers := map[string]*unstructured.Unstructured{}
		for _, r := range byPlace[place] {
			for _, o := range r.result.Objects {
				if name := madeSecret(o); name != "" {
					makers[name] = o
				}
			}
		}
		for _, r := range byPlace[place] {
			for _, o := range r.result.Objects {
				name := awaitedSecret(o, makers)
				if name == "" || reported[r.use.Template] {
					continue
				}
				reported[r.use.Template] = true
				maker := makers[name]
				found.Warnings = append(found.Warnings, templateFinding(r.use.Template, 0, "%s %s awaits its dependencies and names Secret %s, "+
					"which %s %s of the same task makes: task %s would wait, and write neither; apply the %s in a task of an earlier step", o.GetKind(),
					o.GetName(), name, maker.GetKind(), maker.GetName(), place.Task, maker.GetKind()))
			}
		}
	}
	return found
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
	var find func(value any) string
	find = func(value any) string {
		switch v := value.(type) {
		case string:
			if maker := makers[v]; maker != nil && maker != o {
				return v
			}
		case []any:
			for _, entry := range v {
				if name := find(entry); name != "" {
					return name
				}
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if name := find(v[key]); name != "" {
					return name
				}
			}
		}
		return ""
	}
	fields := maps.Clone(o.Object)
	delete(fields, "metadata")
	return find(fields)
}
