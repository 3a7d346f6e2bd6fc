package native

import (
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestClaims (C64) checks which claims objects declare.
func TestClaims(t *testing.T) {
	const claim = `{"storageClassName":"gold","resources":{"requests":{"storage":"1Gi"}}}`
	for name, tc := range map[string]struct {
		reason, object string
		claims         int
		template       bool
		err            string
	}{
		"StatefulSet":  {"a template is a claim of each pod", `{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"template":{"spec":{}},"volumeClaimTemplates":[{"spec":` + claim + `},{"spec":{}}]}}`, 2, true, ""},
		"Claim":        {"a claim is its own", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":` + claim + `}`, 1, false, ""},
		"Ephemeral":    {"an ephemeral volume is one, too", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"volumes":[{"name":"a","ephemeral":{"volumeClaimTemplate":{"spec":` + claim + `}}},{"name":"b"}]}}}}`, 1, true, ""},
		"OtherKind":    {"the like of another kind is none", `{"apiVersion":"example.com/v1","kind":"StatefulSet","spec":{"volumeClaimTemplates":[{"spec":` + claim + `}]}}`, 0, false, ""},
		"NoTemplate":   {"a template that is missing is not an empty one", `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":1}}`, 0, false, ""},
		"NoSpec":       {"a claim without a spec", `{"apiVersion":"v1","kind":"PersistentVolumeClaim"}`, 0, false, "spec is missing"},
		"Text":         {"a claim that is a text", `{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"volumeClaimTemplates":["a"]}}`, 0, false, "claim 0 is malformed"},
		"NoList":       {"templates that are no list", `{"apiVersion":"apps/v1","kind":"StatefulSet","spec":{"volumeClaimTemplates":{"a":1}}}`, 0, false, ""},
		"HugeExponent": {"a quantity that takes minutes to read", `{"apiVersion":"v1","kind":"PersistentVolumeClaim","spec":{"resources":{"requests":{"storage":"1e-2147483647"}}}}`, 0, false, "exponent of quantity"},
		"HugeTemplate": {"so in an ephemeral volume", `{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1e-2147483647"}}}}}}]}}`, 0, false, "exponent of quantity"},
	} {
		t.Run(name, func(t *testing.T) {
			object := exploretest.Object(t, tc.object)
			spec, err := PodSpec(object)
			if err == nil && (spec != nil) != tc.template {
				t.Errorf("%s: template %v, want one: %v", tc.reason, spec, tc.template)
			}
			got, claimsErr := Claims(object, spec)
			if err == nil {
				err = claimsErr
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if err == nil && len(got) != tc.claims {
				t.Errorf("%s: %d claims, want %d", tc.reason, len(got), tc.claims)
			}
		})
	}
}
