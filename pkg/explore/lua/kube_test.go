package lua

import (
	"fmt"
	"testing"
	"time"

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
		"Sum": {
			"an argument of a sum",
			explore.Status,
			"return {kube.resourceAdd('1', '1e9999999')}",
			"script:1: bad argument #2 to resourceAdd (" + large + ")",
		},
		"Number": {
			"the value of a quantity",
			explore.Status,
			"return {kube.getResourceQuantity('1e-999999999')}",
			"script:1: bad argument #1 to getResourceQuantity (" + small + ")",
		},
		"Length": {
			"a long text",
			explore.Status,
			"return {kube.resourceAdd(('1'):rep(41))}",
			"script:1: bad argument #1 to resourceAdd (a quantity has 41 bytes: write it with at most 40)",
		},
		"Template": {
			"a pod template",
			explore.Status,
			"return kube.accuratePodRequirements({spec = {containers = {{resources = {limits = {cpu = '1e9999999'}}}}}})",
			"script:1: bad argument #1 to accuratePodRequirements (field spec.containers[0].resources.limits.cpu: " + large + ")",
		},
		"Dependencies": {
			"a pod template that is asked for its dependencies",
			explore.Dependencies,
			"return kube.getPodDependencies({spec = {overhead = {cpu = '1e-999999999'}}}, 'lab')",
			"script:1: bad argument #1 to getPodDependencies (field spec.overhead.cpu: " + small + ")",
		},
		"Answer": {
			"the requirements of an answer",
			explore.Replica,
			"return 1, {resourceRequest = {cpu = '1e-999999999'}}",
			"GetReplicas's requirements: field resourceRequest.cpu: " + small,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, tc.operation, tc.script, explore.Request{Object: exploretest.Object(t, deployment)})
			if diff := cmp.Diff(tc.err, fmt.Sprint(err)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKube has the module kube.
func TestKube(t *testing.T) {
	const pod = "{spec = {nodeSelector = {a = 'b'}, containers = {{name = 'c', " +
		"resources = {limits = {memory = '1Gi'}, requests = {cpu = '100m'}}}}}}"
	for name, tc := range map[string]struct{ reason, lua, want, err string }{
		"Sum": {
			"sums keep the form of the first",
			"kube.resourceAdd('1Gi', '512Mi'), kube.resourceAdd('0.5', '500m'), kube.resourceAdd('1', '1Ki')",
			"[1536Mi 1 1025]",
			"",
		},
		"None": {
			"nil is none, and so is nothing",
			"kube.resourceAdd(), kube.resourceAdd(nil, nil), kube.getResourceQuantity(nil)",
			"[0 0 0]",
			"",
		},
		"Number": {"numbers are quantities", "kube.resourceAdd(1, 2.5), kube.getResourceQuantity(3)", "[3500m 3]", ""},
		"Value":  {"the value of a quantity", "kube.getResourceQuantity('2Ki'), kube.getResourceQuantity('-250m')", "[2048 -0.25]", ""},
		"NoQuantity": {
			"a text that is none",
			"kube.resourceAdd('1', 'one')",
			"",
			`script:1: bad argument #2 to resourceAdd ("one" is no quantity)`,
		},
		"NoText": {
			"a table",
			"kube.getResourceQuantity({})",
			"",
			"script:1: bad argument #1 to getResourceQuantity (string expected, got table)",
		},
		"Requirements": {"requests, and limits without a request", "kube.accuratePodRequirements(" + pod + ").resourceRequest.memory", "[1Gi]", ""},
		"Nodes":        {"nodes", "kube.accuratePodRequirements(" + pod + ").nodeClaim.nodeSelector.a", "[b]", ""},
		"NoTemplate": {
			"a list is no pod template",
			"kube.accuratePodRequirements({1})",
			"",
			"script:1: bad argument #1 to accuratePodRequirements (is no pod template)",
		},
		"WrongField": {
			"nor is a field of another type",
			"kube.accuratePodRequirements({spec = {containers = 'x'}})",
			"",
			"script:1: bad argument #1 to accuratePodRequirements (is no pod template)",
		},
		"NoJSON": {
			"nor what JSON has not",
			"kube.accuratePodRequirements({spec = print})",
			"",
			"script:1: bad argument #1 to accuratePodRequirements (the result's field spec is a function, which JSON has not)",
		},
		"OneArgument": {
			"requirements of one template",
			"kube.accuratePodRequirements(" + pod + ", 1)",
			"",
			"script:1: accuratePodRequirements takes one argument: a pod template",
		},
		"TwoArguments": {
			"dependencies in a namespace",
			"kube.getPodDependencies(" + pod + ")",
			"",
			"script:1: getPodDependencies takes two arguments: a pod template and a namespace",
		},
		"NoRequirements": {
			"a template that asks for nothing has an empty request",
			"next(kube.accuratePodRequirements({spec = {containers = {{name = 'c'}}}}).resourceRequest or {}) == nil",
			"[true]",
			"",
		},
		"Several": {
			"more summands, and none among them",
			"kube.resourceAdd('100m', '1', nil, 2), kube.getResourceQuantity('1500m')",
			"[3100m 1.5]",
			"",
		},
		"Module": {"it is a module, too", "require('kube') == kube, next(kube) ~= nil", "[true true]", ""},
		"Others": {"beside those of Lua", "require('io')", "", `script:1: module "io" does not exist: there are string, table, math, os, kube`},
		"Fixed": {
			"a script cannot change it",
			"(function() kube.resourceAdd = nil end)()",
			"",
			"script:1: library kube cannot be changed",
		},
		"NoPods": {"no dependencies", "#kube.getPodDependencies(" + pod + ", 'lab')", "[0]", ""},
		"Object": {"the template of an object", "kube.accuratePodRequirements(observedObj.spec.template).resourceRequest.cpu", "[1500m]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := ask(t, explore.Status, "return {list = {"+tc.lua+"}}", explore.Request{Object: exploretest.Object(t, deployment)})
			got, gotErr := fmt.Sprint(listOf(answer)), ""
			if err != nil {
				got, gotErr = "", err.Error()
			}
			if diff := cmp.Diff([]string{tc.want, tc.err}, []string{got, gotErr}); diff != "" {
				t.Errorf("%s: value and error (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestQuantitySpending reads quantities, whose work no instruction of the virtual machine counts.
func TestQuantitySpending(t *testing.T) {
	s, err := Compile(explore.Status, "for i = 1, 1000 do kube.resourceAdd('1', '1', '1') end return {}")
	if err != nil {
		t.Fatal(err)
	}
	limits := DefaultLimits()
	limits.Instructions, limits.Time = 20_000, time.Minute
	_, err = New(noon, limits).Run(t.Context(), s, explore.Request{Operation: explore.Status, Object: exploretest.Object(t, deployment)})
	if got := fmt.Sprint(err); got != "the script went beyond its limit of instructions (20000)" {
		t.Errorf("1000 sums: %s", got)
	}
}
