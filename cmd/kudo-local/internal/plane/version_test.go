package plane

import (
	"strings"
	"testing"
)

func TestCheckEmulatedVersion(t *testing.T) {
	for _, tc := range []struct{ version, reason, want string }{
		{"1.33", "three versions before its own", ""},
		{"1.36", "its own", ""},
		{"1.32", "an older one", "name one of 1.33 to 1.36"},
		{"1.37", "a newer one", "name one of 1.33 to 1.36"},
		{"2.33", "another major version", "cannot emulate"},
		{"1.33.1", "a patch version", "cannot emulate"},
		{"v1.33", "a prefix", "cannot emulate"},
		{"1.33,kube=1.34", "another flag within", "cannot emulate"},
		{"", "nothing", "cannot emulate"},
	} {
		err := CheckEmulatedVersion(tc.version)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(tc.want, "cannot "))) {
			t.Errorf("%s: %q: %v", tc.reason, tc.version, err)
		}
	}
}
