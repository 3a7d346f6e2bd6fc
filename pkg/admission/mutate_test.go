package admission

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
)

// ringKeys are keys that are always there; nil means that none can be read.
type ringKeys struct{ ring *keyring.Ring }

func (k ringKeys) Ring(context.Context) (*keyring.Ring, error) {
	if k.ring == nil {
		return nil, errors.New("no answer")
	}
	return k.ring, nil
}

func newRing(t *testing.T) *keyring.Ring {
	t.Helper()
	ring, err := keyring.Parse(map[string][]byte{"current": []byte("1"), "1": []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// setAnnotations puts the annotations that patches add into an Instance.
func setAnnotations(t *testing.T, i *v1beta1.Instance, patches []jsonpatch.JsonPatchOperation) {
	t.Helper()
	i.Annotations = maps.Clone(i.Annotations)
	if i.Annotations == nil {
		i.Annotations = map[string]string{}
	}
	for _, p := range patches {
		name, inside := strings.CutPrefix(p.Path, "/metadata/annotations")
		if all, whole := p.Value.(map[string]any); inside && whole {
			for key, value := range all {
				i.Annotations[key], _ = value.(string)
			}
		} else if inside {
			i.Annotations[strings.ReplaceAll(strings.TrimPrefix(name, "/"), "~1", "/")], _ = p.Value.(string)
		}
	}
}

// TestSetRequester: the user is written into what asks for something, sealed for the generation that the API server gives to the edit.
func TestSetRequester(t *testing.T) {
	at := func(annotations string) string {
		return "metadata: {name: x, namespace: ns, uid: uid, generation: 4, annotations: {a: b" + annotations + "}}\n"
	}
	const suspended = right + "suspend: true\n"
	ring := newRing(t)
	for name, tc := range map[string]struct {
		operation  admissionv1.Operation
		spec, rest string
		generation int64
		keys       *keyring.Ring
		user       string
		// ofSpec and ofRun say that these requests are of the user; else nothing is patched.
		ofSpec, ofRun bool
	}{
		"Create":      {operation: admissionv1.Create, spec: right, rest: "metadata: {name: x}\n", generation: 1, keys: ring, user: "ann", ofSpec: true},
		"Spec":        {operation: admissionv1.Update, spec: suspended, rest: at(""), generation: 5, keys: ring, user: "ann", ofSpec: true},
		"Forged":      {operation: admissionv1.Update, spec: suspended, rest: at(", kudo.dev/requested-by: admin"), generation: 5, keys: ring, user: "ann", ofSpec: true},
		"Retry":       {operation: admissionv1.Update, spec: right, rest: at(", kudo.dev/retry-run: u"), generation: 4, keys: ring, user: "ann", ofRun: true},
		"Cancel":      {operation: admissionv1.Update, spec: right, rest: at(", kudo.dev/cancel-run: u"), generation: 4, keys: ring, user: "ann", ofRun: true},
		"Both":        {operation: admissionv1.Update, spec: suspended, rest: at(", kudo.dev/cancel-run: u"), generation: 5, keys: ring, user: "ann", ofSpec: true, ofRun: true},
		"Metadata":    {operation: admissionv1.Update, spec: right, rest: at(", other: c"), keys: ring, user: "ann"},
		"No keys":     {operation: admissionv1.Update, spec: suspended, rest: at(""), user: "ann"},
		"No user":     {operation: admissionv1.Update, spec: suspended, rest: at(""), keys: ring},
		"No metadata": {operation: admissionv1.Create, spec: right, rest: "metadata:\n", keys: ring, user: "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			req := request(tc.operation, raw(t, tc.spec, tc.rest), runtime.RawExtension{})
			if tc.operation == admissionv1.Update {
				req.OldObject = raw(t, right, at(""))
			}
			req.UserInfo.Username = tc.user
			got := (&Defaulter{Versions: known, Keys: ringKeys{tc.keys}}).Handle(t.Context(), req)
			if !got.Allowed {
				t.Fatalf("denied: %+v", got.Result)
			}
			if !tc.ofSpec && !tc.ofRun && len(got.Patches) > 0 {
				t.Errorf("patched by %v", got.Patches)
			}
			stored := &v1beta1.Instance{}
			if err := json.Unmarshal(req.Object.Raw, stored); err != nil {
				t.Fatal(err)
			}
			stored.Namespace, stored.UID, stored.Generation = "ns", "uid", tc.generation
			setAnnotations(t, stored, got.Patches)
			for annotation, is := range map[string]bool{v1beta1.RequestedByAnnotation: tc.ofSpec, v1beta1.RunRequestedByAnnotation: tc.ofRun} {
				if user := ring.Requester(annotation, stored); is && user != tc.user || !is && user != "" {
					t.Errorf("%s names %q, by %q", annotation, user, stored.Annotations[annotation])
				}
			}
		})
	}
}

// TestClientOf checks that the name of the client follows the name of the user, and that it cannot add a user to the list (P28).
func TestClientOf(t *testing.T) {
	for _, tc := range []struct{ reason, options, want string }{
		{"no options", ``, ""},
		{"no field manager", `{"kind":"PatchOptions"}`, ""},
		{"a command of the plugin", `{"kind":"PatchOptions","fieldManager":"kubectl-kudo/update"}`, " with kubectl kudo update"},
		{"one of two words", `{"fieldManager":"kubectl-kudo/plan/retry"}`, " with kubectl kudo plan retry"},
		{"another client", `{"fieldManager":"kubectl-edit"}`, " with kubectl-edit"},
		{"a sentence in place of a command", `{"fieldManager":"kubectl-kudo/update/by/bob"}`, " with kubectl-kudo/update/by/bob"},
		{"another user", `{"fieldManager":"x, bob"}`, ""},
		{"a sentence", `{"fieldManager":"x by bob"}`, ""},
		{"control characters", `{"fieldManager":"x\u001b[31m"}`, ""},
		{"a line", `{"fieldManager":"x\n"}`, ""},
		{"a long name", `{"fieldManager":"` + strings.Repeat("x", 65) + `"}`, ""},
		{"options that are none", `[]`, ""},
	} {
		req := request(admissionv1.Update, runtime.RawExtension{}, runtime.RawExtension{})
		req.Options.Raw = []byte(tc.options)
		if got := clientOf(req); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
