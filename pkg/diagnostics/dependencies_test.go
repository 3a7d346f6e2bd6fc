package diagnostics

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// TestDependencies (C63) checks that what objects depend on and is missing has a file of its own, without secret values.
func TestDependencies(t *testing.T) {
	ov := gen.Version("ns", "web", gen.ConfigMaps("cm", 1), gen.Serial(v1beta1.DeployPlan, "cm"))
	i := gen.Instance("i", ov, nil)
	i.Labels = map[string]string{v1beta1.OperatorLabel: "web"}
	secret := &corev1.Secret{ObjectMeta: gen.Meta("ns", "s"), Data: map[string][]byte{"k": []byte("hidden-value")}}
	type finding struct {
		Name string `json:"name"`
	}
	for _, tc := range []struct {
		reason  string
		ran     bool
		found   any
		err     error
		want    string
		failure string
	}{
		{"what is missing", true, []finding{{"red"}, {"hidden-value"}}, nil, "objects:\n- name: red\n- name: REDACTED\nplan: deploy\n", ""},
		{"nothing is", true, []finding{}, nil, "objects: []\nplan: deploy\n", ""},
		{"more may be", true, []finding{{"red"}}, errors.New("not all were asked"), "objects:\n- name: red\nplan: deploy\n", "not all were asked"},
		{"it is not known", true, nil, errors.New("hidden-value is refused"), "", "REDACTED is refused"},
		{"no plan has run", false, []finding{{"red"}}, nil, "", ""},
	} {
		ran := i.DeepCopy()
		if tc.ran {
			ran.Status.PlanStatus = map[string]v1beta1.PlanStatus{v1beta1.DeployPlan: {Name: v1beta1.DeployPlan, Status: v1beta1.InProgress}}
		}
		c := newCollection(t, ov.DeepCopy(), ran, secret.DeepCopy())
		c.Dependencies = func(_ context.Context, instance *v1beta1.Instance, version *v1beta1.OperatorVersion, plan string) (any, error) {
			if instance.Name != "i" || version.Name != ov.Name || plan != v1beta1.DeployPlan {
				t.Errorf("%s: asked about plan %s of %s and %s", tc.reason, plan, instance.Name, version.Name)
			}
			return tc.found, tc.err
		}
		files, failed := c.collect(t)
		if got := files["operator_web/instance_i/dependencies.yaml"]; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
		var failures []string
		for _, f := range failed {
			if strings.HasPrefix(f.What, "dependencies") {
				failures = append(failures, f.Error)
			}
		}
		if got := strings.Join(failures, ", "); got != tc.failure {
			t.Errorf("%s: failures %q, want %q", tc.reason, got, tc.failure)
		}
	}
}
