package params

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

func TestImmutableDefaults(t *testing.T) {
	yes, no, value := true, false, "10Gi"
	for _, tc := range []struct {
		reason string
		def    v1beta1.Parameter
		given  map[string]string
		want   map[string]string
	}{
		{"it may not change later", v1beta1.Parameter{Name: "SIZE", Immutable: &yes, Default: &value}, nil, map[string]string{"SIZE": "10Gi"}},
		{"a given value stays, also an empty one", v1beta1.Parameter{Name: "SIZE", Immutable: &yes, Default: &value}, map[string]string{"SIZE": ""}, map[string]string{}},
		{"others may change with the package", v1beta1.Parameter{Name: "SIZE", Immutable: &no, Default: &value}, nil, map[string]string{}},
		{"there is no default", v1beta1.Parameter{Name: "SIZE", Immutable: &yes}, nil, map[string]string{}},
	} {
		if diff := cmp.Diff(tc.want, ImmutableDefaults([]v1beta1.Parameter{tc.def}, tc.given)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}
