package library

import (
	"os"
	"strings"
	"testing"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

func TestCrossplaneGoesByShape(t *testing.T) {
	const managed = `"spec":{"forProvider":{"region":"eu"},"providerConfigRef":{"name":"default"}}`
	for _, row := range []struct {
		reason, body   string
		known, healthy bool
		message        string
	}{
		{"a managed resource with both conditions", managed + `,"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`, true, true, ""},
		{"made, and not ready yet", managed + `,"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"False","reason":"Creating"}]}`, true, false, "Ready: Creating"},
		{"the provider refuses a change of what is ready", managed + `,"status":{"conditions":[{"type":"Synced","status":"False","reason":"ReconcileError","message":"denied"},{"type":"Ready","status":"True"}]}`, true, false, "Synced: denied"},
		{"conditions of an older generation", managed + `,"status":{"conditions":[{"type":"Synced","status":"True","observedGeneration":1},{"type":"Ready","status":"True","observedGeneration":1}]}`, true, false, "waits for its controller to see this generation"},
		{"no status yet", managed, true, false, "waits for the condition Synced"},
		{"a claim", `"spec":{"compositeDeletePolicy":"Background"},"status":{"conditions":[{"type":"Synced","status":"True"}]}`, true, false, "waits for the condition Ready"},
		{"a composite resource", `"spec":{"compositionRef":{"name":"a"}},"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`, true, true, ""},
		{"a composite resource of version 2", `"spec":{"crossplane":{"compositionUpdatePolicy":"Automatic"}},"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"True"}]}`, true, true, ""},
		{"another kind with a provider", `"spec":{"forProvider":{}}`, false, false, ""},
		{"another kind", `"spec":{"replicas":1}`, false, false, ""},
		{"no spec", `"data":{}`, false, false, ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			object := exploretest.Object(t, `{"apiVersion":"db.example.com/v1","kind":"Thing","metadata":{"name":"a","generation":2},`+row.body+`}`)
			answer, known, err := bundled(t).Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
			if err != nil || known != row.known || answer.Healthy != row.healthy || answer.Message != row.message {
				t.Errorf("got known %v, healthy %v, %q, error %v", known, answer.Healthy, answer.Message, err)
			}
			if !row.known || !strings.Contains(row.body, "conditions") {
				return
			}
			exploretest.Run(t, bundled(t), exploretest.Case{Name: "Status", Request: explore.Request{Operation: explore.Status, Object: object}},
				exploretest.Case{Name: "Healthy", Request: explore.Request{Operation: explore.Healthy, Object: object}})
		})
	}
}

func TestCrossplaneCases(t *testing.T) {
	const file = "testdata/crossplane.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := cases.Parse(file, text)
	if len(all) == 0 {
		t.Fatal("there are no cases")
	}
	for i := range all {
		if all[i].Broken != nil {
			t.Fatal(all[i].Broken)
		}
		if failures, _ := cases.Run(t.Context(), bundled(t), &all[i]); len(failures) > 0 {
			t.Errorf("%s: %s", all[i].Name, strings.Join(failures, "\n  "))
		}
	}
}
