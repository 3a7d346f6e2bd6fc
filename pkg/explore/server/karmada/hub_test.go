package karmada

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/explore/cases"
	"kudo.dev/kudo/pkg/explore/library"
	"kudo.dev/kudo/pkg/explore/lua"
)

type gvk = schema.GroupVersionKind

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// wire is a layer that asks a server by the protocol.
type wire struct {
	t   testing.TB
	ask func(contentType, body string) (int, string)
}

func (w *wire) Layer() explore.Layer { return explore.Library }

func (w *wire) Explore(_ context.Context, r explore.Request) (a explore.Answer, known bool, err error) {
	body := w.document(r)
	_, text := w.ask("application/json", body)
	var read envelope
	if err := utiljson.Unmarshal([]byte(text), &read); err != nil {
		return a, false, err
	}
	given := read.Response
	if !given.Successful {
		return a, false, errors.New(given.Status.Message)
	}
	switch r.Operation {
	case explore.Replica:
		a.Replicas, a.Requirements = *given.Replicas, given.ReplicaRequirements
	case explore.Components:
		a.Components = *given.Components
	case explore.Healthy:
		a.Healthy = *given.Healthy
	case explore.Dependencies:
		a.Dependencies = *given.Dependencies
	case explore.Status:
		a.Status = given.RawStatus
	default:
		if (given.Patch == nil) != (given.PatchType == "") {
			w.t.Errorf("a patch has its type: %s", text)
		}
		a.Object = r.Object.DeepCopy()
		if given.Patch != nil {
			var made []byte
			if made, err = json.Marshal(apply(w.t, body, given.Patch)); err == nil {
				a.Object = &unstructured.Unstructured{}
				err = utiljson.Unmarshal(made, &a.Object.Object)
			}
		}
	}
	return a, true, err
}

// document writes a request as Karmada does.
func (w *wire) document(r explore.Request) string {
	w.t.Helper()
	asked := &request{UID: "u", Object: runtime.RawExtension{Object: r.Object}, Replicas: new(int64), AggregatedStatus: r.Items}
	kind := r.Object.GroupVersionKind()
	asked.Kind.Group, asked.Kind.Version, asked.Kind.Kind = kind.Group, kind.Version, kind.Kind
	*asked.Replicas = int64(r.Replicas)
	for name, operation := range operations {
		if operation == r.Operation {
			asked.Operation = name
		}
	}
	if r.Observed != nil {
		asked.ObservedObject = &runtime.RawExtension{Object: r.Observed}
	}
	text, err := json.Marshal(&envelope{APIVersion: apiVersion, Kind: "ResourceInterpreterContext", Request: asked})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// hub is the chain of a hub without webhooks and Configs.
func hub(t testing.TB) (explore.Chain, *library.Layer) {
	t.Helper()
	layer, err := library.NewForHub(lua.New(clock, lua.DefaultLimits()))
	if err != nil {
		t.Fatal(err)
	}
	return explore.Chain{layer}, layer
}

// TestCasesByTheProtocol checks C22: by the protocol, a hub gives the answers of all bundled rules and those for Instances. The protocol has
// neither messages nor outcomes of health, and takes the status only.
func TestCasesByTheProtocol(t *testing.T) {
	chain, layer := hub(t)
	kinds := layer.Kinds()
	w := &wire{t, serve(t, NewHandler(chain, func(kind gvk) error {
		if !slices.Contains(kinds, kind) {
			return errors.New("no rule names it")
		}
		return nil
	}, 0))}
	ran := 0
	for _, tree := range []string{"../../library/hub", "../../library/kinds"} {
		folders, err := cases.Load(os.DirFS(tree), lua.New(clock, lua.DefaultLimits()))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			for n := range folder.Cases {
				c := &folder.Cases[n]
				answer, known, err := w.Explore(t.Context(), c.Request)
				if err != nil || !known {
					t.Errorf("%s: %v", c.Place, err)
					continue
				}
				delete(c.Output, "message")
				delete(c.Output, "outcome")
				if differences := c.Compare(answer); len(differences) > 0 {
					t.Errorf("%s: %s: %s", c.Place, c.Name, strings.Join(differences, "\n  "))
				}
				ran++
			}
		}
	}
	if ran < 300 {
		t.Errorf("%d cases ran", ran)
	}
}

// post asks a handler without a connection, and returns its response and the patch.
func post(t testing.TB, h http.Handler, body string) (*response, []byte) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var read envelope
	if err := json.Unmarshal(w.Body.Bytes(), &read); err != nil || w.Code != http.StatusOK || read.Response == nil {
		t.Fatalf("HTTP %d, %s, %v", w.Code, w.Body, err)
	}
	return read.Response, read.Response.Patch
}

// FuzzHandler checks C22: no request makes the handler panic, or answer otherwise than the protocol says.
func FuzzHandler(f *testing.F) {
	chain, _ := hub(f)
	h := NewHandler(chain, func(gvk) error { return nil }, 0)
	w := &wire{t: f}
	placed := map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": map[string]any{"name": "a", "namespace": "b"},
		"spec": map[string]any{"operatorVersion": map[string]any{"name": "v"}, "parameters": map[string]any{"N": "6"}, "placement": map[string]any{"divide": "N"}}}
	for _, operation := range operations {
		r := explore.Request{Operation: operation, Object: &unstructured.Unstructured{Object: placed}, Replicas: 2}
		if operation == explore.Retaining {
			r.Observed = r.Object
		}
		f.Add(w.document(r))
	}
	rollout := map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{}}
	f.Add(w.document(explore.Request{Operation: explore.StatusAggregating, Object: &unstructured.Unstructured{Object: rollout},
		Items: []v1alpha1.AggregatedStatusItem{{ClusterName: "m", Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}}}))
	f.Add(document("Retain", `{"":{"":1}}`, `,"observedObject":{"metadata":5}`))
	f.Fuzz(func(t *testing.T, body string) { check(t, h, body) })
}

// check asks a handler, and wants an answer as of the protocol.
func check(t *testing.T, h http.Handler, body string) {
	t.Helper()
	given, patch := post(t, h, body)
	if given.Successful == (given.Status != nil) || !given.Successful && (given.Status.Message == "" || given.Status.Code < 400) {
		t.Fatalf("%q: %+v", body, given)
	}
	if given.Status != nil && strings.Contains(given.Status.Message, "panicked") {
		t.Fatalf("%q: %s", body, given.Status.Message)
	}
	if patch != nil && (given.PatchType != "JSONPatch" || apply(t, body, patch) == nil) {
		t.Fatalf("%q: the patch %s of type %q", body, patch, given.PatchType)
	}
}

// FuzzInstances checks C22 with what is a request, but for the Instances in it.
func FuzzInstances(f *testing.F) {
	chain, _ := hub(f)
	h := NewHandler(chain, func(gvk) error { return nil }, 0)
	names := slices.Sorted(maps.Keys(operations))
	for n := range names {
		f.Add(uint8(n), `{"name":"a","annotations":{"kudo.dev/defaulted":"N"}}`, `{"parameters":{"N":"6"},"placement":{"divide":"N"}}`, `{"conditions":[]}`, int32(2))
		f.Add(uint8(n), `{"":{"":1}}`, `"text"`, `[5]`, int32(-1))
	}
	f.Fuzz(func(t *testing.T, operation uint8, metadata, spec, status string, replicas int32) {
		body, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": envelopeKind, "request": map[string]any{
			"uid": "u", "kind": map[string]any{"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"},
			"operation": names[int(operation)%len(names)], "replicas": replicas,
			"object":           instance(metadata, spec, `{}`),
			"observedObject":   instance(metadata, `{"parameters":{"N":"1"}}`, status),
			"aggregatedStatus": []any{map[string]any{"clusterName": spec, "status": json.RawMessage(valid(status))}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		check(t, h, string(body))
	})
}

// instance returns an Instance of JSON texts; a text that is no JSON is null.
func instance(metadata, spec, status string) map[string]any {
	return map[string]any{"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": json.RawMessage(valid(metadata)),
		"spec": json.RawMessage(valid(spec)), "status": json.RawMessage(valid(status))}
}

func valid(text string) string {
	if !json.Valid([]byte(text)) {
		return "null"
	}
	return text
}
