// Package lint finds what is wrong with a package before it is installed. Linters are values that compose: Standard is
// the list of what is always checked, ParamChecks adds what a publisher may ask for.
package lint

import (
	"fmt"
	"path"
	"sync"

	"kudo.dev/kudo/operators"
	"kudo.dev/kudo/operators/render"
)

// Findings are what linters found, in the order of the linters. Errors keep the package from working, warnings do not.
type Findings struct {
	Errors, Warnings []operators.Finding
}

// Valid reports whether there are no errors.
func (f Findings) Valid() bool { return len(f.Errors) == 0 }

// Linter finds one kind of mistake. It must not change the package.
type Linter func(*Subject) Findings

// Chain is a list of linters that are asked in order.
type Chain []Linter

// Lint asks all linters, and leaves out what was found before.
func (c Chain) Lint(s *Subject) Findings {
	var all Findings
	seen := map[operators.Finding]bool{}
	fresh := func(found []operators.Finding) (kept []operators.Finding) {
		for _, f := range found {
			if !seen[f] {
				seen[f] = true
				kept = append(kept, f)
			}
		}
		return kept
	}
	for _, linter := range c {
		found := linter(s)
		all.Errors = append(all.Errors, fresh(found.Errors)...)
		all.Warnings = append(all.Warnings, fresh(found.Warnings)...)
	}
	return all
}

// Standard is what is always checked, in the order in which KUDO checks.
func Standard() Chain {
	return Chain{
		readFindings,
		duplicateParameters,
		invalidCharacters,
		names,
		versions,
		taskFields,
		endlessTasks,
		duplicateTasks,
		tasksDefined,
		tasksUsed,
		triggers,
		deployPlan,
		installPlan,
		crdTarball,
		crdTarballFields,
		strategies,
		parametersDefined,
		toggleParameters,
		parametersUsed,
		checkImmutables,
		types,
		bounds,
		groups,
		advanced,
		checkSensitives,
		templatesParse,
		checkImplicitNames,
		pipes,
		installPipes,
		definitions,
		templatesDefined,
		templatesUsed,
		renders,
		namespaceManifest,
		namespaces,
		claims,
		dependencyModes,
		ownDependencies,
		checkShareable,
		quotes,
	}
}

// Lint checks a package by the standard linters, and by more. No dependency is resolved.
func Lint(pkg *operators.Package, more ...Linter) Findings {
	return append(Standard(), more...).Lint(NewSubject(pkg))
}

// Subject is a package with what several linters want to know about it.
type Subject struct {
	*operators.Package
	templates *render.Set
	analysis  func() *analysis
	rendered  func() []rendering
}

// NewSubject prepares a package for linters. What is costly is made when first asked for.
func NewSubject(pkg *operators.Package) *Subject {
	s := &Subject{Package: pkg, templates: render.New(pkg.Templates)}
	s.analysis = sync.OnceValue(func() *analysis { return analyze(pkg) })
	s.rendered = sync.OnceValue(s.render)
	return s
}

// operatorFinding is a finding in operator.yaml, at the first of the fields that the file has.
func (s *Subject) operatorFinding(fields []string, format string, args ...any) operators.Finding {
	return s.finding(operators.OperatorFileName, fields, format, args...)
}

// parameterFinding is a finding at a field of the parameter of an index, or at the parameter.
func (s *Subject) parameterFinding(index int, field, format string, args ...any) operators.Finding {
	at := fmt.Sprintf("parameters[%d]", index)
	return s.finding(operators.ParamsFileName, []string{at + "." + field, at}, format, args...)
}

func (s *Subject) finding(file string, fields []string, format string, args ...any) operators.Finding {
	f := operators.Finding{File: file, Message: fmt.Sprintf(format, args...)}
	for _, field := range fields {
		if f.Line = s.Line(file, field); f.Line > 0 {
			break
		}
	}
	return f
}

// templateFinding is a finding in a template.
func templateFinding(template string, line int, format string, args ...any) operators.Finding {
	return operators.Finding{File: path.Join(operators.TemplatesFolder, template), Line: line, Message: fmt.Sprintf(format, args...)}
}

// readFindings passes on what was found while the package was read: unknown fields, duplicate keys.
func readFindings(s *Subject) Findings {
	return Findings{Warnings: s.Warnings}
}
