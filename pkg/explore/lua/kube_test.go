package lua

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestQuantityBounds passes quantities in each way into which a script or its object may put them. Reading one takes minutes, which
// no limit of the virtual machine bounds.
func TestQuantityBounds(t *testing.T) {
	const large = `the exponent of quantity "1e9999999" has more than 2 digits: write it with a suffix, such as 1Gi`
	const small = `the exponent of quantity "1e-999999999" has more than 2 digits: write it with a suffix, such as 1Gi`
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		script    string
		err       string
	}{
		"Sum":          {"an argument of a sum", explore.Status, "return {kube.resourceAdd('1', '1e9999999')}", "script:1: bad argument #2 to resourceAdd (" + large + ")"},
		"Number":       {"the value of a quantity", explore.Status, "return {kube.getResourceQuantity('1e-999999999')}", "script:1: bad argument #1 to getResourceQuantity (" + small + ")"},
		"Length":       {"a long text", explore.Status, "return {kube.resourceAdd(('1'):rep(41))}", "script:1: bad argument #1 to resourceAdd (a quantity has 41 bytes: write it with at most 40)"},
		"Template":     {"a pod template", explore.Status, "return kube.accuratePodRequirements({spec = {containers = {{resources = {limits = {cpu = '1e9999999'}}}}}})", "script:1: bad argument #1 to accuratePodRequirements (field spec.containers[0].resources.limits.cpu: " + large + ")"},
		"Dependencies": {"a pod template that is asked for its dependencies", explore.Dependencies, "return kube.getPodDependencies({spec = {overhead = {cpu = '1e-999999999'}}}, 'lab')", "script:1: bad argument #1 to getPodDependencies (field spec.overhead.cpu: " + small + ")"},
		"Answer":       {"the requirements of an answer", explore.Replica, "return 1, {resourceRequest = {cpu = '1e-999999999'}}", "GetReplicas's requirements: field resourceRequest.cpu: " + small},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, tc.operation, tc.script, explore.Request{Object: exploretest.Object(t, deployment)})
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
