package operators

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDeepCopy checks that a copy is equal, and that no change of it reaches the package.
func TestDeepCopy(t *testing.T) {
	read := func() *Package {
		p, err := Read(pkg(`
name: x
unknown: field
maintainers: [{name: m}]
tasks: [{name: t, kind: Pipe, spec: {pod: a, pipe: [{file: f, kind: Secret, key: k}]}}]
plans: {deploy: {phases: [{name: p, steps: [{name: s, tasks: [t]}]}]}}
installPolicy: {sharedUpdates: None}
crdTarball: {configMapSource: {configMaps: [{name: c}]}}
`, "groups: [{name: g}]\nparameters: [{name: P, default: d, enum: [d], maxLines: 1}]"))
		if err != nil {
			t.Fatal(err)
		}
		p.Templates["a"] = "text"
		return p
	}
	p := read()
	c := p.DeepCopy()
	if diff := cmp.Diff(p, c, cmp.AllowUnexported(Package{})); diff != "" {
		t.Errorf("-package +copy:\n%s", diff)
	}
	if c.Line(OperatorFileName, "tasks[0]") != 5 {
		t.Error("the copy has lost the lines")
	}
	c.Operator.Name, c.Operator.Maintainers[0].Name, c.Operator.InstallPolicy.SharedUpdates = "y", "y", "y"
	c.Operator.Tasks[0].Spec.Pipe[0].Key, c.Operator.Plans["deploy"].Phases[0].Steps[0].Tasks[0] = "y", "y"
	c.Operator.CRDTarball.ConfigMapSource.ConfigMaps[0].Name, c.Templates["a"] = "y", "y"
	c.Params.Groups[0].Name, *c.Params.Parameters[0].Default, (*c.Params.Parameters[0].Enum)[0] = "y", "y", "y"
	*c.Params.Parameters[0].MaxLines, *c.Params.Parameters[0].Required, c.Warnings[0].Message = 9, false, "y"
	delete(c.Operator.Plans, "deploy")
	clear(c.lines)
	if diff := cmp.Diff(read(), p, cmp.AllowUnexported(Package{})); diff != "" {
		t.Errorf("the package is changed: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(&Package{}, (&Package{}).DeepCopy(), cmp.AllowUnexported(Package{})); diff != "" {
		t.Errorf("a copy of nothing: -want +got:\n%s", diff)
	}
}

// TestDefinitions checks that definitions are copies, and that a package without parameters has none.
func TestDefinitions(t *testing.T) {
	if defs := (&Package{}).Definitions(); defs != nil {
		t.Errorf("no parameters: %v", defs)
	}
	p, err := Read(pkg("name: x", "parameters: [{name: A, default: 1}, {name: B}]"))
	if err != nil {
		t.Fatal(err)
	}
	defs := p.Definitions()
	if len(defs) != 2 || defs[0].Name != "A" || defs[1].Name != "B" {
		t.Fatalf("definitions %+v", defs)
	}
	*defs[0].Default, *defs[1].Required = "changed", false
	if *p.Params.Parameters[0].Default != "1" || !p.Params.Parameters[1].IsRequired() {
		t.Error("a change of a definition reaches the package")
	}
}
