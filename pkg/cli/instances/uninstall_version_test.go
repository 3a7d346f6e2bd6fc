package instances

import (
	"strings"
	"testing"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/commandtest"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestUninstallVersionEnds checks T19: a deletion that was asked for before, and ends with the mark, is a success.
func TestUninstallVersionEnds(t *testing.T) {
	version := gen.Version("lab", "web-1.27-1.0.0")
	server := onServer(t, version)
	server.After(func(r apitest.Request) (any, error) {
		if r.Verb == "patch" && r.Kind == "OperatorVersion" {
			server.Remove(&v1beta1.OperatorVersion{ObjectMeta: gen.Meta("lab", version.Name)})
		}
		return nil, nil
	})
	out, _ := commandtest.Expect(t, NewUninstallVersion, 0, "", "uninstall-version", version.Name, "--leave-users", "--wait")
	if !strings.Contains(out, "operatorversion lab/web-1.27-1.0.0 and what it held are deleted") {
		t.Error(out)
	}
}
