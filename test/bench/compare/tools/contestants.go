package tools

import (
	"fmt"
	"os"
	"path/filepath"

	"kudo.dev/kudo/test/bench/compare/fixture"
)

// Programs are the paths of what is run.
type Programs struct{ Kudo, Kubectl, Helm, SSA string }

// All returns the contestants for n objects, kudo first; their files are written into a folder.
func All(p Programs, dir string, n int) ([]Tool, error) {
	pack, chart := filepath.Join(dir, "package"), filepath.Join(dir, "chart")
	first, second := filepath.Join(dir, "first.yaml"), filepath.Join(dir, "second.yaml")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	if err := fixture.Package(pack, n); err != nil {
		return nil, err
	}
	if err := fixture.Chart(chart, n); err != nil {
		return nil, err
	}
	if err := fixture.Manifests(first, n, Release, "original"); err != nil {
		return nil, err
	}
	if err := fixture.Manifests(second, n, Release, fixture.Changed); err != nil {
		return nil, err
	}
	return []Tool{
		kudo{p.Kudo, pack},
		helm{p.Helm, chart},
		ssa{p.SSA, first, second},
		kubectl{p.Kubectl, first, second},
	}, nil
}

type kudo struct{ program, pack string }

func (kudo) Name() string { return "kudo" }

func (k kudo) Commands(ns string) Commands {
	of := func(args ...string) []string { return append([]string{k.program, "-n", ns}, args...) }
	return Commands{
		Install: of("install", k.pack, "--instance", Release, "--wait"),
		Again:   of("plan", "trigger", "--instance", Release, "--name", "deploy", "--wait"),
		Change:  of("update", "--instance", Release, "-p", "ONE="+fixture.Changed, "--wait"),
		Remove:  of("uninstall", "--instance", Release, "--wait"),
	}
}

// helm has the limit on requests taken off, which would else decide.
type helm struct{ program, chart string }

func (helm) Name() string { return "Helm" }

func (h helm) Commands(ns string) Commands {
	of := func(args ...string) []string {
		return append(append([]string{h.program, "-n", ns}, args...), Unlimited()...)
	}
	return Commands{
		Install: of("install", Release, h.chart),
		Again:   of("upgrade", Release, h.chart),
		Change:  of("upgrade", Release, h.chart, "--set", "one="+fixture.Changed),
	}
}

// Unlimited are helm's flags that take its limit on requests off.
func Unlimited() []string { return []string{"--qps", "100000", "--burst-limit", "100000"} }

type ssa struct{ program, first, second string }

func (ssa) Name() string { return "ssa.ApplyAllStaged" }

func (s ssa) Commands(ns string) Commands {
	of := func(file string) []string { return []string{s.program, "-n", ns, "-f", file, "-wait"} }
	return Commands{Install: of(s.first), Again: of(s.first), Change: of(s.second)}
}

type kubectl struct{ program, first, second string }

func (kubectl) Name() string { return "kubectl apply --server-side" }

func (k kubectl) Commands(ns string) Commands {
	of := func(file string) []string {
		return []string{k.program, "-n", ns, "apply", "--server-side", "-f", file}
	}
	return Commands{Install: of(k.first), Again: of(k.first), Change: of(k.second)}
}

// Build builds the opponents from their modules into a folder, and returns the programs of all.
func Build(bin, dir string, build func(module, out, pkg string) error) (Programs, error) {
	p := Programs{
		Kudo: filepath.Join(bin, "kubectl-kudo"), Kubectl: filepath.Join(bin, "kubectl"),
		Helm: filepath.Join(dir, "helm"), SSA: filepath.Join(dir, "ssa-apply"),
	}
	if err := build(".", p.Helm, "helm.sh/helm/v4/cmd/helm"); err != nil {
		return p, fmt.Errorf("build helm: %w", err)
	}
	if err := build(".", p.SSA, "kudo.dev/kudo/test/bench/compare/ssa-apply"); err != nil {
		return p, fmt.Errorf("build ssa-apply: %w", err)
	}
	return p, nil
}
