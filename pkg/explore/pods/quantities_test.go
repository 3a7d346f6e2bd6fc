package pods

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestCheckQuantity(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, err string }{
		"Plain":    {"a number", "100", ""},
		"Suffix":   {"with a suffix", "1500m", ""},
		"Exa":      {"Ei begins with an E, but is no exponent", "2Ei", ""},
		"Exponent": {"exponents of two digits", "1e99", ""},
		"Signed":   {"with a sign", "1E-18", ""},
		"Longest":  {"40 bytes", strings.Repeat("1", 40), ""},
		"Other":    {"whether it is a quantity is for others to check", "x", ""},
		"Long":     {"41 bytes", strings.Repeat("1", 41), "a quantity has 41 bytes: write it with at most 40"},
		"Huge":     {"three digits", "1e100", `the exponent of quantity "1e100" has more than 2 digits: write it with a suffix, such as 1Gi`},
		"Tiny": {
			"also below zero",
			"1E-100",
			`the exponent of quantity "1E-100" has more than 2 digits: write it with a suffix, such as 1Gi`,
		},
		"Zeros": {
			"zeros in front count",
			"1e+001",
			`the exponent of quantity "1e+001" has more than 2 digits: write it with a suffix, such as 1Gi`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(CheckQuantity(tc.text)); got != tc.err && (tc.err != "" || got != "<nil>") {
				t.Errorf("%s: error %q, want %q", tc.reason, got, tc.err)
			}
		})
	}
}

// TestCheckQuantities has each place of a pod's spec that holds quantities: reading one would take minutes.
func TestCheckQuantities(t *testing.T) {
	const refused = `: the exponent of quantity "1e-999999999" has more than 2 digits: write it with a suffix, such as 1Gi`
	for name, tc := range map[string]struct{ reason, spec, field string }{
		"Limits": {
			"of containers",
			"{containers: [{name: a}, {resources: {limits: {cpu: 1e-999999999}}}]}",
			"containers[1].resources.limits.cpu",
		},
		"Requests": {
			"of init containers",
			"{initContainers: [{resources: {requests: {cpu: 1e-999999999}}}]}",
			"initContainers[0].resources.requests.cpu",
		},
		"Pod":       {"of pods", "{resources: {limits: {memory: 1e-999999999}}}", "resources.limits.memory"},
		"Template":  {"of templates", "{spec: {overhead: {cpu: 1e-999999999}}}", "spec.overhead.cpu"},
		"Overhead":  {"overhead", "{overhead: {cpu: 1e-999999999}}", "overhead.cpu"},
		"Directory": {"sizes of directories", "{volumes: [{emptyDir: {sizeLimit: 1e-999999999}}]}", "volumes[0].emptyDir.sizeLimit"},
		"Divisor": {
			"divisors",
			"{containers: [{env: [{valueFrom: {resourceFieldRef: {divisor: 1e-999999999}}}]}]}",
			"containers[0].env[0].valueFrom.resourceFieldRef.divisor",
		},
		"Claim": {
			"claims",
			"{volumes: [{ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1e-999999999}}}}}}]}",
			"volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
		},
		"Answer": {"requirements", "{resourceRequest: {cpu: 1e-999999999}}", "resourceRequest.cpu"},
		"First":  {"the first in the order of names", "{resources: {limits: {b: 1e-999999999, a: 1e-999999999}}}", "resources.limits.a"},
		"Value": {
			"the value of a variable is no quantity",
			"{containers: [{env: [{name: A, value: 1e-999999999}], args: [1e-999999999]}]}",
			"",
		},
		"Annotation": {"nor is an annotation of that name", "{metadata: {annotations: {limits: 1e-999999999}}}", ""},
		"Scalar":     {"a text alone", "1e-999999999", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var value any
			// Quotes keep the reader of YAML from making numbers of them.
			if err := yaml.Unmarshal([]byte(strings.ReplaceAll(tc.spec, "1e-999999999", "'1e-999999999'")), &value); err != nil {
				t.Fatal(err)
			}
			want := "<nil>"
			if tc.field != "" {
				want = "field " + tc.field + refused
			}
			if got := fmt.Sprint(CheckQuantities(value)); got != want {
				t.Errorf("%s: error %q, want %q", tc.reason, got, want)
			}
		})
	}
}
