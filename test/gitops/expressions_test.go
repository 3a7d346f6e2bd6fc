package gitops

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/cel-go/cel"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/conditions"
	"kudo.dev/kudo/test/sourcetree"
)

// expression returns a CEL expression of the Kustomization of Flux that docs/gitops.md shows, compiled over the fields of an object, as Flux does.
func expression(t *testing.T, field string) cel.Program {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(sourcetree.Root(), "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^    `+field+`: (.+)$`).FindAllSubmatch(page, -1)
	if len(shown) != 1 {
		t.Fatalf("docs/gitops.md shows %d expressions %s", len(shown), field)
	}
	env, err := cel.NewEnv(cel.Variable("metadata", cel.DynType), cel.Variable("spec", cel.DynType), cel.Variable("status", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	compiled, issues := env.Compile(string(shown[0][1]))
	if issues.Err() != nil {
		t.Fatalf("%s: %v", field, issues.Err())
	}
	program, err := env.Program(compiled)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// TestP30FluxExpressions: the expressions that the page gives to Flux hold while an Instance is idle and ready, and once it has failed, and at no other time.
func TestP30FluxExpressions(t *testing.T) {
	const complete, running, fatal = v1beta1.Complete, v1beta1.InProgress, v1beta1.FatalError
	current, failed := expression(t, "current"), expression(t, "failed")
	for _, tc := range []struct {
		reason               string
		instance             *v1beta1.Instance
		isCurrent, hasFailed bool
	}{
		{"it is well", instance(complete, nil, false), true, false},
		{"a plan runs", instance(running, nil, false), false, false},
		{"an object is not ready", instance(complete, []string{"Deployment web: 0 of 1"}, false), false, false},
		{"a plan has failed", instance(fatal, nil, false), false, true},
		{"the spec is newer than the conditions", instance(complete, nil, false, func(i *v1beta1.Instance) { i.Generation = 4 }), false, false},
		{"others have changed its objects", instance(complete, nil, false, func(i *v1beta1.Instance) {
			i.Status.Drift = []v1beta1.ObjectDrift{{Kind: "ConfigMap", Name: "web-config"}}
		}), true, false},
		{"it waits for its OperatorVersion", instance("", nil, false, func(i *v1beta1.Instance) {
			conditions.SetRefused(i, v1beta1.ReasonOperatorVersionNotFound, "OperatorVersion x does not exist")
		}), false, false},
	} {
		fields := toUnstructured(t, tc.instance, "Instance").Object
		for what, one := range map[string]struct {
			program cel.Program
			want    bool
		}{"current": {current, tc.isCurrent}, "failed": {failed, tc.hasFailed}} {
			value, _, err := one.program.Eval(map[string]any{"metadata": fields["metadata"], "spec": fields["spec"], "status": fields["status"]})
			if err != nil || value.Value() != one.want {
				t.Errorf("%s: %s is %v (%v), want %t", tc.reason, what, value, err, one.want)
			}
		}
	}
}
