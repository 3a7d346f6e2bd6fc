package webhook

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/exploretest"
)

// TestMisbehavior is every way to answer that must not be believed. Each is tried with both failure policies.
func TestMisbehavior(t *testing.T) {
	whole := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, strings.ReplaceAll(body, "UID", string(uidOf(r))))
		}
	}
	ok := `{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview","response":{"uid":"UID","healthy":true}}`
	const json = "application/json"
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		handler   http.HandlerFunc
		want      string
	}{
		"NotFound":    {"only 200 is an answer", explore.Healthy, http.NotFound, "status 404"},
		"NoContent":   {"only 200 is an answer", explore.Healthy, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "status 204"},
		"ContentType": {"what is not declared as JSON is not read", explore.Healthy, whole("text/html", ok), `Content-Type "text/html"`},
		"Encoding": {"nothing is unpacked", explore.Healthy, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			whole(json, ok)(w, r)
		}, `Content-Encoding "gzip"`},
		"Garbage":        {"garbage", explore.Healthy, whole(json, "<html>"), "no ExploreReview"},
		"Empty":          {"nothing", explore.Healthy, whole(json, ""), "no ExploreReview"},
		"Trailing":       {"two answers are none", explore.Healthy, whole(json, ok+ok), "no ExploreReview"},
		"Null":           {"null", explore.Healthy, whole(json, "null"), `apiVersion "" and kind ""`},
		"Version":        {"another version", explore.Healthy, whole(json, strings.Replace(ok, "v1alpha1", "v1", 1)), `apiVersion "config.kudo.dev/v1"`},
		"Kind":           {"another kind", explore.Healthy, whole(json, strings.Replace(ok, "ExploreReview", "AdmissionReview", 1)), `kind "AdmissionReview"`},
		"NoResponse":     {"no response", explore.Healthy, whole(json, `{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview"}`), "no response"},
		"Case":           {"names of fields are exact", explore.Healthy, reply(`{"uid":"UID","Healthy":true}`), "response.healthy is not set"},
		"Twice":          {"a field that is there twice says nothing", explore.Healthy, reply(`{"uid":"UID","healthy":true,"healthy":false}`), "duplicate field"},
		"UID":            {"an answer to something else", explore.Healthy, reply(`{"uid":"other","healthy":true}`), `response.uid is "other"`},
		"NoUID":          {"an answer to nothing", explore.Healthy, reply(`{"healthy":true}`), `response.uid is ""`},
		"NoHealthy":      {"the required field of the operation", explore.Healthy, reply(`{"uid":"UID"}`), "response.healthy is not set"},
		"HealthyText":    {"a value of another type", explore.Healthy, reply(`{"uid":"UID","healthy":"true"}`), "no ExploreReview"},
		"HealthyPatch":   {"a patch where nothing may be written", explore.Healthy, reply(patch(`[]`)), "must not change the object"},
		"NoReplicas":     {"the required field of the operation", explore.Replica, reply(`{"uid":"UID","replicaRequirements":{}}`), "response.replicas is not set"},
		"Negative":       {"fewer than none", explore.Replica, reply(`{"uid":"UID","replicas":-1}`), "must be 0 or more"},
		"Fraction":       {"a number that is not whole", explore.Replica, reply(`{"uid":"UID","replicas":1.5}`), "no ExploreReview"},
		"Overflow":       {"more than 32 bits hold", explore.Replica, reply(`{"uid":"UID","replicas":4294967297}`), "no ExploreReview"},
		"Quantity":       {"a quantity that takes minutes to read", explore.Replica, reply(`{"uid":"UID","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e-2147483647"}}}`), "the exponent of quantity \"1e-2147483647\" has more than 2 digits"},
		"QuantityEscape": {"the same with an escape sequence", explore.Replica, reply(`{"uid":"UID","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1\u0065-2147483647"}}}`), "the exponent of quantity"},
		"QuantityNumber": {"the same as a number", explore.Replica, reply(`{"uid":"UID","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":1e-2147483647}}}`), "the exponent of quantity"},
		"Contradiction":  {"health that contradicts healthy", explore.Healthy, reply(`{"uid":"UID","healthy":true,"health":"Failed"}`), "health Failed contradicts healthy true"},
		"OtherHealth":    {"health that does not exist", explore.Healthy, reply(`{"uid":"UID","healthy":false,"health":"Broken"}`), `health "Broken" is unknown`},
		"ComponentTwice": {"two components of one name", explore.Components, reply(`{"uid":"UID","components":[{"name":"a","replicas":1},{"name":"a","replicas":1}]}`), "is that of another component"},
		"ComponentSize":  {"a quantity of a component", explore.Components, reply(`{"uid":"UID","components":[{"name":"a","replicas":1},{"name":"b","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e-2147483647"}}}]}`), "response.components[1].replicaRequirements.resourceRequest"},
		"QuantityTwice":  {"the same, hidden behind a good one", explore.Replica, reply(`{"uid":"UID","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e-2147483647","cpu":"1"}}}`), "duplicate field"},
		"NoStatus":       {"the required field of the operation", explore.Status, reply(`{"uid":"UID"}`), "response.status is not set"},
		"Dependency":     {"a dependency without a name", explore.Dependencies, reply(`{"uid":"UID","dependencies":[{"apiVersion":"v1","kind":"Secret"}]}`), "name or labelSelector must be set"},
		"NoPatchType":    {"a patch of no type", explore.Packing, reply(`{"uid":"UID","patch":"W10="}`), "without response.patchType"},
		"PatchType":      {"a patch of another type", explore.Packing, reply(`{"uid":"UID","patch":"e30=","patchType":"MergePatch"}`), `patchType is "MergePatch"`},
		"EmptyPatch":     {"a type without a patch", explore.Packing, reply(`{"uid":"UID","patch":"","patchType":"JSONPatch"}`), "response.patch is empty"},
		"PatchGarbage":   {"a patch that is none", explore.Packing, reply(patch(`{"a":1}`)), "no JSON patch"},
		"PatchMisfit":    {"a patch for another object", explore.Packing, reply(patch(`[{"op":"remove","path":"/nowhere"}]`)), "does not fit the object"},
		"PatchTest":      {"a patch whose test fails", explore.Packing, reply(patch(`[{"op":"test","path":"/kind","value":"Bar"}]`)), "does not fit the object"},
		"PatchPanic":     {"a patch that makes the patch library panic", explore.Retaining, reply(patch(`[{"op":"test","path":""}]`)), "does not fit the object"},
		"PatchAway":      {"a patch that leaves no object", explore.Packing, reply(patch(`[{"op":"replace","path":"","value":[]}]`)), "response.patch"},
		"PatchMany":      {"a patch without bounds", explore.Packing, reply(patch(`[` + strings.Repeat(`{"op":"remove","path":"/a"},`, maxPatches) + `{"op":"remove","path":"/a"}]`)), "at most 10000"},
		"PatchWork":      {"a patch that moves a long list again and again", explore.Packing, reply(patch(`[{"op":"add","path":"/spec/x","value":[0` + strings.Repeat(`,0`, 400000) + `]}` + strings.Repeat(`,{"op":"add","path":"/spec/x/0","value":0}`, 5000) + `]`)), "too much work"},
		"PatchCopy":      {"a patch that doubles what it copied", explore.Packing, reply(patch(`[{"op":"add","path":"/spec/x","value":["` + strings.Repeat("x", 1000) + `"]}` + strings.Repeat(`,{"op":"copy","from":"/spec","path":"/spec/x/-"}`, 40) + `]`)), "does not fit the object"},
		"Name":           {"another object", explore.Packing, reply(patch(`[{"op":"replace","path":"/metadata/name","value":"g"}]`)), "name was changed"},
		"Namespace":      {"another object", explore.Retaining, reply(patch(`[{"op":"replace","path":"/metadata/namespace","value":"g"}]`)), "namespace was changed"},
		"ObjectKind":     {"another object", explore.ReplicaRevising, reply(patch(`[{"op":"replace","path":"/kind","value":"Bar"}]`)), "kind was changed"},
		"ObjectUID":      {"another object", explore.Packing, reply(patch(`[{"op":"remove","path":"/metadata/uid"}]`)), "uid was changed"},
		"RetainNew":      {"retaining must not invent", explore.Retaining, reply(patch(`[{"op":"add","path":"/spec/new","value":1}]`)), ".spec.new is in neither"},
		"ReviseStatus":   {"revising writes spec only", explore.ReplicaRevising, reply(patch(`[{"op":"add","path":"/status","value":{"a":1}}]`)), "status was changed"},
		"ReviseLabels":   {"revising writes spec only", explore.ReplicaRevising, reply(patch(`[{"op":"add","path":"/metadata/labels/x","value":"y"}]`)), "metadata was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			client := secure(t, tc.handler)
			r := requestOf(t, tc.operation)
			before := exploretest.Text(t, r)
			strict, _ := layerOf(t, Options{}, hookOf(client))
			refused(t, tc.reason, strict, r, tc.want)
			lax, _ := layerOf(t, Options{}, hookOf(client, ignore))
			if _, known, err := lax.Explore(t.Context(), r); known || err != nil {
				t.Errorf("%s: with Ignore the next layer is asked: got known %v, error %v", tc.reason, known, err)
			}
			if diff := cmp.Diff(before, exploretest.Text(t, r)); diff != "" {
				t.Errorf("%s: the caller's object was changed:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLenient is what is an answer though it looks bare.
func TestLenient(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		operation explore.Operation
		response  string
	}{
		"NoPatch":        {"no patch changes nothing", explore.Retaining, `{"uid":"UID"}`},
		"NoOperations":   {"nor does a patch without operations", explore.Retaining, patch(`[]`)},
		"NullStatus":     {"an object may have no status", explore.Status, `{"uid":"UID","status":null}`},
		"NoDependencies": {"an object may need nothing", explore.Dependencies, `{"uid":"UID"}`},
		"OnlyHealth":     {"the outcome in place of healthy", explore.Healthy, `{"uid":"UID","health":"Failed"}`},
		"NoComponents":   {"there may be no components", explore.Components, `{"uid":"UID"}`},
		"NoNeeds":        {"nothing may be known of what replicas need", explore.Replica, `{"uid":"UID","replicas":0}`},
		"Additions":      {"fields of later versions are passed over", explore.Replica, `{"uid":"UID","replicas":0,"later":{"a":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := layerOf(t, Options{}, hookOf(secure(t, reply(tc.response))))
			r := requestOf(t, tc.operation)
			a, known, err := l.Explore(t.Context(), r)
			if !known || err != nil {
				t.Fatalf("%s: got known %v, error %v", tc.reason, known, err)
			}
			if a.Object != nil && !cmp.Equal(a.Object.Object, r.Object.Object) {
				t.Errorf("%s: the object was changed:\n%s", tc.reason, cmp.Diff(r.Object.Object, a.Object.Object))
			}
		})
	}
}

// TestRefusal is unknown whatever the failure policy: the webhook works, and says no.
func TestRefusal(t *testing.T) {
	client := secure(t, reply(`{"uid":"UID","healthy":true,"result":{"status":"Failure","message":"`+strings.Repeat("é", 2000)+`"}}`))
	l, _ := layerOf(t, Options{}, hookOf(client, ignore))
	refused(t, "a refusal is the webhook's own", l, requestOf(t, explore.Healthy), "it refuses to answer: éé")
	if _, _, err := l.Explore(t.Context(), requestOf(t, explore.Healthy)); len(err.Error()) > 2*maxMessage {
		t.Errorf("messages are cut: got %d bytes", len(err.Error()))
	}
}
