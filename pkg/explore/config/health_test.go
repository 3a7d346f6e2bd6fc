package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// pots is a Config with a health rule for the kind Pot.
func pots(rule v1alpha1.HealthRule) v1alpha1.Config {
	return named("pots", v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "Pot", Health: &rule}}})
}

// pot is an object of generation 2 with a status.
func pot(t *testing.T, status string) *unstructured.Unstructured {
	t.Helper()
	return exploretest.Object(t, `{"apiVersion":"x/v1","kind":"Pot","metadata":{"name":"p","generation":2},"status":`+status+`}`)
}

// byBoth is a rule with conditions and a field.
func byBoth() v1alpha1.HealthRule {
	return v1alpha1.HealthRule{
		Conditions: &v1alpha1.HealthConditions{Healthy: []string{"Ready"}, Failed: []string{"Stalled"}},
		Field:      "{.status.phase}", Healthy: []string{"Boiling"}, Failed: []string{"Cracked", "Lost"}, Message: "{.status.message}",
	}
}

// TestHealth: C61, health by conditions and by a field.
func TestHealth(t *testing.T) {
	conditions := v1alpha1.HealthRule{Conditions: byBoth().Conditions}
	field := byBoth()
	field.Conditions = nil
	typed := v1alpha1.HealthRule{Field: "{.status.list[1].ok}", Healthy: []string{"true", "3", "1.5"}}
	const ready = `{"type":"Ready","status":"True"}`
	for _, tc := range []struct {
		reason, status string
		rule           v1alpha1.HealthRule
		want           string
	}{
		{"the condition is True", `{"conditions":[` + ready + `]}`, conditions, "Healthy"},
		{"there is no status", `null`, conditions, "Progressing there is no condition Ready yet"},
		{"the condition is False", `{"conditions":[{"type":"Ready","status":"False","reason":"Cold","message":"no fire"}]}`, conditions,
			"Progressing condition Ready is False: Cold: no fire"},
		{"the condition is of the generation before", `{"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}`, conditions,
			"Progressing there is no condition Ready yet"},
		{"the condition is of this generation", `{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}`, conditions, "Healthy"},
		{"the failure is of the generation before", `{"conditions":[` + ready + `,{"type":"Stalled","status":"True","observedGeneration":1}]}`, conditions,
			"Healthy"},
		{"the controller lags behind", `{"observedGeneration":1,"conditions":[` + ready + `,{"type":"Stalled","status":"True"}]}`, conditions,
			"Progressing its controller has not seen generation 2 yet (observedGeneration is 1)"},
		{"it has failed, whatever Ready says", `{"conditions":[` + ready + `,{"type":"Stalled","status":"True","reason":"Cracked"}]}`, conditions,
			"Failed condition Stalled is True: Cracked"},
		{"it does not stall", `{"conditions":[` + ready + `,{"type":"Stalled","status":"False"}]}`, conditions, "Healthy"},
		{"a healthy value", `{"phase":"Boiling"}`, field, "Healthy"},
		{"a failed value", `{"phase":"Lost"}`, field, "Failed {.status.phase} is Lost"},
		{"a failed value with a message", `{"phase":"Cracked","message":"it fell\nfrom the table"}`, field, "Failed {.status.phase} is Cracked; it fell from the table"},
		{"another value", `{"phase":"Cold","message":"no fire"}`, field, "Progressing {.status.phase} is Cold (healthy: Boiling); no fire"},
		{"no value", `{}`, field, "Progressing {.status.phase} is not set yet"},
		{"null", `{"phase":null}`, field, "Progressing {.status.phase} is not set yet"},
		{"a map", `{"phase":{"a":1},"message":7}`, field, "Progressing {.status.phase} is no text, number or boolean"},
		{"a boolean", `{"list":[0,{"ok":true}]}`, typed, "Healthy"},
		{"a whole number", `{"list":[0,{"ok":3}]}`, typed, "Healthy"},
		{"a number", `{"list":[0,{"ok":1.5}]}`, typed, "Healthy"},
		{"a short list", `{"list":[0]}`, typed, "Progressing {.status.list[1].ok} is not set yet"},
		{"no list", `{"list":7}`, typed, "Progressing {.status.list[1].ok} is not set yet"},
		{"both are healthy", `{"phase":"Boiling","conditions":[` + ready + `]}`, byBoth(), "Healthy"},
		{"the value is, the condition is not", `{"phase":"Boiling"}`, byBoth(), "Progressing there is no condition Ready yet"},
		{"the condition is, the value has failed", `{"phase":"Lost","conditions":[` + ready + `]}`, byBoth(), "Failed {.status.phase} is Lost"},
		{"neither is", `{"phase":"Cold"}`, byBoth(), "Progressing there is no condition Ready yet; {.status.phase} is Cold (healthy: Boiling)"},
		{"the type twice: the first counts", `{"conditions":[{"type":"Ready","status":"Unknown"},` + ready + `]}`, conditions,
			"Progressing condition Ready is Unknown"},
		{"an empty value", `{"phase":""}`, field, "Progressing {.status.phase} is  (healthy: Boiling)"},
		{"control characters", `{"phase":"a\u001b[2Jb\nc"}`, field, "Progressing {.status.phase} is a[2Jb c (healthy: Boiling)"},
		{"a generation that is no number", `{"observedGeneration":"1","phase":"Boiling"}`, field, "Healthy"},
		{"a status that is no map", `["Boiling"]`, byBoth(), "Progressing there is no condition Ready yet; {.status.phase} is not set yet"},
		{"conditions that are no list", `{"conditions":"Ready"}`, conditions, "Progressing there is no condition Ready yet"},
		{"conditions that are no maps", `{"conditions":["Ready",7,null]}`, conditions, "Progressing there is no condition Ready yet"},
		{"a condition with a status of another type", `{"conditions":[{"type":"Ready","status":["True"],"reason":7}]}`, conditions,
			"Progressing condition Ready is no text"},
	} {
		layer := New(host(), []v1alpha1.Config{pots(tc.rule)}, nil)
		a, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: pot(t, tc.status)})
		if got := strings.TrimSpace(string(a.Outcome()) + " " + a.Message); got != tc.want || !known || err != nil {
			t.Errorf("%s: %q, want %q (%t, %v)", tc.reason, got, tc.want, known, err)
		}
	}
}

// TestHealthConformance is what all layers pass.
func TestHealthConformance(t *testing.T) {
	broken := byBoth()
	broken.Field = "{..phase}"
	wrong := pots(broken)
	wrong.Name, wrong.Spec.Explorations[0].Kind = "wrong", "Wrong"
	object := exploretest.Object(t, `{"apiVersion":"x/v1","kind":"Wrong","metadata":{"name":"w"}}`)
	exploretest.Run(t, New(host(), []v1alpha1.Config{pots(byBoth()), wrong}, nil),
		exploretest.Case{Name: "a rule", Request: explore.Request{Operation: explore.Healthy, Object: pot(t, `{"phase":"Cold"}`)}},
		exploretest.Case{Name: "a rule that cannot be used", Request: explore.Request{Operation: explore.Healthy, Object: object}, Unknown: true},
	)
}

// TestValidateHealth: C61, a rule that cannot be meant is refused with the field and the remedy.
func TestValidateHealth(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*v1alpha1.HealthRule)
		want   string
	}{
		{"all is well", func(*v1alpha1.HealthRule) {}, ""},
		{"nothing", func(h *v1alpha1.HealthRule) { *h = v1alpha1.HealthRule{} }, ".health: conditions or field must be set"},
		{"a message alone", func(h *v1alpha1.HealthRule) { *h = v1alpha1.HealthRule{Message: "{.status.message}"} }, ".health: conditions or field must be set"},
		{"no healthy condition", func(h *v1alpha1.HealthRule) { h.Conditions.Healthy = nil }, ".health.conditions.healthy: name the conditions"},
		{"no healthy value", func(h *v1alpha1.HealthRule) { h.Healthy = nil }, ".health.healthy: name the values of {.status.phase}"},
		{"values without a field", func(h *v1alpha1.HealthRule) { h.Field = "" }, ".health.field: name the field"},
		{"a value in both lists", func(h *v1alpha1.HealthRule) { h.Failed = []string{"Boiling"} }, `.health.failed: "Boiling" is in healthy, too`},
		{"a field at any depth", func(h *v1alpha1.HealthRule) { h.Field = "{..phase}" }, `.health.field: field "{..phase}": ".." would match at any depth`},
		{"many values", func(h *v1alpha1.HealthRule) { h.Message = "{.status.items[*].message}" },
			`.health.message: field "{.status.items[*].message}": [*] would match more than one value: write an index, such as [0]`},
	} {
		rule := byBoth()
		tc.change(&rule)
		c := pots(rule)
		_, problems := Validate(&c)
		if got := fmt.Sprint(problems); (len(problems) == 0) != (tc.want == "") || !strings.Contains(got, "spec.explorations[0]"+tc.want) && tc.want != "" {
			t.Errorf("%s: %s, want %q", tc.reason, got, tc.want)
		}
	}
	c := pots(byBoth())
	c.Spec.Explorations[0].HealthLua = "return true"
	_, problems := Validate(&c)
	want := "[ExploreHealthy of x/v1 Pot is answered twice by Config/pots, in spec.explorations[0].health and spec.explorations[0].healthLua: leave one]"
	if got := fmt.Sprint(problems); got != want {
		t.Errorf("with a script: %s, want %s", got, want)
	}
}

// TestHealthConflict: a rule of one Config and a script of another one for the same kind make the answer unknown.
func TestHealthConflict(t *testing.T) {
	script := named("scripts", v1alpha1.ConfigSpec{Explorations: []v1alpha1.Exploration{{APIVersion: "x/v1", Kind: "Pot", HealthLua: "return true"}}})
	rule := pots(byBoth())
	want := "ExploreHealthy of x/v1 Pot is answered by Config/pots (spec.explorations[0].health) and by Config/scripts (spec.explorations[0].healthLua): " +
		"leave one of them"
	if got := Conflicts(&rule, []v1alpha1.Config{script, rule}); fmt.Sprint(got) != "["+want+"]" {
		t.Errorf("conflicts: %v, want %s", got, want)
	}
	layer := New(host(), []v1alpha1.Config{script, rule}, nil)
	_, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: pot(t, `{"phase":"Boiling"}`)})
	if unknown, is := explore.IsUnknown(err); known || !is || !strings.Contains(unknown.Error(), want) {
		t.Errorf("the answer is known: %t, %v", known, err)
	}
}

// TestHealthBounds: what an object says is quoted up to a bound.
func TestHealthBounds(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	layer := New(host(), []v1alpha1.Config{pots(byBoth())}, nil)
	for _, status := range []string{
		`{"phase":"` + long + `"}`,
		`{"phase":"Cold","message":"` + long + `"}`,
		`{"phase":"Cold","conditions":[{"type":"Ready","status":"` + long + `","reason":"` + long + `","message":"` + long + `"}]}`,
	} {
		a, _, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: pot(t, status)})
		if len(a.Message) > maxMessage || !strings.Contains(a.Message, "long") || err != nil {
			t.Errorf("a message of %d bytes (%v): %.80s", len(a.Message), err, a.Message)
		}
	}
}

// TestHealthChanges: an equal rule is no change, and another one is.
func TestHealthChanges(t *testing.T) {
	layer := func(change func(*v1alpha1.HealthRule)) *Layer {
		rule := byBoth()
		change(&rule)
		return New(host(), []v1alpha1.Config{pots(rule)}, nil)
	}
	first := layer(func(*v1alpha1.HealthRule) {})
	if got := layer(func(*v1alpha1.HealthRule) {}).Changed(first); len(got) != 0 {
		t.Errorf("an equal rule changes %v", got)
	}
	for n, change := range []func(*v1alpha1.HealthRule){
		func(h *v1alpha1.HealthRule) { h.Conditions.Failed = nil },
		func(h *v1alpha1.HealthRule) { h.Message = "" },
		func(h *v1alpha1.HealthRule) { h.Healthy = []string{"Boiling", "Hot"} },
	} {
		if got := layer(change).Changed(first); len(got) != 1 {
			t.Errorf("change %d changes %v", n, got)
		}
	}
}

// FuzzHealth: whatever a status is, the answer is one printable line of bounded length.
func FuzzHealth(f *testing.F) {
	for _, status := range []string{`{"phase":"Cold"}`, `{"conditions":[{"type":"Ready","status":"False","message":"a\u001b[2Jb"}]}`, `[]`, `{"phase":[{}],"message":1e300}`} {
		f.Add(status)
	}
	layer := New(host(), []v1alpha1.Config{pots(byBoth())}, nil)
	f.Fuzz(func(t *testing.T, status string) {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON([]byte(`{"apiVersion":"x/v1","kind":"Pot","metadata":{"name":"p"},"status":`+status+`}`)) != nil || object.GetKind() != "Pot" {
			return // no status in JSON
		}
		a, known, err := layer.Explore(t.Context(), explore.Request{Operation: explore.Healthy, Object: object})
		if !known || err != nil || a.Healthy == (a.Message != "") || len(a.Message) > maxMessage {
			t.Errorf("%+v, %t, %v", a, known, err)
		}
		for _, r := range a.Message {
			if !unicode.IsPrint(r) {
				raw, _ := json.Marshal(a.Message)
				t.Errorf("the message is %s", raw)
			}
		}
	})
}
