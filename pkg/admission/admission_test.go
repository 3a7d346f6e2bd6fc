package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/keyring"
)

// memory is a reader of OperatorVersions, written as `<namespace>/<name>` and a spec in YAML.
type memory map[string]string

func (m memory) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	text, ok := m[key.String()]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "operatorversions"}, key.Name)
	}
	return yaml.UnmarshalStrict([]byte(text), &obj.(*v1beta1.OperatorVersion).Spec)
}

func (memory) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// broken is an apiserver that does not answer.
type broken struct{ memory }

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no answer")
}

const one = `
plans: {deploy: {phases: [{name: main, steps: [{name: all, tasks: [app]}]}]}, backup: {}, cleanup: {}}
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
templates: {app.yaml: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  text: {{ .Params.TEXT }}\n  needed: {{ .Params.NEEDED }}\n"}
parameters:
- {name: TEXT, default: x}
- {name: COUNT, value-type: integer, default: "1"}
- {name: NEEDED, required: true}
- {name: FIXED, immutable: true, default: f}
- {name: SIZE, immutable: true}
- {name: ENUM, enum: [a, b]}
`

const two = `
plans: {upgrade: {}}
parameters:
- {name: TEXT, value-type: integer}
- {name: NEEDED, required: true}
- {name: FIXED, immutable: true, default: g}
- {name: FROZEN, immutable: true, default: z}
`

var known = Versions{
	Cache: memory{"ns/v1": one, "other/v1": "plans: {deploy: {}}"},
	Live:  memory{"ns/v1": one, "ns/v2": two, "ns/nodeploy": "plans: {update: {}}"},
}

// right is the spec of an Instance that is as it should be.
const right = "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: f}\n"

// raw is an Instance with this spec, and what else a test needs, in YAML.
func raw(t *testing.T, spec, rest string) runtime.RawExtension {
	t.Helper()
	var object map[string]any
	text := "apiVersion: kudo.dev/v1beta1\nkind: Instance\n"
	if !strings.Contains(rest, "metadata:") {
		text += "metadata: {name: x, namespace: ns, uid: uid}\n"
	}
	if err := yaml.Unmarshal([]byte(text+rest), &object); err != nil {
		t.Fatal(err)
	}
	var inner map[string]any
	if err := yaml.Unmarshal([]byte(spec), &inner); err != nil {
		t.Fatal(err)
	}
	object["spec"] = inner
	out, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: out}
}

func request(operation admissionv1.Operation, object, old runtime.RawExtension) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Namespace: "ns", Object: object, OldObject: old}}
}

// expect compares an answer: want is part of the denial, "" if it is allowed; warning is part of the only warning.
func expect(t *testing.T, reason string, got admission.Response, want, warning string) {
	t.Helper()
	message := ""
	if got.Result != nil {
		message = got.Result.Message
	}
	if got.Allowed != (want == "") || !strings.Contains(message, want) {
		t.Errorf("%s: allowed %v with %q, want %q", reason, got.Allowed, message, want)
	}
	if want != "" && got.Result.Code != http.StatusForbidden {
		t.Errorf("%s: 1.5: a denial is a 403, got %d", reason, got.Result.Code)
	}
	if (warning == "") != (len(got.Warnings) == 0) || !strings.Contains(strings.Join(got.Warnings, "\n"), warning) {
		t.Errorf("%s: warnings %q, want %q", reason, got.Warnings, warning)
	}
}

// TestCreate is rules 4, 5 and 8 at creation.
func TestCreate(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want, warning string }{
		"Right":         {"all is well", right, "", ""},
		"Live":          {"rule 5: on a cache miss the OperatorVersion is read live", "operatorVersion: {name: nodeploy}", `spec.operatorVersion: OperatorVersion ns/nodeploy has no plan "deploy"`, ""},
		"Missing":       {"rule 5: with the OperatorVersion missing nothing is checked", "operatorVersion: {name: later}\nparameters: {X: w}\nplanExecution: {planName: cleanup}", "", "OperatorVersion ns/later does not exist yet: the Instance waits for it"},
		"Nameless":      {"nor without its name", "parameters: {X: w}", "", "does not exist yet"},
		"Namespace":     {"1.3: an OperatorVersion of another namespace", "operatorVersion: {name: v1, namespace: other}\nparameters: {NEEDED: v}", "spec.parameters: NEEDED not defined by OperatorVersion other/v1, which defines none", ""},
		"Unknown":       {"rule 5: an unknown parameter is denied, and what there is named", right[:len(right)-2] + ", B: x, A: x}", "spec.parameters: A, B not defined by OperatorVersion ns/v1, which defines COUNT, ENUM, FIXED, NEEDED, SIZE, TEXT: correct or remove it", ""},
		"Mistyped":      {"rule 5: a mistyped one", right[:len(right)-2] + ", COUNT: many}", `parameter "COUNT" has the value "many", which is not of type integer`, ""},
		"Enum":          {"rule 5: one that is not allowed", right[:len(right)-2] + ", ENUM: c}", `use one of "a", "b"`, ""},
		"Structure":     {"T21: a value that changes the structure of a template", right[:len(right)-2] + ", TEXT: \"x\\n---\\nkind: Secret\"}", "parameter TEXT changes the structure of template app.yaml (2 documents instead of 1): a value must stay one value; quote it in the template ({{ .Params.TEXT | quote }}), or declare the parameter as map or array and write it with toYaml", ""},
		"Words":         {"T20: any number of words is one value", right[:len(right)-2] + ", TEXT: 'some words, and more'}", "", ""},
		"Empty":         {"1.4: an empty value is accepted", right[:len(right)-2] + ", ENUM: '', COUNT: ''}", "", ""},
		"Required":      {"1.4: a required one without value", "operatorVersion: {name: v1}", `parameter "NEEDED" is required`, ""},
		"Cleanup":       {"rule 4: cleanup", right + "planExecution: {planName: cleanup, uid: u}", "plan cleanup runs only when the Instance is deleted", ""},
		"PlanExecution": {"a planExecution of a former life is harmless", right + "planExecution: {planName: gone, uid: u, status: COMPLETE}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Validator{Versions: known}
			expect(t, tc.reason, v.Handle(t.Context(), request(admissionv1.Create, raw(t, tc.spec, ""), runtime.RawExtension{})), tc.want, tc.warning)
		})
	}
}

// TestName: the name of an Instance is a label of its objects. One that is there already can be edited all the same.
func TestName(t *testing.T) {
	long := "metadata: {namespace: ns, uid: uid, name: " + strings.Repeat("x", 64) + "}\n"
	v := &Validator{Versions: known}
	for _, spec := range []string{right, "operatorVersion: {name: later}"} {
		created := v.Handle(t.Context(), request(admissionv1.Create, raw(t, spec, long), runtime.RawExtension{}))
		expect(t, "a name that is no label", created, "is longer than 63 characters", "")
	}
	edited := right[:len(right)-2] + ", TEXT: w}\n"
	expect(t, "an edit", v.Handle(t.Context(), request(admissionv1.Update, raw(t, edited, long), raw(t, right, long))), "", "")
}

// TestUpdate is rules 4, 5 and 6 for edits.
func TestUpdate(t *testing.T) {
	const (
		unknown  = "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: f, OLD: x}\n"
		mistyped = "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: f, COUNT: many}\n"
		deleting = "metadata: {name: x, namespace: ns, deletionTimestamp: '2024-01-01T00:00:00Z', finalizers: [f]}\n"
	)
	with := func(more string) string {
		return "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: f, " + more + "}\n"
	}
	next := func(more string) string {
		return "operatorVersion: {name: v2}\nparameters: {NEEDED: v, " + more + "}\n"
	}
	for name, tc := range map[string]struct{ reason, old, spec, rest, want, warning string }{
		"Right":            {"a changed parameter", right, with("TEXT: w"), "", "", ""},
		"Unknown":          {"rule 5: an unknown one that is added", right, unknown, "", "spec.parameters: OLD not defined", ""},
		"UnknownChanged":   {"rule 5: or changed", unknown, with("OLD: w"), "", "spec.parameters: OLD not defined", ""},
		"UnknownKept":      {"rule 5: one that was there is kept, ignored and warned of", unknown, with("OLD: x, TEXT: w"), "", "", "spec.parameters OLD are not defined by OperatorVersion ns/v1 and are ignored"},
		"UnknownRemoved":   {"rule 5: removing it is right", unknown, right, "", "", ""},
		"Mistyped":         {"rule 5: a mistyped one that is changed", right, mistyped, "", "not of type integer", ""},
		"MistypedKept":     {"rule 5: one that was there does not stand in the way", mistyped, with("COUNT: many, TEXT: w"), "", "", ""},
		"Structure":        {"T21: a value that changes the structure of a template", right, with("TEXT: '[x]'"), "", "parameter TEXT changes the structure of template app.yaml (data.text is a list instead of one value)", ""},
		"StructureKept":    {"T21: one that was there does not stand in the way; the run refuses it", with("TEXT: '[x]'"), with("TEXT: '[x]', COUNT: '2'"), "", "", ""},
		"StructureGone":    {"T21: nor of being mended", with("TEXT: '[x]'"), with("TEXT: x"), "", "", ""},
		"Required":         {"1.4: taking a required value away", right, "operatorVersion: {name: v1}\nparameters: {FIXED: f}", "", `parameter "NEEDED" is required`, ""},
		"Immutable":        {"rule 5: a changed immutable one", right, "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: g}", "", "spec.parameters[FIXED]: the parameter is immutable", ""},
		"ImmutableRemoved": {"rule 5: a removed one", right, "operatorVersion: {name: v1}\nparameters: {NEEDED: v}", "", "spec.parameters[FIXED]: the parameter is immutable", ""},
		"ImmutableAdded":   {"rule 5: an added one", right, with("SIZE: '1'"), "", "spec.parameters[SIZE]: the parameter is immutable", ""},
		"Gone":             {"rule 5: with the OperatorVersion gone nothing is checked", right, "operatorVersion: {name: v9}\nparameters: {X: w}", "", "", "OperatorVersion ns/v9 does not exist yet"},
		"GoneSchedule": {"what cannot be right is warned of without the OperatorVersion, too",
			right + "schedules: [{name: a, plan: deploy, cron: 0 3 * * *}]", "operatorVersion: {name: v9}\nschedules: [{name: a, plan: deploy, cron: 0 3 * * *}]",
			"", "", `spec.schedules[a] does not run: plan "deploy" cannot be scheduled`},
		"Plan":            {"rule 4: a plan", right, right + "planExecution: {planName: backup}", "", "", ""},
		"PlanMissing":     {"rule 4: that does not exist", right, right + "planExecution: {planName: nothing, uid: u}", "", `plan "nothing" does not exist in OperatorVersion ns/v1 (plans: [backup cleanup deploy])`, ""},
		"PlanCleanup":     {"rule 4: cleanup", right, right + "planExecution: {planName: cleanup}", "", "plan cleanup runs only when the Instance is deleted", ""},
		"PlanCleared":     {"rule 4: clearing is right", right + "planExecution: {planName: gone, uid: u}", right, "", "", ""},
		"PlanOther":       {"rule 4: a plan that is not asked for now is not checked", right + "planExecution: {planName: gone, uid: u}", with("TEXT: w") + "planExecution: {planName: gone, uid: u}", "", "", ""},
		"Upgrade":         {"1.5 update 4: all values are checked against the new version", right, next("FIXED: f, FROZEN: x"), "", "", ""},
		"UpgradeMistyped": {"1.5 update 4: those of before too", with("TEXT: w"), next("FIXED: f, FROZEN: x, TEXT: w"), "", "not of type integer", ""},
		"UpgradeUnknown":  {"rule 5: what the new version dropped is kept", with("COUNT: '2'"), next("FIXED: f, FROZEN: x, COUNT: '2'"), "", "", "spec.parameters COUNT are not defined by OperatorVersion ns/v2 and are ignored"},
		"UpgradeFrozen":   {"1.5 update 3: a new immutable one needs a value", right, next("FIXED: f"), "", "spec.parameters[FROZEN]: the parameter is immutable in ns/v2 and was not before", ""},
		"UpgradeFixed":    {"1.5 update 3: an old one stays", right, next("FIXED: g, FROZEN: x"), "", "spec.parameters[FIXED]: the parameter is immutable", ""},
		"UpgradeNoDeploy": {"rule 8: deploy is not needed", right, "operatorVersion: {name: nodeploy}\nparameters: {NEEDED: v, FIXED: f}", "", "", "NEEDED are not defined"},
		"Deleting":        {"rule 4: edits of spec while deleting, whatever the OperatorVersion", right, with("TEXT: w"), deleting, "the Instance is being deleted, so its spec cannot be changed", ""},
		"DeletingGone":    {"rule 4: also when the OperatorVersion does not exist", right, "operatorVersion: {name: v9}", deleting, "the Instance is being deleted", ""},
		"DeletingClear":   {"rule 4: and clearing planExecution", right + "planExecution: {planName: backup, uid: u}", right, deleting, "the Instance is being deleted", ""},
		"DeletingSame":    {"1.5: finalizers can be taken away", right, right, deleting, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Validator{Versions: known}
			got := v.Handle(t.Context(), request(admissionv1.Update, raw(t, tc.spec, tc.rest), raw(t, tc.old, "")))
			expect(t, tc.reason, got, tc.want, tc.warning)
		})
	}
}

// TestBaseline shows that edits are judged as the controller judges them: against what was acted upon.
func TestBaseline(t *testing.T) {
	hash := keyring.KeyedByUID("uid")
	status := func(b v1beta1.Baseline) string {
		text, err := yaml.Marshal(map[string]any{"status": map[string]any{"baseline": b}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := v1beta1.Baseline{OperatorVersion: "ns/v1", Parameters: map[string]string{"NEEDED": hash("v"), "FIXED": hash("f")}}
	left := v1beta1.Baseline{OperatorVersion: "ns/v1", Parameters: map[string]string{"NEEDED": hash("v")}, ImmutableDefaults: map[string]string{"FIXED": "f"}}
	wrong := "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: other}\n"
	for name, tc := range map[string]struct {
		reason    string
		acted     v1beta1.Baseline
		old, spec string
		want      string
	}{
		"SetBack":   {"an immutable parameter that was changed while the webhook was away can be set back", first, wrong, right, ""},
		"StillBad":  {"but not to another value", first, wrong, "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: third}", "spec.parameters[FIXED]"},
		"Pending":   {"1.5 update 3: the value that an upgrade lacked can be added while it waits", first, "operatorVersion: {name: v2}\nparameters: {NEEDED: v, FIXED: f}", "operatorVersion: {name: v2}\nparameters: {NEEDED: v, FIXED: f, FROZEN: x}", ""},
		"TakenBack": {"a version change that waits can be taken back", first, "operatorVersion: {name: v2}\nparameters: {NEEDED: v, FIXED: f}", right, ""},
		"Fixed":     {"rule 6: the fixed default guards what spec leaves out", left, "operatorVersion: {name: v1}\nparameters: {NEEDED: v}", "operatorVersion: {name: v1}\nparameters: {NEEDED: v, FIXED: g}", "spec.parameters[FIXED]"},
		"FixedSame": {"rule 6: writing it down is right", left, "operatorVersion: {name: v1}\nparameters: {NEEDED: v}", right, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object, old := raw(t, tc.spec, status(tc.acted)), raw(t, tc.old, status(tc.acted))
			expect(t, tc.reason, (&Validator{Versions: known}).Handle(t.Context(), request(admissionv1.Update, object, old)), tc.want, "")
		})
	}
}

// TestUnchangedSpec needs no OperatorVersion, and no apiserver.
func TestUnchangedSpec(t *testing.T) {
	v := &Validator{Versions: Versions{broken{}, broken{}}}
	labeled := "metadata: {name: x, namespace: ns, uid: uid, labels: {a: b}}\n"
	bad := "operatorVersion: {name: v1}\nparameters: {UNKNOWN: x}\nplanExecution: {planName: cleanup}"
	for _, spec := range []string{right, bad} {
		expect(t, "1.5: metadata-only edits are allowed untouched", v.Handle(t.Context(), request(admissionv1.Update, raw(t, spec, labeled), raw(t, spec, ""))), "", "")
	}
}

func TestErrors(t *testing.T) {
	down := Versions{broken{}, broken{}}
	junk := runtime.RawExtension{Raw: []byte(`{"spec": 1}`)}
	object := raw(t, right, "")
	changed := raw(t, strings.Replace(right, "v,", "m,", 1), "")
	for name, tc := range map[string]struct {
		reason  string
		handler admission.Handler
		req     admission.Request
		want    int32
	}{
		"Down":          {"an apiserver that does not answer is not a missing OperatorVersion", &Validator{Versions: down}, request(admissionv1.Create, object, junk), http.StatusInternalServerError},
		"LiveDown":      {"nor is a live read that fails", &Validator{Versions: Versions{memory{}, broken{}}}, request(admissionv1.Create, object, junk), http.StatusInternalServerError},
		"DefaulterDown": {"nor for defaults", &Defaulter{Versions: down}, request(admissionv1.Create, object, junk), http.StatusInternalServerError},
		"Junk":          {"what is no Instance is refused", &Validator{Versions: known}, request(admissionv1.Create, junk, junk), http.StatusBadRequest},
		"OldJunk":       {"also before", &Validator{Versions: known}, request(admissionv1.Update, changed, junk), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.handler.Handle(t.Context(), tc.req)
			if got.Allowed || got.Result.Code != tc.want {
				t.Errorf("%s: got %v %+v, want %d", tc.reason, got.Allowed, got.Result, tc.want)
			}
		})
	}
}

// TestDefaulter is rule 6: what the mutating webhook does to parameters.
func TestDefaulter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec string
		operation    admissionv1.Operation
		want         map[string]any // spec.parameters after; nil: no patch
	}{
		"Default":   {"rule 6: defaults of immutable parameters are recorded", "operatorVersion: {name: v1}\nparameters: {NEEDED: v}", admissionv1.Create, map[string]any{"NEEDED": "v", "FIXED": "f"}},
		"None":      {"rule 6: also when there are none yet", "operatorVersion: {name: v1}", admissionv1.Create, map[string]any{"FIXED": "f"}},
		"Live":      {"rule 5: of an OperatorVersion that the cache does not have yet", "operatorVersion: {name: v2}", admissionv1.Create, map[string]any{"FIXED": "g", "FROZEN": "z"}},
		"Set":       {"rule 6: what is set stays", right, admissionv1.Create, nil},
		"Empty":     {"rule 6: an empty value is set", "operatorVersion: {name: v1}\nparameters: {FIXED: ''}", admissionv1.Create, nil},
		"Update":    {"rule 6: only of a new Instance", "operatorVersion: {name: v1}", admissionv1.Update, nil},
		"Missing":   {"rule 5: without OperatorVersion nothing", "operatorVersion: {name: v9}", admissionv1.Create, nil},
		"Nameless":  {"nor without its name", "parameters: {A: b}", admissionv1.Create, nil},
		"Foreign":   {"rule 6: unknown parameters are the validator's", "operatorVersion: {name: v1}\nparameters: {X: w}", admissionv1.Create, map[string]any{"X": "w", "FIXED": "f"}},
		"NoExecute": {"1.5: planExecution is left alone", "operatorVersion: {name: v1}\nparameters: {FIXED: f}\nplanExecution: {planName: backup}", admissionv1.Create, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Defaulter{Versions: known}).Handle(t.Context(), request(tc.operation, raw(t, tc.spec, "unknown: {n: 1}\n"), runtime.RawExtension{}))
			if !got.Allowed {
				t.Fatalf("%s: denied: %+v", tc.reason, got.Result)
			}
			after := map[string]any{}
			for _, p := range got.Patches {
				name, inside := strings.CutPrefix(p.Path, "/spec/parameters")
				if !inside || p.Operation != "add" && p.Operation != "replace" {
					t.Errorf("%s: nothing but parameters is added: %s", tc.reason, p.Json())
				}
				if values, whole := p.Value.(map[string]any); whole {
					after = values
				} else {
					after[strings.TrimPrefix(name, "/")] = p.Value
				}
			}
			given := map[string]any{}
			var object map[string]any
			if err := json.Unmarshal(raw(t, tc.spec, "").Raw, &object); err != nil {
				t.Fatal(err)
			}
			if spec, ok := object["spec"].(map[string]any)["parameters"].(map[string]any); ok {
				given = spec
			}
			for name, value := range after {
				given[name] = value
			}
			if tc.want == nil {
				if len(got.Patches) > 0 {
					t.Errorf("%s: patched by %v", tc.reason, got.Patches)
				}
				return
			}
			if diff := cmp.Diff(tc.want, given); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDefaulterLeavesErrorsToTheSchema(t *testing.T) {
	number := raw(t, "operatorVersion: {name: v1}\nparameters: {COUNT: 3}", "")
	got := (&Defaulter{Versions: known}).Handle(t.Context(), request(admissionv1.Create, number, runtime.RawExtension{}))
	expect(t, "the schema is checked after defaults are written, and says better what is wrong with a number", got, "", "")
}

func TestDefaulterAsksNothingOnUpdate(t *testing.T) {
	got := (&Defaulter{Versions: Versions{broken{}, broken{}}}).Handle(t.Context(), request(admissionv1.Update, raw(t, right, ""), raw(t, right, "")))
	expect(t, "1.5: metadata-only edits never need the OperatorVersion", got, "", "")
}

// TestDelete checks the warnings of a foreground delete, and of claims that are deleted with their data (P24).
func TestDelete(t *testing.T) {
	guarded := "metadata: {name: x, namespace: ns, finalizers: [" + v1beta1.CleanupFinalizer + "]}\n"
	claim := "status:\n  resources: [{apiVersion: v1, kind: PersistentVolumeClaim, name: data}, {apiVersion: v1, kind: ConfigMap, name: map}]\n"
	for name, tc := range map[string]struct {
		reason, rest string
		policy       metav1.DeletionPropagation
		warning      string
	}{
		"Foreground": {"the objects would go before cleanup runs", guarded, metav1.DeletePropagationForeground, "a foreground delete removes the Instance's objects before its cleanup plan runs"},
		"Background": {"cleanup runs first", guarded, metav1.DeletePropagationBackground, ""},
		"Orphan":     {"nothing is removed", guarded, metav1.DeletePropagationOrphan, ""},
		"Default":    {"no policy", guarded, "", ""},
		"Claims":     {"data is lost", claim, "", v1beta1.ClaimsWarning + "data, unless they are annotated kudo.dev/keep=true"},
		"Orphans":    {"claims stay, too", claim, metav1.DeletePropagationOrphan, ""},
		"NoCleanup":  {"without a cleanup plan it does not matter", "", metav1.DeletePropagationForeground, ""},
	} {
		t.Run(name, func(t *testing.T) {
			options := metav1.DeleteOptions{}
			if tc.policy != "" {
				options.PropagationPolicy = &tc.policy
			}
			text, err := json.Marshal(options)
			if err != nil {
				t.Fatal(err)
			}
			req := request(admissionv1.Delete, runtime.RawExtension{}, raw(t, right, tc.rest))
			req.Options.Raw = text
			expect(t, tc.reason, (&Validator{Versions: Versions{broken{}, broken{}}}).Handle(t.Context(), req), "", tc.warning)
		})
	}
	req := request(admissionv1.Delete, runtime.RawExtension{}, raw(t, right, guarded))
	expect(t, "without options nothing is known, and a delete is never denied", (&Validator{}).Handle(t.Context(), req), "", "")
}

// TestClaims checks which objects of an Instance the warning of a deletion names, and that a long list is cut.
func TestClaims(t *testing.T) {
	resource := func(version, kind, name string) v1beta1.ResourceStatus {
		return v1beta1.ResourceStatus{APIVersion: version, Kind: kind, Namespace: "ns", Name: name}
	}
	instance := &v1beta1.Instance{}
	if got := claimsOf(instance); got != nil {
		t.Errorf("an Instance without objects has the claims %v", got)
	}
	instance.Status.Resources = []v1beta1.ResourceStatus{resource("v1", "ConfigMap", "map"), resource("v1", "PersistentVolumeClaim", "data"),
		resource("example.com/v1", "PersistentVolumeClaim", "other"), resource("apps/v1", "StatefulSet", "db")}
	if diff := cmp.Diff([]string{"data"}, claimsOf(instance)); diff != "" {
		t.Error(diff)
	}
	for range maxNames {
		instance.Status.Resources = append(instance.Status.Resources, resource("v1", "PersistentVolumeClaim", "more"))
	}
	old, err := json.Marshal(instance)
	if err != nil {
		t.Fatal(err)
	}
	req := request(admissionv1.Delete, runtime.RawExtension{}, runtime.RawExtension{Raw: old})
	req.Options.Raw = []byte("{}")
	got := deletion(req)
	if !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "more and 1 more, unless") {
		t.Errorf("the answer is %v", got)
	}
}

func TestManyNames(t *testing.T) {
	var defs []v1beta1.Parameter
	for i := range 25 {
		defs = append(defs, v1beta1.Parameter{Name: string(rune('a' + i))})
	}
	if got := names(defs); !strings.HasSuffix(got, ", t and 5 more") {
		t.Errorf("a long list is cut: %s", got)
	}
	if got := (types.NamespacedName{Namespace: "ns", Name: "v1"}); baselineVersion(&v1beta1.Instance{Status: v1beta1.InstanceStatus{Baseline: &v1beta1.Baseline{OperatorVersion: got.String()}}}) != got {
		t.Error("the version of a baseline is read back as it was written")
	}
}
