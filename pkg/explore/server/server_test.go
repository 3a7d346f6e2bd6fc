package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"kudo.dev/kudo/apis/config/v1alpha1"
)

// typed knows few of an object's fields, and always writes some that it may not have.
type typed struct {
	Spec struct {
		Replicas *int64            `json:"replicas,omitempty"`
		Labels   map[string]string `json:"labels"`
		Items    []item            `json:"items,omitempty"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase,omitempty"`
	} `json:"status"`
}

type item struct {
	Name string `json:"name,omitempty"`
	Size int    `json:"size"`
}

func requestOf(object string) *Request {
	return &Request{v1alpha1.ExploreRequest{UID: "u", Operation: v1alpha1.ExplorePacking, Object: runtime.RawExtension{Raw: []byte(object)}}}
}

// apply applies the patch of a response, as kudo does.
func apply(t testing.TB, object string, response *v1alpha1.ExploreResponse) any {
	t.Helper()
	text := []byte(object)
	if len(response.Patch) > 0 {
		if response.PatchType == nil || *response.PatchType != v1alpha1.PatchTypeJSONPatch {
			t.Fatal("the patch needs its type")
		}
		patch, err := jsonpatch.DecodePatch(response.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = patch.Apply(text); err != nil {
			t.Fatalf("%s does not fit %s: %v", response.Patch, object, err)
		}
	}
	var out any
	if err := utiljson.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func parse(t testing.TB, text string) any {
	t.Helper()
	var out any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPatch leaves alone what the type does not know.
func TestPatch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object string
		change         func(*typed)
		want           string
	}{
		"Nothing":    {"no change is no patch", `{"x":1,"spec":{}}`, func(*typed) {}, `{"x":1,"spec":{}}`},
		"Unknown":    {"unknown fields survive", `{"x":1,"spec":{"y":{"z":[1]},"replicas":1}}`, func(o *typed) { *o.Spec.Replicas = 2 }, `{"x":1,"spec":{"y":{"z":[1]},"replicas":2}}`},
		"Remove":     {"a known field goes", `{"spec":{"y":1,"replicas":1}}`, func(o *typed) { o.Spec.Replicas = nil }, `{"spec":{"y":1}}`},
		"Absent":     {"a struct that the object does not have is made, without the type's defaults", `{"spec":{}}`, func(o *typed) { o.Status.Phase = "Ready" }, `{"spec":{},"status":{"phase":"Ready"}}`},
		"NullMap":    {"a map that is null is made", `{"spec":{"labels":null}}`, func(o *typed) { o.Spec.Labels = map[string]string{"a/b~c": "d"} }, `{"spec":{"labels":{"a/b~c":"d"}}}`},
		"Big":        {"whole numbers keep 64 bits", `{"spec":{"replicas":9007199254740993,"n":9007199254740993}}`, func(o *typed) { *o.Spec.Replicas-- }, `{"spec":{"replicas":9007199254740992,"n":9007199254740993}}`},
		"Entry":      {"an entry of a list keeps its unknown fields", `{"spec":{"items":[{"name":"a","size":1,"u":1},{"name":"b","size":2,"u":2}]}}`, func(o *typed) { o.Spec.Items[1].Size = 3 }, `{"spec":{"items":[{"name":"a","size":1,"u":1},{"name":"b","size":3,"u":2}]}}`},
		"Prepend":    {"also where it moves", `{"spec":{"items":[{"name":"a","size":1,"u":1}]}}`, func(o *typed) { o.Spec.Items = append([]item{{"n", 0}}, o.Spec.Items...) }, `{"spec":{"items":[{"name":"n","size":0},{"name":"a","size":1,"u":1}]}}`},
		"DropFirst":  {"also where one before it goes", `{"spec":{"items":[{"name":"a","size":1},{"name":"b","size":2,"u":2}]}}`, func(o *typed) { o.Spec.Items = o.Spec.Items[1:] }, `{"spec":{"items":[{"name":"b","size":2,"u":2}]}}`},
		"Nameless":   {"entries without names pair by place", `{"spec":{"items":[{"size":1,"u":1},{"size":1,"u":2}]}}`, func(o *typed) { o.Spec.Items[1].Size = 5 }, `{"spec":{"items":[{"size":1,"u":1},{"size":5,"u":2}]}}`},
		"Renamed":    {"an entry of another name is another", `{"spec":{"items":[{"name":"a","size":1,"u":1}]}}`, func(o *typed) { o.Spec.Items[0].Name = "b" }, `{"spec":{"items":[{"name":"b","size":1}]}}`},
		"RemoveList": {"a list goes as a whole", `{"spec":{"items":[{"size":1}],"y":null}}`, func(o *typed) { o.Spec.Items = nil }, `{"spec":{"y":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := requestOf(tc.object)
			var before, after typed
			if err := errors.Join(r.Decode(&before), r.Decode(&after)); err != nil {
				t.Fatal(err)
			}
			tc.change(&after)
			response, err := r.Patch(&before, &after)
			if err != nil {
				t.Fatal(err)
			}
			if name == "Nothing" && response.Patch != nil {
				t.Errorf("%s: got %s", tc.reason, response.Patch)
			}
			if diff := cmp.Diff(parse(t, tc.want), apply(t, tc.object, response)); diff != "" {
				t.Errorf("%s: -want +got:\n%s\n%s", tc.reason, diff, response.Patch)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	r := requestOf(`{"apiVersion":"v1","kind":"X","n":9007199254740993}`)
	var u unstructured.Unstructured
	var m map[string]any
	if err := errors.Join(r.Decode(&u), r.Decode(&m)); err != nil {
		t.Fatal(err)
	}
	if u.Object["n"] != int64(9007199254740993) || m["n"] != int64(9007199254740993) {
		t.Errorf("whole numbers are int64: got %v and %v", u.Object["n"], m["n"])
	}
	if err := r.DecodeObserved(&m); err == nil || !strings.Contains(err.Error(), "observedObject") {
		t.Errorf("an object that is not there: got %v", err)
	}
}

// TestServe is what comes back over HTTP.
func TestServe(t *testing.T) {
	hook := Operations{
		v1alpha1.ExploreHealthy: func(context.Context, *Request) (*v1alpha1.ExploreResponse, error) { return Healthy(true, ""), nil },
		v1alpha1.ExploreStatus:  func(context.Context, *Request) (*v1alpha1.ExploreResponse, error) { return nil, errors.New("no way") },
		v1alpha1.ExplorePacking: func(context.Context, *Request) (*v1alpha1.ExploreResponse, error) { panic("oops") },
		v1alpha1.ExploreReplica: func(context.Context, *Request) (*v1alpha1.ExploreResponse, error) { return nil, nil },
		v1alpha1.ExploreRetaining: func(context.Context, *Request) (*v1alpha1.ExploreResponse, error) {
			return &v1alpha1.ExploreResponse{Status: &runtime.RawExtension{Raw: []byte("{")}}, nil
		},
	}
	ask := func(operation string) string {
		return `{"apiVersion":"config.kudo.dev/v1alpha1","kind":"ExploreReview","request":{"uid":"u","operation":"` + operation + `","object":{}}}`
	}
	for name, tc := range map[string]struct {
		reason, method, contentType string
		body                        io.Reader
		code                        int
		want                        string
	}{
		"Answer":     {"an answer", "POST", "application/json; charset=utf-8", strings.NewReader(ask("ExploreHealthy")), 200, `{"kind":"ExploreReview","apiVersion":"config.kudo.dev/v1alpha1","response":{"uid":"u","healthy":true}}`},
		"Error":      {"an error refuses", "POST", "application/json", strings.NewReader(ask("ExploreStatus")), 200, `"uid":"u","result":{"metadata":{},"status":"Failure","message":"no way"}`},
		"Panic":      {"and so does a panic", "POST", "application/json", strings.NewReader(ask("ExplorePacking")), 200, "the webhook panicked: oops"},
		"Nil":        {"and no response", "POST", "application/json", strings.NewReader(ask("ExploreReplica")), 200, "returned no response"},
		"Unwritable": {"and one that is no JSON", "POST", "application/json", strings.NewReader(ask("ExploreRetaining")), 200, `"status":"Failure"`},
		"Unknown":    {"and a question that the server does not answer", "POST", "application/json", strings.NewReader(ask("ExploreDependencies")), 200, "does not answer ExploreDependencies: it answers [ExploreHealthy"},
		"Get":        {"another method", "GET", "application/json", nil, 405, "want POST"},
		"Type":       {"another type", "POST", "text/plain", strings.NewReader(ask("ExploreHealthy")), 415, "application/json"},
		"Garbage":    {"garbage", "POST", "application/json", strings.NewReader("<"), 400, "no ExploreReview"},
		"Null":       {"nothing", "POST", "application/json", strings.NewReader("null"), 400, "want an ExploreReview"},
		"Version":    {"another version", "POST", "application/json", strings.NewReader(strings.Replace(ask("ExploreHealthy"), "v1alpha1", "v2", 1)), 400, "config.kudo.dev/v1alpha1"},
		"Huge":       {"too much", "POST", "application/json", bytes.NewReader(make([]byte, maxRequest+1)), 413, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(tc.method, "/", tc.body)
			request.Header.Set("Content-Type", tc.contentType)
			w := httptest.NewRecorder()
			hook.ServeHTTP(w, request)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s: got %d %s: want %d %s", tc.reason, w.Code, w.Body, tc.code, tc.want)
			}
			if tc.code == http.StatusOK && w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: Content-Type is %q", tc.reason, w.Header().Get("Content-Type"))
			}
		})
	}
}

// FuzzPatch: whatever differs between two objects, the patch turns the one into the other.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":[1,2,{"name":"x","b":null}],"c~/d":{}}`, `{"a":[{"name":"x","b":1},1],"e":9007199254740993}`)
	f.Add(`{"":{"":0}}`, `{"":{}}`)
	f.Fuzz(func(t *testing.T, before, after string) {
		var was, is map[string]any
		if utiljson.Unmarshal([]byte(before), &was) != nil || utiljson.Unmarshal([]byte(after), &is) != nil || was == nil || is == nil {
			return
		}
		// Keys that are no UTF-8, or huge numbers, are written in another way than they were read.
		clean, _ := json.Marshal(was)
		cleanAfter, _ := json.Marshal(is)
		r := requestOf(string(clean))
		response, err := r.Patch(was, is)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parse(t, string(cleanAfter)), apply(t, string(clean), response)); diff != "" {
			t.Errorf("%s\n%s", response.Patch, diff)
		}
	})
}
