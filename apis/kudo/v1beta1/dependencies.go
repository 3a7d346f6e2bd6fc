package v1beta1

import "fmt"

// DependencyMode is a value of DependenciesAnnotation.
type DependencyMode string

const (
	// IgnoreDependencies writes an object without DependenciesAnnotation whether its dependencies exist or not.
	IgnoreDependencies DependencyMode = ""
	// AwaitDependencies lets the task wait until all dependencies exist.
	AwaitDependencies DependencyMode = "await"
	// RefuseDependencies ends the plan if a dependency does not exist.
	RefuseDependencies DependencyMode = "refuse"
)

// DependencyModeOf returns what annotations say by DependenciesAnnotation. The error names the values that there are.
func DependencyModeOf(annotations map[string]string) (DependencyMode, error) {
	value, set := annotations[DependenciesAnnotation]
	switch mode := DependencyMode(value); {
	case !set:
		return IgnoreDependencies, nil
	case mode == AwaitDependencies || mode == RefuseDependencies:
		return mode, nil
	}
	return IgnoreDependencies, fmt.Errorf("annotation %s is %.64q: use %s or %s, or remove the annotation", DependenciesAnnotation,
		value, AwaitDependencies, RefuseDependencies)
}
