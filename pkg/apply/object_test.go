package apply

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/pkg/apierror"
	"kudo.dev/kudo/pkg/keyring"
)

// parse makes an object of YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestClasses is the order of docs/design/applying.md.
func TestClasses(t *testing.T) {
	var objs []*unstructured.Unstructured
	for _, kind := range []string{
		"apiregistration.k8s.io/v1/APIService", "apps/v1/Deployment", "rbac.authorization.k8s.io/v1/RoleBinding", "v1/ConfigMap", "apiextensions.k8s.io/v1/CustomResourceDefinition",
		"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "example.com/v1/Namespace", "rbac.authorization.k8s.io/v1/Role", "v1/Secret", "v1/Namespace", "rbac.authorization.k8s.io/v1/ClusterRoleBinding",
	} {
		i := strings.LastIndexByte(kind, '/')
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion(kind[:i])
		obj.SetKind(kind[i+1:])
		objs = append(objs, obj)
	}
	want := [][]int{{4, 9}, {3, 7, 8}, {2, 10}, {1, 6}, {0, 5}}
	if diff := cmp.Diff(want, classes(objs)); diff != "" {
		t.Errorf("classes in order, listed order within, a kind goes by its group too: %s", diff)
	}
	if diff := cmp.Diff([][]int{{0}}, classes(objs[1:2])); diff != "" {
		t.Errorf("empty classes are left out: %s", diff)
	}
}

// TestGate: the next class waits for namespaces and CRDs.
func TestGate(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
	ns := "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Nothing":     {"an object that is not there holds nothing back", "", ""},
		"New":         {"a CRD without status", crd, "CustomResourceDefinition x is not established yet"},
		"Refused":     {"Established is False", crd + "status: {conditions: [{type: Established, status: 'False'}]}", "CustomResourceDefinition x is not established yet"},
		"Accepted":    {"another condition", crd + "status: {conditions: [{type: NamesAccepted, status: 'True'}]}", "CustomResourceDefinition x is not established yet"},
		"Established": {"it can be used", crd + "status: {conditions: [{type: NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}", ""},
		"Fresh":       {"a namespace without a phase can be used", ns, ""},
		"Active":      {"it can be used", ns + "status: {phase: Active}", ""},
		"Terminating": {"it cannot", ns + "status: {phase: Terminating}", "Namespace x is Terminating"},
		"Other":       {"other kinds hold nothing back", "apiVersion: v1\nkind: ConfigMap\nstatus: {phase: Terminating}", ""},
	} {
		var live *unstructured.Unstructured
		if tc.text != "" {
			live = parse(t, tc.text)
		}
		got := ""
		if err := checkUsable(live); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

// TestHash: rule 22, what causes a write and what does not.
func TestHash(t *testing.T) {
	base := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: '1'}}\ndata: {k: v, l: w}"
	for name, tc := range map[string]struct {
		reason, text string
		same         bool
	}{
		"Order":      {"the order of keys does not count", "data: {l: w, k: v}\nkind: ConfigMap\nmetadata: {annotations: {a: '1'}, name: x}\napiVersion: v1", true},
		"Volatile":   {"what every run writes anew does not count", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: '1', kudo.dev/plan: p, kudo.dev/phase: p, kudo.dev/step: s, kudo.dev/last-plan-execution-uid: u}}\ndata: {k: v, l: w}", true},
		"Data":       {"data counts", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: '1'}}\ndata: {k: v, l: x}", false},
		"Type":       {"1 and '1' differ", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: '1'}}\ndata: {k: v, l: 1}", false},
		"Annotation": {"other annotations count, kudo's own too", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {a: '1', kudo.dev/dependencies-hash: h}}\ndata: {k: v, l: w}", false},
		"Label":      {"labels count", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, labels: {b: c}, annotations: {a: '1'}}\ndata: {k: v, l: w}", false},
	} {
		one, two := parse(t, base), parse(t, tc.text)
		if got := Hash(one, nil) == Hash(two, nil); got != tc.same {
			t.Errorf("%s: %s: equal hashes %v", name, tc.reason, got)
		}
		if diff := cmp.Diff(parse(t, tc.text), two); diff != "" {
			t.Errorf("%s: the object was changed: %s", name, diff)
		}
	}
	bare := parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}")
	noted := parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {kudo.dev/plan: p}}")
	if Hash(bare, nil) != Hash(noted, nil) {
		t.Error("no annotations and only volatile ones are the same")
	}
}

// TestHashOfSecrets is T27: it needs a key, and tells by each key and, read, by none.
func TestHashOfSecrets(t *testing.T) {
	data, err := keyring.Rotate(nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	next, _ := keyring.Rotate(data, rand.Reader)
	first, _ := keyring.Parse(data)
	rotated, _ := keyring.Parse(next)
	one := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {k: dg==}")
	two := parse(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {k: dw==}")
	old := plainHash(rendered(one))
	for name, tc := range map[string]struct {
		reason, hash string
		obj          *unstructured.Unstructured
		keys         *keyring.Ring
		want         bool
	}{
		"Same":    {"the same content", Hash(one, first), one, first, true},
		"Changed": {"another content", Hash(one, first), two, first, false},
		"Rotated": {"T28: an old key tells", Hash(one, first), one, rotated, true},
		"Dropped": {"without the key it does not", Hash(one, rotated), one, first, false},
		"NoKey":   {"what cannot be hashed is the same as nothing", Hash(one, nil), one, nil, false},
		"Old":     {"T29: one of before there were keys is read", old, one, first, true},
		"OldElse": {"T29: and tells", old, two, first, false},
	} {
		if got := SameHash(tc.hash, tc.obj, tc.keys); got != tc.want {
			t.Errorf("%s: %s: same %t, want %t", name, tc.reason, got, tc.want)
		}
	}
	if id := IDOf(one); !Keyless(id, old) || Keyless(id, Hash(one, first)) || Keyless(id, "") || Keyless(IDOf(parse(t, "apiVersion: v1\nkind: ConfigMap")), old) {
		t.Error("T29: hashes of Secrets that have no key are found")
	}
}

// TestUnchanged: rule 22, the record against the live object.
func TestUnchanged(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, uid: u, resourceVersion: '7', labels: {heritage: kudo}}"
	id := IDOf(parse(t, text))
	labels := map[string]string{"heritage": "kudo"}
	generation := strings.Replace(text, "uid: u,", "uid: u, generation: 3,", 1)
	owned := strings.Replace(generation, "uid: u,", "uid: u, managedFields: [{manager: m, operation: Apply, fieldsV1: {'f:data': {'f:k': {}}}}],", 1)
	digest := digestOf(ownerships(parse(t, owned)), "m")
	for name, tc := range map[string]struct {
		reason, live string
		known        map[ID]Record
		want         bool
	}{
		"Equal":      {"uid, hash and resourceVersion are equal", text, map[ID]Record{id: {"u", "h", "7", ""}}, true},
		"Generation": {"where there is a generation, it counts instead", generation, map[ID]Record{id: {"u", "h", "g3", ""}}, true},
		"NotVersion": {"and resourceVersion does not", generation, map[ID]Record{id: {"u", "h", "7", ""}}, false},
		"Unknown":    {"what the inventory lacks is written", text, nil, false},
		"Intent":     {"an intent is no record", text, map[ID]Record{id: {}}, false},
		"UID":        {"another object of the name", text, map[ID]Record{id: {"v", "h", "7", ""}}, false},
		"Hash":       {"another template", text, map[ID]Record{id: {"u", "i", "7", ""}}, false},
		"Edited":     {"another client edited it", text, map[ID]Record{id: {"u", "h", "6", ""}}, false},
		"Fields":     {"kudo owns the fields that it wrote", owned, map[ID]Record{id: {"u", "h", "g3", digest}}, true},
		"Taken":      {"another client has taken one, though the generation is the same", owned, map[ID]Record{id: {"u", "h", "g3", "77"}}, false},
		"NotKnown":   {"who owns what is not known", generation, map[ID]Record{id: {"u", "h", "g3", "77"}}, true},
		"Label":      {"our labels must stand", strings.Replace(text, "kudo}", "helm}", 1), map[ID]Record{id: {"u", "h", "7", ""}}, false},
	} {
		e := &Engine{mirror: &Mirror{}}
		if got := e.unchanged(parse(t, tc.live), Options{Manager: "m", Known: tc.known, Labels: labels}, id, "h"); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}

// TestPrepare: what is sent.
func TestPrepare(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Server":     {"what the server sets is left out", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, uid: u, resourceVersion: '1', generation: 2, creationTimestamp: null, selfLink: s, managedFields: [], finalizers: [f]}\nstatus: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, finalizers: [f]}"},
		"Plain":      {"stringData becomes data", secret + "stringData: {a: b}", secret + "data: {a: Yg==}"},
		"Both":       {"stringData wins, as at the server", secret + "stringData: {a: b}\ndata: {a: eA==, c: eA==}", secret + "data: {a: Yg==, c: eA==}"},
		"Empty":      {"an empty one leaves", secret + "stringData: {}", secret},
		"Null":       {"so does null", secret + "stringData: null\ndata: {a: eA==}", secret + "data: {a: eA==}"},
		"NoText":     {"the server says what is wrong with a number", secret + "stringData: {a: 1}", secret + "data: {a: 1}"},
		"OtherKind":  {"only Secrets", "apiVersion: v1\nkind: ConfigMap\nstringData: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\nstringData: {a: b}"},
		"OtherGroup": {"only the core's", "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: b}", "apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: x}\nstringData: {a: b}"},
	} {
		in := parse(t, tc.in)
		got, want := Body(in), parse(t, tc.want)
		if len(want.Object["metadata"].(map[string]any)) == 0 && got.Object["metadata"] == nil {
			delete(want.Object, "metadata")
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s: %s: %s", name, tc.reason, diff)
		}
		if diff := cmp.Diff(parse(t, tc.in).Object, in.Object); diff != "" {
			t.Errorf("%s: the rendered object was changed: %s", name, diff)
		}
	}
}

// status is an answer of the apiserver.
func status(code int32, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details}}
}

func conflict(fields ...string) error {
	details := &metav1.StatusDetails{}
	for _, f := range fields {
		details.Causes = append(details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: f, Message: `conflict with "x"`})
	}
	return status(http.StatusConflict, metav1.StatusReasonConflict, "Apply failed", details)
}

// TestAnswers: rule 15, how answers of the apiserver are told apart.
func TestAnswers(t *testing.T) {
	named := &metav1.StatusDetails{Name: "x"}
	uid := &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "metadata.uid"}}}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"None":         {"no error is nothing", nil, ""},
		"Plain":        {"an error of the network is nothing", errors.New("refused"), ""},
		"Gone":         {"404 with a name", status(404, metav1.StatusReasonNotFound, "", named), "gone"},
		"NoKind":       {"404 without a name: the kind is not served, which is unknown and not gone", status(404, metav1.StatusReasonNotFound, "", &metav1.StatusDetails{}), ""},
		"NoDetails":    {"404 without details", status(404, metav1.StatusReasonNotFound, "", nil), ""},
		"NotServed":    {"404 that is no Status, into which clients of a type put the name", apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "x", "404 page not found", 0, true), ""},
		"Wrapped":      {"404 with a name, in another error", fmt.Errorf("read it: %w", status(404, metav1.StatusReasonNotFound, "", named)), "gone"},
		"Replaced":     {"422 about the uid", status(422, metav1.StatusReasonInvalid, "", uid), "replaced"},
		"Invalid":      {"422 about a field", status(422, metav1.StatusReasonInvalid, "", &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec"}}}), ""},
		"Bare422":      {"422 of a webhook, without details", status(422, metav1.StatusReasonInvalid, "", nil), ""},
		"Unnamed":      {"500 without a reason", status(500, "", "field not declared in schema", nil), "unnamed"},
		"Unknown":      {"500 with the reason that stands for none", status(500, metav1.StatusReasonUnknown, "", nil), "unnamed"},
		"TooLarge":     {"500 without a reason, from the storage: more than it takes", status(500, "", "etcdserver: request is too large", nil), "unnamed"},
		"Leader":       {"the storage changes its leader", status(500, "", "etcdserver: leader changed", nil), ""},
		"Slow":         {"the storage is slow", status(500, metav1.StatusReasonUnknown, "rpc error: code = Unknown desc = etcdserver: request timed out", nil), ""},
		"StorageAway":  {"the storage is away", status(500, "", "rpc error: code = Unavailable desc = error reading from server: read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer", nil), ""},
		"Deadline":     {"the server has given up", status(500, "", "context deadline exceeded", nil), ""},
		"Internal":     {"500 with a reason may pass", status(500, metav1.StatusReasonInternalError, "", nil), ""},
		"Conflict":     {"409 about fields", conflict(".spec.a"), "conflicts"},
		"Metadata":     {"409 about kudo's own labels and annotations only", conflict(".metadata.labels.heritage", ".metadata.labels.kudo.dev/instance", ".metadata.annotations.kudo.dev/plan"), "conflicts metadata"},
		"Mixed":        {"409 about other fields too", conflict(".metadata.labels.heritage", ".rules"), "conflicts"},
		"OtherLabel":   {"409 about a label of others", conflict(".metadata.labels.app"), "conflicts"},
		"Precondition": {"409 without causes", status(409, metav1.StatusReasonConflict, "", named), ""},
		"Bare409":      {"409 without details", status(409, metav1.StatusReasonConflict, "", nil), ""},
		"Webhook":      {"a webhook says no, with a code of its own", status(403, metav1.StatusReasonForbidden, `admission webhook "x" denied the request: no`, nil), "denied"},
		"WebhookBare":  {"and without a reason", status(400, "", `admission webhook "x" denied the request: no`, nil), "denied"},
		"WebhookLater": {"a webhook says later", status(429, metav1.StatusReasonTooManyRequests, `admission webhook "x" denied the request: later`, nil), ""},
		"WebhookDown":  {"a webhook that cannot be called may come back", status(500, metav1.StatusReasonInternalError, `failed calling webhook "x"`, nil), ""},
		"Rights":       {"403 by RBAC may pass", status(403, metav1.StatusReasonForbidden, `configmaps "x" is forbidden`, named), ""},
	} {
		var got []string
		for _, is := range []struct {
			name string
			yes  bool
		}{
			{"gone", apierror.IsObjectNotFound(tc.err)}, {"replaced", isReplaced(tc.err, &unstructured.Unstructured{})}, {"unnamed", IsSchemaError(tc.err)},
			{"conflicts", fieldConflicts(tc.err) != nil}, {"metadata", onlyMetadata(tc.err)}, {"denied", isWebhookDenial(tc.err)},
		} {
			if is.yes {
				got = append(got, is.name)
			}
		}
		if text := strings.Join(got, " "); text != tc.want {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, text, tc.want)
		}
	}
	if isReplaced(status(422, metav1.StatusReasonInvalid, "", uid), nil) {
		t.Error("what was not there cannot have been replaced")
	}
}

// TestIsAdoptable: D10, the advice to adopt an object is given only where it is taken.
func TestIsAdoptable(t *testing.T) {
	owner := func(version, kind string, controller bool) string {
		return fmt.Sprintf("ownerReferences: [{apiVersion: %s, kind: %s, name: o, uid: u, controller: %t}]", version, kind, controller)
	}
	for _, tc := range []struct {
		reason, metadata string
		want             bool
	}{
		{"without an owner", "namespace: ns", true},
		{"of an owner that does not control it", "namespace: ns, " + owner("v1", "ConfigMap", false), true},
		{"of another Instance, such as the Secret of a Pipe whose name lacks a dash", "namespace: ns, " + owner("kudo.dev/v1beta1", "Instance", true), false},
		{"of an install plan", "namespace: ns, " + owner("kudo.dev/v1beta1", "Installation", false), false},
		{"of the cluster", "name: x", false},
	} {
		live := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: Secret, metadata: {"+tc.metadata+"}}"), &live.Object); err != nil {
			t.Fatal(err)
		}
		if got := newCollision(live, "x").Adoptable; got != tc.want {
			t.Errorf("%s: adoptable is %t", tc.reason, got)
		}
	}
}

// TestErrors: fatal is a type, also when wrapped; a collision says whose the object is and what to do.
func TestErrors(t *testing.T) {
	collision := &CollisionError{ID: ID{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}, Owner: "Instance a/b"}
	collision.ID.Namespace, collision.ID.Name = "ns", "x"
	if want := "ConfigMap ns/x exists already and belongs to Instance a/b: it was not changed. Delete or rename one of the two"; collision.Error() != want {
		t.Errorf("a collision with what is not given away says %q", collision)
	}
	collision.Adoptable = true
	want := "ConfigMap ns/x exists already and belongs to Instance a/b: it was not changed. Delete or rename one of the two, or adopt it by the annotation kudo.dev/adopt=true on the Instance (install --adopt)"
	if collision.Error() != want {
		t.Errorf("a collision says %q", collision)
	}
	fatal, passing := &FatalError{errors.New("f")}, errors.New("p")
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Fatal": {"it is", fatal, true}, "Wrapped": {"it is when wrapped", fmt.Errorf("x: %w", fatal), true},
		"Collision": {"a collision is", fmt.Errorf("x: %w", collision), true}, "Ended": {"the end of a run is not", &NamespaceTerminatingError{"ns", passing}, false},
		"Other": {"others may pass", passing, false}, "None": {"no error", nil, false},
	} {
		if got := IsFatal(tc.err); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
	set := ChangeSet{{Action: Awaited, Err: errors.New("waits")}, {Action: Failed, Err: passing}, {Action: Failed, Err: fatal}}
	if !errors.Is(set.Err(), fatal) || !errors.Is(set[:2].Err(), passing) || set[:1].Err() != nil {
		t.Error("the first final failure counts, else the first failure, and waiting is none")
	}
}

// TestSameContent: what others would see of a shared object.
func TestSameContent(t *testing.T) {
	base := "apiVersion: v1\nkind: X\nmetadata: {name: x, resourceVersion: '1', labels: {heritage: kudo, kudo.dev/instance: a, app: x}}\n"
	for name, tc := range map[string]struct {
		reason, a, b string
		want         bool
	}{
		"Kudo":      {"kudo's own metadata does not count", base, "apiVersion: v1\nkind: X\nmetadata: {name: x, labels: {app: x}, annotations: {kudo.dev/plan: p}}\n", true},
		"Label":     {"other labels do", base, "apiVersion: v1\nkind: X\nmetadata: {name: x, labels: {app: y}}\n", false},
		"Finalizer": {"so do finalizers", base, "apiVersion: v1\nkind: X\nmetadata: {name: x, labels: {app: x}, finalizers: [a]}\n", false},
		"Null":      {"an empty list, null and none are one", base + "rules: []", base + "rules: null", true},
		"None":      {"at any depth", base + "spec: [{a: []}]", base + "spec: [{}]", true},
		"EmptyMap":  {"an empty map means something", base + "selector: {}", base, false},
		"Status":    {"status does not count", base + "status: {a: b}", base, true},
		"Spec":      {"the rest does", base + "spec: {a: 1}", base + "spec: {a: 2}", false},
	} {
		if got := sameContent(parse(t, tc.a), parse(t, tc.b)); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}
