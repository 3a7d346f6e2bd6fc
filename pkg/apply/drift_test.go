package apply

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fielded is an object with managed fields, given as JSON.
func fielded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"Thing","metadata":{"namespace":"ns","name":"x","managedFields":`+text+`},
		"spec":{"replicas":5,"image":"b","ports":[{"port":80,"name":"web"}],"tags":["u"]}}`), &obj.Object); err != nil {
		t.Fatal(err)
	}
	unpacked := &unstructured.Unstructured{} // with whole numbers, as from the API server
	raw, err := obj.MarshalJSON()
	if err == nil {
		err = unpacked.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return unpacked
}

const kudoHad = `{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{},"f:image":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}}`

// keeping is a retainer that keeps the replicas.
type keeping struct{ err error }

func (k keeping) Retain(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := desired.DeepCopy()
	count, _, _ := unstructured.NestedInt64(observed.Object, "spec", "replicas")
	_ = unstructured.SetNestedField(out.Object, count, "spec", "replicas")
	return out, k.err
}

// TestDrift (rule 13): which fields others have taken is told by a digest of those that are left.
func TestDrift(t *testing.T) {
	manager := "kudo/ns/i"
	before := sumOf(entries(fielded(t, `[`+kudoHad+`]`))[0])
	for name, tc := range map[string]struct {
		reason, now, want string
		retain            Retainer
	}{
		"Same": {"what others add is no drift",
			`[` + kudoHad + `,{"manager":"them","operation":"Update","fieldsV1":{"f:spec":{"f:tags":{}}}}]`, "", nil},
		"Shared": {"nor what they own along with kudo",
			`[` + kudoHad + `,{"manager":"them","operation":"Apply","fieldsV1":{"f:spec":{"f:image":{}}}}]`, "", nil},
		"One": {"one field, and who has it",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
			  {"manager":"them","operation":"Update","fieldsV1":{"f:spec":{"f:image":{},"f:tags":{}}}}]`, "Thing ns/x: .spec.image was changed by them", nil},
		"Two": {"two fields, by two",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{}}}}}},
			  {"manager":"them","operation":"Update","fieldsV1":{"f:spec":{"f:image":{}}}},
			  {"manager":"you","operation":"Update","fieldsV1":{"f:spec":{"f:ports":{"k:{\"port\":80}":{"f:name":{}}}}}}]`,
			"Thing ns/x: .spec.image, .spec.ports[port=80].name were changed by them, you", nil},
		"Removed": {"what was removed has no owner: who wrote last is named",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
			  {"manager":"old","operation":"Update","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{"f:tags":{}}}},
			  {"manager":"them","operation":"Update","time":"2026-01-02T00:00:00Z","fieldsV1":{"f:metadata":{"f:labels":{}}}}]`,
			"Thing ns/x: fields of it were changed by them", nil},
		"NoName": {"or another client, if no other manager is known",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:replicas":{}}}}]`, "Thing ns/x: fields of it were changed by another client", nil},
		"Retained": {"what is left to an autoscaler is no drift",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:image":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
			  {"manager":"scaler","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}]`, "", keeping{}},
		"Scaled": {"without one it is",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:image":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
			  {"manager":"kubectl","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}]`, "Thing ns/x: .spec.replicas was changed by kubectl", nil},
		"Both": {"the autoscaler's field does not hide another",
			`[{"manager":"kudo/ns/i","operation":"Apply","fieldsV1":{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}},
			  {"manager":"scaler","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}},
			  {"manager":"them","operation":"Update","fieldsV1":{"f:spec":{"f:image":{}}}}]`, "Thing ns/x: .spec.image was changed by them", keeping{}},
		"Status": {"a change of status is no drift",
			`[` + kudoHad + `,{"manager":"them","operation":"Update","subresource":"status","fieldsV1":{"f:status":{"f:ready":{}}}}]`, "", nil},
	} {
		live := fielded(t, tc.now)
		now := sumOf(entries(live)[0])
		got := ""
		if now != before {
			taken := others(live, manager)
			retained, err := (&Engine{retain: tc.retain}).retained(context.Background(), live, taken)
			if err != nil {
				t.Fatal(err)
			}
			if drift := newDrift(IDOf(live), live, manager, taken, retained, before-now); drift != nil {
				got = drift.String()
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
	}
	lost := errors.New("no answer")
	live := fielded(t, `[{"manager":"them","operation":"Update","fieldsV1":{"f:spec":{"f:replicas":{}}}}]`)
	if _, err := (&Engine{retain: keeping{lost}}).retained(context.Background(), live, others(live, manager)); !errors.Is(err, lost) {
		t.Errorf("what is not known is not judged: %v", err)
	}
}

// TestDigestOrder: the digest does not depend on the order in which the fields are met.
func TestDigestOrder(t *testing.T) {
	entry := entries(fielded(t, `[`+kudoHad+`]`))[0]
	for range 50 {
		if got := sumOf(entry); got != sumOf(entries(fielded(t, `[`+kudoHad+`]`))[0]) {
			t.Fatalf("another digest: %x", got)
		}
	}
}

// FuzzDrift: whatever stands in managed fields, kudo says something of it or nothing, and continues.
func FuzzDrift(f *testing.F) {
	f.Add(`{"f:spec":{"f:replicas":{}}}`)
	f.Add(`{"f:spec":{"f:ports":{"k:{\"port\":80}":{"f:name":{}},"v:\"u\"":{},"i:0":{},"k:x":{}}},".":{}}`)
	f.Add(`{"":{"x":{}},"f:":{}}`)
	f.Fuzz(func(t *testing.T, fields string) {
		if !json.Valid([]byte(fields)) {
			return
		}
		live := fielded(t, `[{"manager":"m","operation":"Update","fieldsV1":`+fields+`}]`)
		taken := others(live, "kudo/ns/i")
		retained, err := (&Engine{retain: keeping{}}).retained(context.Background(), live, taken)
		if err != nil {
			t.Fatal(err)
		}
		_ = newDrift(IDOf(live), live, "kudo/ns/i", taken, retained, 1).String()
	})
}
