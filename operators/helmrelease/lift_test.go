package helmrelease

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseLift is P31: how values that become parameters are named.
func TestParseLift(t *testing.T) {
	for _, tc := range []struct {
		reason, in string
		want       []any
		err        string
	}{
		{"P31: fields", "REPLICAS=Deployment/web:spec.replicas", []any{"spec", "replicas"}, ""},
		{"P31: an entry of a list", "IMAGE=Deployment/web:spec.template.spec.containers[0].image",
			[]any{"spec", "template", "spec", "containers", 0, "image"}, ""},
		{"P31: a name with dots", `CONF=ConfigMap/web:data["redis.conf"]`, []any{"data", "redis.conf"}, ""},
		{"P31: no place", "REPLICAS", nil, "must be NAME=Kind/name:path"},
		{"P31: no path", "REPLICAS=Deployment/web:", nil, "must be NAME=Kind/name:path"},
		{"P31: no kind", "REPLICAS=web:spec.replicas", nil, "must be NAME=Kind/name:path"},
		{"P31: a name that would be template text", "A}}=Deployment/web:spec.replicas", nil, "cannot name the parameter"},
		{"P31: the parameter of the hooks", "INSTALL_HOOKS=Deployment/web:spec.replicas", nil, "cannot name the parameter"},
		{"P31: an index that is none", "A=Deployment/web:spec[x]", nil, `wrong at "[x]"`},
	} {
		got, err := ParseLift(tc.in)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got.steps); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got:\n%s", tc.reason, err, diff)
		}
	}
}

// TestLiftErrors is P31: which values cannot become parameters.
func TestLiftErrors(t *testing.T) {
	manifest := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2, paused: null, template: {spec: {containers: []}}}\n" +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\ndata: {a: Yg==}\n"
	for _, tc := range []struct {
		reason string
		lifts  []string
		want   string
	}{
		{"P31: a field that is absent", []string{"A=Deployment/web:spec.other"}, `there is no "other"`},
		{"P31: an entry that is absent", []string{"A=Deployment/web:spec.template.spec.containers[0]"}, "there is no entry 0"},
		{"P31: a map", []string{"A=Deployment/web:spec"}, "is a map or a list"},
		{"P31: null", []string{"A=Deployment/web:spec.paused"}, `there is no "paused"`},
		{"P31: an object that is absent", []string{"A=Deployment/other:spec.replicas"}, "has no Deployment other"},
		{"P31: a Secret is no part of the package", []string{"A=Secret/key:data.a"}, "has no Secret key"},
		{"P31: two values", []string{"A=Deployment/web:spec.replicas", "A=Deployment/web:metadata.name"}, "values that differ"},
		{"P31: one value twice", []string{"A=Deployment/web:spec.replicas", "B=Deployment/web:spec.replicas"}, ""},
	} {
		_, err := Convert(testRelease(manifest), testScope, parseLifts(t, tc.lifts...))
		if tc.want == "" && err == nil {
			continue
		}
		if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.want)
		}
	}
}
