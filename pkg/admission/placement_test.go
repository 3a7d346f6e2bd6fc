package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// placeable is the spec of an OperatorVersion whose Instances are placed; placeable2 has one more immutable parameter.
const (
	placeable = `
plans: {deploy: {}}
parameters:
- {name: REPLICAS, value-type: integer, default: "6"}
- {name: REGION, default: eu-1}
- {name: NAME}
- {name: KEY, sensitive: true}
- {name: CLASS, immutable: true, default: gold}
`
	placeable2 = placeable + "- {name: DISK, immutable: true, default: ssd}\n"
)

// onHub are the OperatorVersions that a hub knows.
var onHub = Versions{
	Cache: memory{"ns/v1": placeable, "ns/v2": placeable2, "ns/v3": strings.Replace(placeable2, "gold", "silver", 1), "other/v1": placeable},
	Live:  memory{},
}

// Annotations and status that tell Instances apart, as raw takes them.
const (
	karmadaCopy = "metadata: {name: x, namespace: ns, uid: uid, annotations: {resourcetemplate.karmada.io/uid: t, " +
		"resourcetemplate.karmada.io/generation: '3', other: kept}, finalizers: [f], ownerReferences: []}\n"
	inventoryCopy = "metadata: {name: x, namespace: ns, uid: uid, annotations: {kudo.dev/template: t/3}}\n"
	freedCopy     = "metadata: {name: x, namespace: ns, uid: uid, annotations: {other: kept}}\n"
	hasRun        = "status: {planStatus: {deploy: {name: deploy, status: COMPLETE}}}\n"
)

// placedSpec returns the spec of an Instance of version v1, with parameters, and a placement if that is not empty, all in YAML.
func placedSpec(parameters, placement string) string {
	spec := "operatorVersion: {name: v1}\nparameters: {" + parameters + "}\n"
	if placement != "" {
		spec += "placement: {" + placement + "}\n"
	}
	return spec
}

const two12 = "clusters: [{name: m1, weight: 2}, {name: m2}]"

// applied returns an object after the patches of an answer.
func applied(t *testing.T, object runtime.RawExtension, answer admission.Response) map[string]any {
	t.Helper()
	text, err := json.Marshal(answer.Patches)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply(object.Raw)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(changed, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at returns what an object has below field names, or nil.
func at(object map[string]any, names ...string) any {
	var value any = object
	for _, name := range names {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}

// TestPlacementComesAndGoes checks C37: placement is neither added to what has run, nor taken out of what is placed.
func TestPlacementComesAndGoes(t *testing.T) {
	with, without := placedSpec("", two12), placedSpec("NAME: web", "")
	for _, tc := range []struct {
		reason    string
		hub       bool
		old, spec string
		rest      string
		want      string
		warning   string
	}{
		{"it is added to an Instance that has run nothing", true, without, with, "", "", ""},
		{"also in a cluster, where it is held", false, without, with, "", "", ""},
		{"it is added after runs", true, without, with, hasRun, "Instance ns/x has run plans here, and a hub would not take over what they " +
			"made: create an Instance of another name on the hub", ""},
		{"also in a cluster", false, without, with, hasRun, "spec.placement: Instance ns/x has run plans here", ""},
		{"what was placed before may have run", false, with, placedSpec("NAME: web", two12), karmadaCopy + hasRun, "", ""},
		{"it is taken out on a hub", true, with, without, "", "spec.placement: Instance ns/x runs in clusters m1, m2, and would lose them: delete " +
			"it, or set spec.placement.onDelete to Orphan, delete it, and run kubectl kudo placement free in each cluster", ""},
		{"it is taken out of a copy that Karmada manages", false, with, without, karmadaCopy, "spec.placement: a hub manages Instance ns/x: remove " +
			"the cluster from spec.placement.clusters on the hub, or set spec.placement.onDelete to Orphan there, delete the Instance there, " +
			"and run kubectl kudo placement free here", ""},
		{"also if it has run", false, with, without, karmadaCopy + hasRun, "spec.placement: a hub manages Instance ns/x", ""},
		{"it is taken out of a copy of the inventory backend", false, with, without, inventoryCopy, "a hub manages Instance ns/x", ""},
		{"it is taken out of a freed copy", false, with, without, freedCopy + hasRun, "", ""},
		{"and of one that no hub has ever placed", false, with, without, "", "", ""},
		{"without placement on a hub", true, without, placedSpec("NAME: db", ""), "", "", "spec.placement is missing, and a hub runs no plans: the " +
			"Instance runs nowhere"},
		{"without placement in a cluster", false, without, placedSpec("NAME: db", ""), "", "", ""},
	} {
		req := request(admissionv1.Update, raw(t, tc.spec, tc.rest), raw(t, tc.old, tc.rest))
		expect(t, tc.reason, (&Validator{Versions: onHub, Hub: tc.hub}).Handle(t.Context(), req), tc.want, tc.warning)
	}
}

// TestPlacementCreated checks C7 and C52 at creation: a hub refuses each placement that cannot be acted upon, and names field and remedy; a
// cluster takes what its hub has judged.
func TestPlacementCreated(t *testing.T) {
	var hundred []string
	for n := range 101 {
		hundred = append(hundred, fmt.Sprintf("{name: m%d}", n))
	}
	for _, tc := range []struct{ reason, spec, want string }{
		{"it is right", placedSpec("", two12), ""},
		{"all of it is right", placedSpec("REPLICAS: '6', REGION: eu-1", "divide: REPLICAS, clusters: [{name: m1, weight: 2}, {name: m2, "+
			"parameters: {REGION: eu-2}}], include: [{kind: Operator, name: s}], waves: {groups: [[m1]], soak: 5m, maxFailures: 1}, onDelete: Orphan"), ""},
		{"C7: the version is of another namespace", "operatorVersion: {name: v1, namespace: other}\nplacement: {" + two12 + "}\n",
			"spec.operatorVersion names other/v1, and objects of other namespaces do not follow an Instance: install the package in namespace ns"},
		{"C7: also if it does not exist", "operatorVersion: {name: v9, namespace: other}\nplacement: {" + two12 + "}\n", "install the package in namespace ns"},
		{"no cluster", placedSpec("", "clusters: []"), "spec.placement.clusters: there are 0: name 1 to 100 clusters"},
		{"too many", placedSpec("", "clusters: ["+strings.Join(hundred, ", ")+"]"), "spec.placement.clusters: there are 101"},
		{"one without a name", placedSpec("", "clusters: [{weight: 1}]"), "spec.placement.clusters[0].name: it is empty: name a cluster"},
		{"one twice", placedSpec("", "clusters: [{name: m1}, {name: m1}]"), "spec.placement.clusters[1].name: m1 is there twice: name each cluster once"},
		{"an unknown one in a group", placedSpec("", two12+", waves: {groups: [[m3]]}"), "spec.placement.waves.groups[0]: m3 is not in " +
			"spec.placement.clusters, which has m1, m2: correct the name, or add the cluster"},
		{"one in two groups", placedSpec("", two12+", waves: {groups: [[m1], [m2, m1]]}"), "spec.placement.waves.groups[1]: m1 is in two groups"},
		{"a missing parameter is divided", placedSpec("", two12+", divide: NODES"), "spec.placement.divide: the OperatorVersion has no parameter NODES"},
		{"one that is no number", placedSpec("NAME: web", two12+", divide: NAME"), `spec.placement.divide: spec.parameters.NAME is "web"`},
		{"one without a value", placedSpec("", two12+", divide: NAME"), "spec.placement.divide: spec.parameters has no value for NAME"},
		{"an immutable one", placedSpec("CLASS: '6'", two12+", divide: CLASS"), "spec.placement.divide: parameter CLASS is immutable"},
		{"a sensitive one", placedSpec("KEY: '6'", two12+", divide: KEY"), "spec.placement.divide: parameter KEY is sensitive"},
		{"one that a cluster has, too", placedSpec("REPLICAS: '6'", "divide: REPLICAS, clusters: [{name: m1, parameters: {REPLICAS: '2'}}]"),
			"spec.placement.clusters[0].parameters: REPLICAS is divided: remove it here, or from spec.placement.divide"},
		{"a share of none", placedSpec("REPLICAS: '2'", two12+", divide: REPLICAS"), "spec.placement.clusters[1].weight: the share of m2 of " +
			"REPLICAS=2 is less than 1"},
		{"a value of the wrong type", placedSpec("REPLICAS: '6'", "clusters: [{name: m1, parameters: {REPLICAS: many}}]"),
			"spec.placement.clusters[0].parameters: "},
		{"an unknown parameter of a cluster", placedSpec("", "clusters: [{name: m1, parameters: {NODES: '1'}}]"),
			"spec.placement.clusters[0].parameters: the OperatorVersion has no parameter NODES"},
		{"a value that replaces none", placedSpec("", "clusters: [{name: m1, parameters: {NAME: web}}]"),
			"spec.placement.clusters[0].parameters: spec.parameters has no value for NAME, which the value for m1 is to replace: set one"},
		{"another kind is included", placedSpec("", two12+", include: [{kind: Pod, name: p}]"), `spec.placement.include[0].kind: "Pod" must be one of`},
		{"without a name", placedSpec("", two12+", include: [{kind: Operator}]"), "spec.placement.include[0].name: it is empty"},
	} {
		req := request(admissionv1.Create, raw(t, tc.spec, ""), runtime.RawExtension{})
		missing := ""
		if tc.want == "" || !strings.Contains(tc.spec, "v9") {
			expect(t, tc.reason+", in a cluster", (&Validator{Versions: onHub}).Handle(t.Context(), req), "", warnedOf(tc.spec))
		}
		expect(t, tc.reason, (&Validator{Versions: onHub, Hub: true}).Handle(t.Context(), req), tc.want, missing)
	}
}

// warnedOf returns the warning that a spec gets in which a sensitive value stands.
func warnedOf(spec string) string {
	if strings.Contains(spec, "KEY:") {
		return "spec.parameters.KEY is sensitive"
	}
	return ""
}

// TestPlacementWarnings checks what a hub warns of at creation: an Instance that runs nowhere, and one that waits for its OperatorVersion.
func TestPlacementWarnings(t *testing.T) {
	const nowhere, waits = "spec.placement is missing, and a hub runs no plans", "OperatorVersion ns/v9 does not exist yet: the Instance waits for it"
	v9 := "operatorVersion: {name: v9}\n"
	for _, tc := range []struct {
		reason, spec string
		hub          bool
		want         []string
	}{
		{"it has a placement", placedSpec("", two12), true, nil},
		{"it has none", placedSpec("", ""), true, []string{nowhere}},
		{"nor in a cluster, where it needs none", placedSpec("", ""), false, nil},
		{"it has neither placement nor version", v9, true, []string{nowhere, waits}},
		{"it has no version", v9 + "placement: {" + two12 + "}\n", true, []string{waits}},
	} {
		got := (&Validator{Versions: onHub, Hub: tc.hub}).Handle(t.Context(), request(admissionv1.Create, raw(t, tc.spec, ""), runtime.RawExtension{}))
		if !got.Allowed || len(got.Warnings) != len(tc.want) {
			t.Errorf("%s: allowed %v with %q, want %q", tc.reason, got.Allowed, got.Warnings, tc.want)
			continue
		}
		for n, want := range tc.want {
			if !strings.Contains(got.Warnings[n], want) {
				t.Errorf("%s: warning %q, want %q", tc.reason, got.Warnings[n], want)
			}
		}
	}
}

// TestPlacementJudgedAgain checks C52: an edit is judged if a placement depends on it, and what was wrong before does not stand in the way
// of the others.
func TestPlacementJudgedAgain(t *testing.T) {
	bad := two12 + ", divide: REPLICAS"
	wrong, right := placedSpec("REPLICAS: '2'", bad), placedSpec("REPLICAS: '6'", bad)
	for _, tc := range []struct{ reason, old, spec, want string }{
		{"another request changes nothing of it", wrong, wrong + "suspend: true\n", ""},
		{"it is mended", wrong, right, ""},
		{"it is mended otherwise", wrong, placedSpec("REPLICAS: '2'", two12), ""},
		{"it becomes wrong by a value", right, wrong, "the share of m2 of REPLICAS=2 is less than 1"},
		{"a value changes, and it stays wrong", wrong, placedSpec("REPLICAS: '1'", bad), "the share of m2 of REPLICAS=1 is less than 1"},
		{"it becomes wrong by itself", right, placedSpec("REPLICAS: '6'", bad+", include: [{kind: Pod, name: p}]"), "include[0].kind"},
		{"it becomes wrong by another version", right, strings.Replace(right, "{name: v1}", "{name: v1, namespace: other}", 1), "in namespace ns"},
		{"it is right by another version", right, strings.Replace(placedSpec("REPLICAS: '6', DISK: hdd", bad), "v1", "v2", 1), ""},
		{"a wave is paused", right, placedSpec("REPLICAS: '6'", bad+", waves: {paused: true}"), ""},
		{"a cluster is taken away", right, placedSpec("REPLICAS: '6'", "clusters: [{name: m1}], divide: REPLICAS"), ""},
	} {
		req := request(admissionv1.Update, raw(t, tc.spec, ""), raw(t, tc.old, ""))
		expect(t, tc.reason, (&Validator{Versions: onHub, Hub: true}).Handle(t.Context(), req), tc.want, "")
	}
}

// TestPlacedDefaults checks C8: a hub writes the defaults of the parameters that differ between clusters, and of immutable ones, when an
// Instance is created and when it is changed.
func TestPlacedDefaults(t *testing.T) {
	const (
		divided = two12 + ", divide: REPLICAS"
		regions = "clusters: [{name: m1}, {name: m2, parameters: {REGION: eu-2}}]"
	)
	type values = map[string]any
	for _, tc := range []struct {
		reason         string
		spec           string
		hub            bool
		created, after values // spec.parameters after a creation and after an update
	}{
		{"nothing differs", placedSpec("", two12), true, values{"CLASS": "gold"}, values{"CLASS": "gold"}},
		{"one is divided", placedSpec("", divided), true, values{"CLASS": "gold", "REPLICAS": "6"}, values{"CLASS": "gold", "REPLICAS": "6"}},
		{"one has a value in a cluster", placedSpec("", regions), true, values{"CLASS": "gold", "REGION": "eu-1"}, values{"CLASS": "gold", "REGION": "eu-1"}},
		{"both", placedSpec("", regions+", divide: REPLICAS"), true, values{"CLASS": "gold", "REGION": "eu-1", "REPLICAS": "6"},
			values{"CLASS": "gold", "REGION": "eu-1", "REPLICAS": "6"}},
		{"what is set stays", placedSpec("REPLICAS: '9', CLASS: tin", divided), true, values{"CLASS": "tin", "REPLICAS": "9"},
			values{"CLASS": "tin", "REPLICAS": "9"}},
		{"also if it is empty", placedSpec("REGION: '', CLASS: tin", regions), true, values{"CLASS": "tin", "REGION": ""}, values{"CLASS": "tin", "REGION": ""}},
		{"one has no default", placedSpec("", "clusters: [{name: m1, parameters: {NAME: web}}]"), true, values{"CLASS": "gold"}, values{"CLASS": "gold"}},
		{"one is not known", placedSpec("", two12+", divide: NODES"), true, values{"CLASS": "gold"}, values{"CLASS": "gold"}},
		{"there is no placement", placedSpec("", ""), true, values{"CLASS": "gold"}, values{}},
		{"it is in a cluster", placedSpec("", regions), false, values{"CLASS": "gold"}, values{}},
		{"a source may give it", placedSpec("", divided) + "parametersFrom: [{secretRef: {name: s}}]\n", true, values{}, values{}},
		{"the version does not exist", strings.Replace(placedSpec("", divided), "v1", "v9", 1), true, values{}, values{}},
	} {
		for operation, want := range map[admissionv1.Operation]values{admissionv1.Create: tc.created, admissionv1.Update: tc.after} {
			object := raw(t, tc.spec, "unknown: {x: 1}\n")
			got := (&Defaulter{Versions: onHub, Hub: tc.hub}).Handle(t.Context(), request(operation, object, raw(t, placedSpec("", ""), "")))
			if !got.Allowed {
				t.Fatalf("%s: %+v", tc.reason, got.Result)
			}
			after := applied(t, object, got)
			if diff := cmp.Diff(any(want), at(after, "spec", "parameters")); diff != "" {
				t.Errorf("%s, %s: -want +got:\n%s", tc.reason, operation, diff)
			}
			if at(after, "metadata", "annotations") != nil || at(after, "unknown", "x") == nil {
				t.Errorf("%s, %s: a template gets no annotation, and loses nothing: %v", tc.reason, operation, after)
			}
		}
	}
	leaving := "metadata: {name: x, namespace: ns, uid: uid, deletionTimestamp: '2024-01-01T00:00:00Z', finalizers: [f]}\n"
	object := raw(t, placedSpec("", divided), leaving)
	if got := (&Defaulter{Versions: onHub, Hub: true}).Handle(t.Context(), request(admissionv1.Update, object, object)); len(got.Patches) > 0 {
		t.Errorf("an Instance that is being deleted is patched by %v", got.Patches)
	}
	down := &Defaulter{Versions: Versions{broken{}, broken{}}, Hub: true}
	if got := down.Handle(t.Context(), request(admissionv1.Update, object, object)); !got.Allowed {
		t.Errorf("one that is being deleted needs no OperatorVersion: %+v", got.Result)
	}
	changed := raw(t, placedSpec("", divided), "")
	if got := down.Handle(t.Context(), request(admissionv1.Update, changed, changed)); got.Allowed {
		t.Error("defaults that cannot be read are left out")
	}
}

// TestCopyNotes checks C9: a cluster notes which defaults it has written into a copy, and nothing else of the copy changes.
func TestCopyNotes(t *testing.T) {
	next := func(spec string) string { return strings.Replace(spec, "v1", "v2", 1) }
	for _, tc := range []struct {
		reason, spec, rest string
		operation          admissionv1.Operation
		want               any // the annotation
	}{
		{"a copy of Karmada", placedSpec("", two12), karmadaCopy, admissionv1.Create, "CLASS"},
		{"one with more defaults, by name", next(placedSpec("REGION: eu", two12)), karmadaCopy, admissionv1.Create, "CLASS,DISK"},
		{"one that has one of them", next(placedSpec("DISK: hdd", two12)), karmadaCopy, admissionv1.Create, "CLASS"},
		{"one that has all of them", placedSpec("CLASS: tin", two12), karmadaCopy, admissionv1.Create, nil},
		{"a copy of the inventory backend", placedSpec("", two12), inventoryCopy, admissionv1.Create, "CLASS"},
		{"one that is changed later", placedSpec("", two12), karmadaCopy, admissionv1.Update, nil},
		{"one without placement", placedSpec("", ""), karmadaCopy, admissionv1.Create, nil},
		{"no copy", placedSpec("", two12), freedCopy, admissionv1.Create, nil},
		{"no annotation at all", placedSpec("", two12), "", admissionv1.Create, nil},
	} {
		object := raw(t, tc.spec, tc.rest+"unknown: {x: 1}\n")
		got := (&Defaulter{Versions: onHub}).Handle(t.Context(), request(tc.operation, object, object))
		if !got.Allowed {
			t.Fatalf("%s: %+v", tc.reason, got.Result)
		}
		after := applied(t, object, got)
		if noted := at(after, "metadata", "annotations", v1beta1.DefaultedAnnotation); noted != tc.want {
			t.Errorf("%s: noted %v, want %v", tc.reason, noted, tc.want)
		}
		var before map[string]any
		if err := json.Unmarshal(object.Raw, &before); err != nil {
			t.Fatal(err)
		}
		for _, one := range []map[string]any{before, after} {
			if annotations, ok := at(one, "metadata", "annotations").(map[string]any); ok {
				delete(annotations, v1beta1.DefaultedAnnotation)
			}
			delete(one["spec"].(map[string]any), "parameters")
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: something else has changed: -before +after:\n%s", tc.reason, diff)
		}
	}
}

// admit sends a request through both webhooks of a hub, as the API server does, and returns the object as it is stored.
func admit(t *testing.T, versions Versions, operation admissionv1.Operation, object, old runtime.RawExtension) (runtime.RawExtension, error) {
	t.Helper()
	req := request(operation, object, old)
	mutated := (&Defaulter{Versions: versions, Hub: true}).Handle(t.Context(), req)
	if !mutated.Allowed {
		t.Fatalf("%+v", mutated.Result)
	}
	text, err := json.Marshal(applied(t, object, mutated))
	if err != nil {
		t.Fatal(err)
	}
	req.Object.Raw = text
	if got := (&Validator{Versions: versions, Hub: true}).Handle(t.Context(), req); !got.Allowed {
		return req.Object, errors.New(got.Result.Message)
	}
	return req.Object, nil
}

// TestPlacedThroughBoth checks C8 through both webhooks: what the first one writes is what the second one asks for.
func TestPlacedThroughBoth(t *testing.T) {
	divided := two12 + ", divide: REPLICAS"
	regions := divided + ", onDelete: Orphan"
	for _, tc := range []struct {
		reason, old, spec, want string
		parameters              map[string]string
	}{
		{"it is created with a divided default", "", placedSpec("", divided), "", map[string]string{"CLASS": "gold", "REPLICAS": "6"}},
		{"the value is taken away again: the default is divided", placedSpec("REPLICAS: '9', CLASS: gold", divided), placedSpec("CLASS: gold", regions), "",
			map[string]string{"CLASS": "gold", "REPLICAS": "6"}},
		{"placement comes later", placedSpec("CLASS: gold", ""), placedSpec("CLASS: gold", divided), "", map[string]string{"CLASS": "gold", "REPLICAS": "6"}},
		{"an immutable value is left out: it is not the default", placedSpec("CLASS: tin", two12), placedSpec("", two12), "CLASS", nil},
		{"a version with one more immutable parameter", placedSpec("CLASS: gold", two12), strings.Replace(placedSpec("CLASS: gold", two12), "v1", "v2", 1),
			"", map[string]string{"CLASS": "gold", "DISK": "ssd"}},
		{"with a source, a value has to be given", "", placedSpec("", divided) + "parametersFrom: [{secretRef: {name: s}}]\n",
			"spec.placement.divide: spec.parameters has no value for REPLICAS: set it to a whole number", nil},
		{"it is given", "", placedSpec("REPLICAS: '6'", divided) + "parametersFrom: [{secretRef: {name: s}}]\n", "", map[string]string{"REPLICAS": "6"}},
		{"the version came after the Instance", placedSpec("", two12), placedSpec("", divided), "", map[string]string{"CLASS": "gold", "REPLICAS": "6"}},
		{"and nothing else of it changes", placedSpec("", two12), placedSpec("", two12), "", map[string]string{"CLASS": "gold"}},
		{"and the Instance goes to another one", placedSpec("", two12), strings.Replace(placedSpec("", two12), "v1", "v2", 1), "",
			map[string]string{"CLASS": "gold", "DISK": "ssd"}},
		{"which has another default than clusters have fixed", placedSpec("", two12), strings.Replace(placedSpec("", two12), "v1", "v3", 1),
			"spec.parameters[CLASS]: the parameter is immutable: its value was fixed", nil},
		{"what they have fixed is given", placedSpec("", two12), strings.Replace(placedSpec("CLASS: gold", two12), "v1", "v3", 1), "",
			map[string]string{"CLASS": "gold", "DISK": "ssd"}},
		{"a value is given that they have not fixed", placedSpec("", two12), placedSpec("CLASS: tin", two12), "spec.parameters[CLASS]: ", nil},
		{"a source may have given another one", placedSpec("", two12) + "parametersFrom: [{secretRef: {name: s}}]\n", placedSpec("CLASS: gold", two12),
			"spec.parameters[CLASS]: ", nil},
	} {
		operation, old := admissionv1.Create, runtime.RawExtension{}
		if tc.old != "" {
			operation, old = admissionv1.Update, raw(t, tc.old, "")
		}
		object, err := admit(t, onHub, operation, raw(t, tc.spec, ""), old)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.reason, err, tc.want)
			continue
		}
		stored := &v1beta1.Instance{}
		if err := json.Unmarshal(object.Raw, stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.parameters, stored.Spec.Parameters); tc.want == "" && diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		stored.Namespace = "ns"
		for _, name := range clusters.ReplacedParameters(stored.Spec.Placement) {
			if _, set := stored.Spec.Parameters[name]; tc.want == "" && !set {
				t.Errorf("%s: %s has no value that an engine could replace", tc.reason, name)
			}
		}
	}
}
