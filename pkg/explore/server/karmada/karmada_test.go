package karmada

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/pkg/explore"
)

// layer answers as a func does.
type layer func(ctx context.Context, r explore.Request) (explore.Answer, bool, error)

func (layer) Layer() explore.Layer { return explore.User }

func (l layer) Explore(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
	return l(ctx, r)
}

// ship answers for a Ship each operation of the protocol.
func ship(_ context.Context, r explore.Request) (a explore.Answer, known bool, err error) {
	if name := r.Object.GetName(); name != "a" {
		return a, false, nil
	}
	spec, _ := r.Object.Object["spec"].(map[string]any)
	switch r.Operation {
	case explore.Replica:
		a.Replicas = 3
		a.Requirements = &v1alpha1.ReplicaRequirements{ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("100m")}}
	case explore.Components:
		a.Components = []v1alpha1.Component{{Name: "mast", Replicas: 2}}
	case explore.Healthy:
		a.Healthy = spec["sinks"] == nil
	case explore.Dependencies:
		a.Dependencies = []v1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: "b", Name: "z"}, {APIVersion: "v1", Kind: "Secret", Namespace: "b", Name: "y"}}
	case explore.Status:
		if spec["sinks"] == nil {
			a.Status = map[string]any{"phase": "Afloat", "n": int64(9007199254740993)}
		}
	default:
		a.Object = r.Object.DeepCopy()
	}
	switch r.Operation {
	case explore.ReplicaRevising:
		a.Object.Object["spec"].(map[string]any)["a/b~c"] = int64(r.Replicas)
	case explore.Retaining:
		a.Object.Object["spec"] = r.Observed.DeepCopy().Object["spec"]
	case explore.StatusAggregating:
		a.Object.Object["status"] = map[string]any{"copies": int64(len(r.Items))}
		a.Object.SetLabels(map[string]string{"not": "taken"})
	}
	return a, true, nil
}

func isShip(kind schema.GroupVersionKind) error {
	if kind != (schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Ship"}) {
		return errors.New("no rule of this hub names it")
	}
	return nil
}

// document is a request of the protocol, about a Ship with a spec; further fields follow a comma.
func document(operation, spec, more string) string {
	return `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","request":{"uid":"u","kind":{"group":"sea.example.com",` +
		`"version":"v1","kind":"Ship"},"name":"a","namespace":"b","operation":"` + operation + `","object":{"apiVersion":"sea.example.com/v1","kind":"Ship",` +
		`"metadata":{"name":"a","namespace":"b"},"spec":` + spec + `},"replicas":0` + more + `}}`
}

// serve starts a server with TLS, and returns a func that asks it.
func serve(t testing.TB, h http.Handler) func(contentType, body string) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(Path, h)
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	client := s.Client()
	client.Timeout = 20 * time.Second
	return func(contentType, body string) (int, string) {
		t.Helper()
		answer, err := client.Post(s.URL+Path, contentType, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
}

// TestOperations checks C22: over TLS, each operation is answered in the fields that the protocol has for it, and in no others.
func TestOperations(t *testing.T) {
	ask := serve(t, NewHandler(explore.Chain{layer(ship)}, isShip, 0))
	const observed = `,"observedObject":{"apiVersion":"sea.example.com/v1","kind":"Ship","metadata":{"name":"a","namespace":"b"},"spec":{"sail":"red"}}`
	for name, row := range map[string]struct {
		reason, operation, spec, more string
		// want is the response beside uid and successful, with a patch as it is, and patched the object that the patch makes.
		want, patched string
	}{
		"Replica":      {"the number and what each needs", "InterpretReplica", `{}`, "", `{"replicas":3,"replicaRequirements":{"resourceRequest":{"cpu":"100m"}}}`, ""},
		"Component":    {"components by name", "InterpretComponent", `{}`, "", `{"components":[{"name":"mast","replicas":2}]}`, ""},
		"Healthy":      {"health is a boolean", "InterpretHealth", `{}`, "", `{"healthy":true}`, ""},
		"Unhealthy":    {"which is there if it is false", "InterpretHealth", `{"sinks":true}`, "", `{"healthy":false}`, ""},
		"Dependencies": {"a sorted list", "InterpretDependency", `{}`, "", `{"dependencies":[{"apiVersion":"v1","kind":"Secret","namespace":"b","name":"y"},{"apiVersion":"v1","kind":"Secret","namespace":"b","name":"z"}]}`, ""},
		"Status":       {"the status as it is, with whole numbers", "InterpretStatus", `{}`, "", `{"rawStatus":{"phase":"Afloat","n":9007199254740993}}`, ""},
		"NoStatus":     {"no status is an empty one: without an answer Karmada takes all", "InterpretStatus", `{"sinks":true}`, "", `{"rawStatus":{}}`, ""},
		"Revise":       {"a patch, whose paths are escaped", "ReviseReplica", `{"sail":"red"}`, `,"replicas":4`, `{"patch":[{"op":"add","path":"/spec/a~1b~0c","value":4}],"patchType":"JSONPatch"}`, `{"sail":"red","a/b~c":4}`},
		"Retain":       {"a patch of the copy", "Retain", `{}`, observed, `{"patch":[{"op":"add","path":"/spec/sail","value":"red"}],"patchType":"JSONPatch"}`, `{"sail":"red"}`},
		"Same":         {"no change has neither a patch nor its type", "Retain", `{"sail":"red"}`, observed, `{}`, ""},
		"Aggregate":    {"only status is patched", "AggregateStatus", `{}`, `,"aggregatedStatus":[{"clusterName":"m","applied":true,"health":"Healthy","status":{"x":1}},{"clusterName":"n"}]`, `{"patch":[{"op":"add","path":"/status","value":{"copies":2}}],"patchType":"JSONPatch"}`, `{}`},
		"AggregateNil": {"without copies, too", "AggregateStatus", `{}`, "", `{"patch":[{"op":"add","path":"/status","value":{"copies":0}}],"patchType":"JSONPatch"}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			body := document(row.operation, row.spec, row.more)
			code, text := ask("application/json; charset=utf-8", body)
			if code != http.StatusOK {
				t.Fatalf("%s: HTTP %d: %s", row.reason, code, text)
			}
			want := `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","response":{"uid":"u","successful":true,` + strings.TrimPrefix(row.want, "{") + "}"
			want = strings.Replace(want, ",}", "}", 1)
			readable, patch := plainPatch(t, text)
			if diff := cmp.Diff(fields(t, want), fields(t, readable)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", row.reason, diff)
			}
			if row.patched != "" {
				got := apply(t, body, patch)
				if diff := cmp.Diff(fields(t, row.patched), got["spec"]); diff != "" {
					t.Errorf("%s: the patched object: -want +got:\n%s", row.reason, diff)
				}
			}
		})
	}
}

// fields reads an object, with numbers as they are written.
func fields(t testing.TB, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var found map[string]any
	if err := decoder.Decode(&found); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return found
}

// plainPatch returns a response with its patch not in base64, and the patch.
func plainPatch(t testing.TB, text string) (string, []byte) {
	t.Helper()
	var read struct {
		Response struct {
			Patch []byte `json:"patch"`
		} `json:"response"`
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if read.Response.Patch == nil {
		return text, nil
	}
	coded, err := json.Marshal(read.Response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(text, string(coded), string(read.Response.Patch), 1), read.Response.Patch
}

// apply returns the object of a request with a patch.
func apply(t testing.TB, body string, patch []byte) map[string]any {
	t.Helper()
	var read struct {
		Request struct {
			Object json.RawMessage `json:"object"`
		} `json:"request"`
	}
	if err := json.Unmarshal([]byte(body), &read); err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	text, err := decoded.Apply(read.Request.Object)
	if err != nil {
		t.Fatalf("%s does not fit %s: %v", patch, read.Request.Object, err)
	}
	return fields(t, string(text))
}

// TestRefusals checks C22: what cannot be answered is refused with HTTP 200, a message and a code, and nothing else.
func TestRefusals(t *testing.T) {
	healthy := document("InterpretHealth", `{}`, "")
	chain := explore.Chain{layer(func(ctx context.Context, r explore.Request) (explore.Answer, bool, error) {
		switch spec, _ := r.Object.Object["spec"].(map[string]any); spec["do"] {
		case "fail":
			return explore.Answer{}, false, errors.New("the mast is broken\n" + strings.Repeat("!", 5000))
		case "panic":
			panic("the layer fails")
		case "wait":
			<-ctx.Done()
			return explore.Answer{}, false, ctx.Err()
		case "rename":
			a := explore.Answer{Object: r.Object.DeepCopy()}
			a.Object.SetName("other")
			return a, true, nil
		}
		return ship(ctx, r)
	})}
	ask := serve(t, NewHandler(chain, isShip, 100*time.Millisecond))
	for name, row := range map[string]struct {
		reason, body string
		code         int
		want         string
	}{
		"Operation":      {"an operation that is declared and never asked", document("Prune", `{}`, ""), 501, `operation "Prune" is unknown: use AggregateStatus, InterpretComponent`},
		"Own":            {"an operation by the name that it has in kudo", document("ExploreHealthy", `{}`, ""), 501, `operation "ExploreHealthy" is unknown`},
		"Kind":           {"a kind that is not answered", strings.ReplaceAll(healthy, "Ship", "Boat"), 404, `kind "sea.example.com/v1, Kind=Boat": no rule of this hub names it`},
		"Version":        {"or not in this version", strings.ReplaceAll(strings.ReplaceAll(healthy, `"version":"v1"`, `"version":"v2"`), "sea.example.com/v1", "sea.example.com/v2"), 404, "no rule of this hub"},
		"Rule":           {"no layer has a rule", strings.ReplaceAll(healthy, `"name":"a"`, `"name":"x"`), 404, "no rule answers InterpretHealth of Ship b/x"},
		"Error":          {"a layer that cannot answer; the message is one line, and bounded", document("InterpretHealth", `{"do":"fail"}`, ""), 500, "ExploreHealthy of Ship b/a is unknown: user: the mast is broken"},
		"Panic":          {"a layer that panics", document("InterpretHealth", `{"do":"panic"}`, ""), 500, "the layer fails"},
		"Time":           {"a layer that takes too long", document("InterpretHealth", `{"do":"wait"}`, ""), 504, "deadline exceeded"},
		"Identity":       {"an answer that none may give", document("ReviseReplica", `{"do":"rename"}`, `,"replicas":1`), 500, "identity"},
		"OtherKind":      {"an object of another kind than the request", strings.Replace(healthy, `"apiVersion":"sea.example.com/v1","kind":"Ship"`, `"apiVersion":"sea.example.com/v1","kind":"Boat"`, 1), 400, "they must be the same"},
		"NoObject":       {"no object", strings.Replace(healthy, `"object":`, `"other":`, 1), 400, "request.object is missing"},
		"NullObject":     {"null for an object", `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","request":{"uid":"u","kind":{"group":"sea.example.com","version":"v1","kind":"Ship"},"operation":"InterpretHealth","object":null}}`, 400, "request.object is missing"},
		"ListObject":     {"a list for an object", `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext","request":{"uid":"u","kind":{"group":"sea.example.com","version":"v1","kind":"Ship"},"operation":"InterpretHealth","object":[1]}}`, 400, "read request.object"},
		"NoObserved":     {"Retain without the observed object", document("Retain", `{}`, ""), 400, "request.observedObject is missing"},
		"NoReplicas":     {"ReviseReplica without a number", strings.Replace(document("ReviseReplica", `{}`, ""), `,"replicas":0`, "", 1), 400, "request.replicas must be a number"},
		"FewReplicas":    {"a negative number", document("ReviseReplica", `{}`, `,"replicas":-1`), 400, "request.replicas must be a number"},
		"ManyReplicas":   {"a number over 32 bits", document("ReviseReplica", `{}`, `,"replicas":2147483648`), 400, "request.replicas must be a number"},
		"PartOfReplicas": {"a fraction; the answer names the uid all the same", document("ReviseReplica", `{}`, `,"replicas":1.5`), 400, "read the ResourceInterpreterContext"},
		"Items":          {"statuses that are no list", document("AggregateStatus", `{}`, `,"aggregatedStatus":{}`), 400, "read the ResourceInterpreterContext"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := ask("application/json", row.body)
			refused(t, row.reason, "u", code, text, row.code, row.want)
		})
	}
	for name, row := range map[string]struct {
		reason, contentType, body string
		code                      int
		want                      string
	}{
		"Garbage":    {"what is no JSON", "application/json", "<", 400, "read the ResourceInterpreterContext"},
		"Empty":      {"nothing", "application/json", "", 400, "read the ResourceInterpreterContext"},
		"Null":       {"null", "application/json", "null", 400, `the document is "" of "": want ResourceInterpreterContext of config.karmada.io/v1alpha1`},
		"NoRequest":  {"no request", "application/json", `{"apiVersion":"config.karmada.io/v1alpha1","kind":"ResourceInterpreterContext"}`, 400, "has no request with a uid"},
		"NoUID":      {"a request without a uid", "application/json", strings.Replace(healthy, `"uid":"u"`, `"uid":""`, 1), 400, "has no request with a uid"},
		"Large":      {"a body over the limit", "application/json", strings.Repeat(" ", MaxBody+1), 413, "more than 8388608 bytes"},
		"MediaType":  {"another media type", "text/plain", healthy, 415, "want Content-Type application/json"},
		"NoType":     {"no media type", "", healthy, 415, "want Content-Type application/json"},
		"DeepNested": {"more levels than are read", "application/json", strings.Repeat("[", 100_000), 400, "read the ResourceInterpreterContext"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := ask(row.contentType, row.body)
			refused(t, row.reason, "", code, text, row.code, row.want)
		})
	}
}

// refused wants a refusal.
func refused(t *testing.T, reason, uid string, code int, text string, wantCode int, want string) {
	t.Helper()
	var read struct {
		Response map[string]any `json:"response"`
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil || code != http.StatusOK {
		t.Fatalf("%s: HTTP %d, %s: %v", reason, code, text, err)
	}
	says, _ := read.Response["status"].(map[string]any)
	message, _ := says["message"].(string)
	if len(read.Response) != 3 || read.Response["uid"] != uid || read.Response["successful"] != false || says["code"] != float64(wantCode) ||
		!strings.Contains(message, want) || len(message) > maxMessage+3 || strings.ContainsAny(message, "\n\x1b") {
		t.Errorf("%s: got %s\nwant code %d and %q", reason, text, wantCode, want)
	}
}

// TestLargestBody checks C22: a request of 8 MiB is answered.
func TestLargestBody(t *testing.T) {
	ask := serve(t, NewHandler(explore.Chain{layer(ship)}, isShip, 0))
	body := document("ReviseReplica", `{"sail":"`+strings.Repeat("x", MaxBody-1000)+`"}`, `,"replicas":4`)
	body += strings.Repeat(" ", MaxBody-len(body))
	if code, text := ask("application/json", body); code != http.StatusOK || !strings.Contains(text, `"successful":true,"patch":`) || len(text) > 1000 {
		t.Errorf("HTTP %d, %.1000s", code, text)
	}
}

// TestMethods checks C22: another method than POST has no answer of the protocol.
func TestMethods(t *testing.T) {
	h := NewHandler(explore.Chain{layer(ship)}, isShip, 0)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, Path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s: HTTP %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

// TestUnsentBody checks C22: clients that are refused, and do not send their bodies, keep no other request from its answer, and lose their
// connections when the time of a request is over.
func TestUnsentBody(t *testing.T) {
	const limit = 2 * time.Second
	s := httptest.NewTLSServer(NewHandler(explore.Chain{layer(ship)}, isShip, limit))
	t.Cleanup(s.Close)
	var held []net.Conn
	for range MaxBody/minWeight + 8 {
		for _, head := range []string{"POST / HTTP/1.1\r\nContent-Type: text/plain", "PUT / HTTP/1.1\r\nContent-Type: application/json"} {
			held = append(held, beginRequest(t, s, head+"\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"))
		}
	}
	began := time.Now()
	answer, err := s.Client().Post(s.URL+Path, "application/json", strings.NewReader(document("InterpretHealth", `{}`, "")))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !bytes.Contains(body, []byte(`"successful":true`)) {
		t.Errorf("beside them, a request gets %s, %v after %s", body, err, time.Since(began))
	}
	for _, c := range held {
		if text, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(text, []byte("HTTP/1.1 ")) {
			t.Errorf("a client has %q, and its connection ends with %v", text, err)
		}
	}
}

// TestSlowClient checks C22: a client that does not send its whole request is refused when its time is over, and the server is not occupied.
func TestSlowClient(t *testing.T) {
	s := httptest.NewTLSServer(NewHandler(explore.Chain{layer(ship)}, isShip, 100*time.Millisecond))
	t.Cleanup(s.Close)
	c := beginRequest(t, s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	answer, err := io.ReadAll(c)
	if err != nil || !bytes.Contains(answer, []byte(`"successful":false,"status":{"message":"read the request: `)) {
		t.Errorf("got %s, %v", answer, err)
	}
}

// beginRequest sends the begin of a request over a connection of its own, which it returns.
func beginRequest(t *testing.T, s *httptest.Server, begin string) net.Conn {
	t.Helper()
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 10 * time.Second}, Config: s.Client().Transport.(*http.Transport).TLSClientConfig}
	c, err := dialer.DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, begin); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLimits checks C22: no request may take longer than Karmada waits at most.
func TestLimits(t *testing.T) {
	for _, row := range []struct{ given, want time.Duration }{{0, MaxTime}, {-1, MaxTime}, {time.Hour, MaxTime}, {time.Second, time.Second}} {
		if got := NewHandler(nil, isShip, row.given).(*handler).limit; got != row.want {
			t.Errorf("a limit of %s is %s, want %s", row.given, got, row.want)
		}
	}
}
