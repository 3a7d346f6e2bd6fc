package operatorversion

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/content"
	"kudo.dev/kudo/pkg/controllers/loop"
	"kudo.dev/kudo/pkg/keyring"
)

func TestState(t *testing.T) {
	installation := &v1beta1.Installation{}
	terminating := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.Now())}}
	for _, tc := range []struct {
		reason string
		o      observation
		want   state
	}{
		{"it was released", observation{deleted: true, hasPlan: true, installation: installation}, released},
		{"what it installed is to be released", observation{deleted: true, finalizer: true, hasPlan: true, installation: installation}, releasing},
		{"there is nothing to release, but for the finalizer", observation{deleted: true, finalizer: true}, releasing},
		{"a deletion needs no key", observation{deleted: true, finalizer: true, keyMissing: "no key"}, releasing},
		{"it never had an install plan", observation{}, unmanaged},
		{"it never had one, and needs no key", observation{keyMissing: "no key"}, unmanaged},
		{"it had an install plan, and holds what that installed", observation{installation: installation}, idle},
		{"the key is missing", observation{hasPlan: true, keyMissing: "no key"}, keyMissing},
		{"the key is missing while the Installation is being deleted", observation{hasPlan: true, keyMissing: "no key", installation: terminating}, keyMissing},
		{"the Installation is being deleted", observation{hasPlan: true, installation: terminating, cause: "created", running: true}, installationReleasing},
		{"policies refuse the package", observation{hasPlan: true, packageRefusal: "not signed", cause: "created"}, packageRefused},
		{"policies refuse the package while it runs", observation{hasPlan: true, packageRefusal: "not signed", running: true}, packageRefused},
		{"policies refuse what is installed", observation{hasPlan: true, packageRefusal: "not signed", installation: installation}, packageRefused},
		{"policies do not hold up a deletion", observation{deleted: true, finalizer: true, packageRefusal: "not signed"}, releasing},
		{"policies refuse a package without an install plan, which installs nothing", observation{packageRefusal: "not signed"}, unmanaged},
		{"the spec is refused", observation{hasPlan: true, refusal: "no such plan", installation: installation}, specRefused},
		{"the spec is refused while a plan runs", observation{hasPlan: true, refusal: "no such plan", running: true}, specRefused},
		{"the spec is refused after a run that failed", observation{hasPlan: true, refusal: "no such plan", failed: true}, specRefused},
		{"it was created", observation{hasPlan: true, cause: "created"}, startDue},
		{"spec was changed while a plan runs", observation{hasPlan: true, cause: "changed", running: true}, startDue},
		{"a retry is asked for", observation{hasPlan: true, cause: "retry", failed: true}, startDue},
		{"a plan runs", observation{hasPlan: true, running: true}, running},
		{"a plan runs that spec does not name anymore", observation{installation: installation, running: true}, running},
		{"the last run has failed", observation{hasPlan: true, failed: true}, failed},
		{"the last run has succeeded", observation{hasPlan: true, installation: installation}, idle},
	} {
		if got := tc.o.state(); got != tc.want {
			t.Errorf("%s: state %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestUnknownState: a state without an action is an error.
func TestUnknownState(t *testing.T) {
	a := &action{Object: loop.NewObject(nil, nil, nil, &v1beta1.OperatorVersion{})}
	if err := a.act(t.Context(), "odd"); err == nil {
		t.Error("an unknown state is no error")
	}
}

func ring(t *testing.T) *keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(map[string][]byte{"current": []byte("1"), "1": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// version returns an OperatorVersion whose install plan has the status.
func version(st v1beta1.PlanStatus, modify func(*v1beta1.OperatorVersion)) *v1beta1.OperatorVersion {
	ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{UID: "ov", Generation: 1}}
	ov.Spec.InstallPlan, ov.Spec.Plans = "install", map[string]v1beta1.Plan{"install": {}, "deploy": {}}
	ov.Spec.Parameters = []v1beta1.Parameter{{Name: "SIZE"}}
	ov.Status.ObservedGeneration, ov.Status.InstallationUID = 1, "installation"
	if st.Status != "" {
		st.Name, st.Revision, st.UID = "install", 1, "run"
		ov.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": st}
	}
	if modify != nil {
		modify(ov)
	}
	return ov
}

func TestStartCause(t *testing.T) {
	keys := ring(t)
	complete, fatal, runs := v1beta1.PlanStatus{Status: v1beta1.Complete}, v1beta1.PlanStatus{Status: v1beta1.FatalError}, v1beta1.PlanStatus{Status: v1beta1.InProgress}
	digest := func(ov *v1beta1.OperatorVersion) { ov.Status.InputsHash = keys.Digest(runInputs(ov)...) }
	signed := func(ov *v1beta1.OperatorVersion) {
		digest(ov)
		ov.Status.Content, _ = content.Digest(ov)
		ov.Generation, ov.Spec.Provenance = 2, &v1beta1.Provenance{Signatures: []string{"{}"}}
	}
	installation := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{UID: "installation"}}
	for _, tc := range []struct {
		reason       string
		ov           *v1beta1.OperatorVersion
		installation *v1beta1.Installation
		want         string
	}{
		{"it never ran", version(v1beta1.PlanStatus{}, nil), nil, "OperatorVersion created"},
		{"it runs", version(runs, digest), installation, ""},
		{"it runs, and spec has changed", version(runs, func(ov *v1beta1.OperatorVersion) { ov.Generation = 2 }), installation, "OperatorVersion changed"},
		{"it runs, and its provenance has changed (S17)", version(runs, signed), installation, ""},
		{"it has failed, and its provenance has changed (S17)", version(fatal, signed), installation, ""},
		{"it runs, and its provenance and a template have changed", version(runs, func(ov *v1beta1.OperatorVersion) {
			signed(ov)
			ov.Spec.Templates = map[string]string{"a.yaml": "x"}
		}), installation, "OperatorVersion changed"},
		{"it has failed, and its parameters have changed, which are no content", version(fatal, func(ov *v1beta1.OperatorVersion) {
			signed(ov)
			ov.Spec.InstallParameters = map[string]string{"SIZE": "2"}
		}), installation, "OperatorVersion changed"},
		{"it has failed", version(fatal, digest), installation, ""},
		{"it has failed, and spec has changed", version(fatal, func(ov *v1beta1.OperatorVersion) { ov.Generation = 2 }), installation, "OperatorVersion changed"},
		{"it has failed, and a retry of that run is asked for", version(fatal, func(ov *v1beta1.OperatorVersion) {
			ov.Annotations = map[string]string{v1beta1.RetryAnnotation: "run"}
		}), installation, "retry of run 1"},
		{"it has failed, and a retry of another run was asked for", version(fatal, func(ov *v1beta1.OperatorVersion) {
			ov.Annotations = map[string]string{v1beta1.RetryAnnotation: "other"}
		}), installation, ""},
		{"it has succeeded", version(complete, digest), installation, ""},
		{"it has succeeded, and what was edited is no input", version(complete, func(ov *v1beta1.OperatorVersion) {
			digest(ov)
			ov.Generation, ov.Spec.Templates = 2, map[string]string{"a.yaml": "x"}
		}), installation, ""},
		{"it has succeeded, and its parameters have changed", version(complete, func(ov *v1beta1.OperatorVersion) {
			digest(ov)
			ov.Spec.InstallParameters = map[string]string{"SIZE": "2"}
		}), installation, "installPlan or installParameters changed"},
		{"a digest without a key is compared", version(complete, func(ov *v1beta1.OperatorVersion) { ov.Status.InputsHash = keyless(runInputs(ov)) }), installation, ""},
		{"a digest of a key that is lost counts as that of spec, if spec was seen", version(complete, func(ov *v1beta1.OperatorVersion) { ov.Status.InputsHash = "9.0123" }), installation, ""},
		{"a digest of a key that is lost counts as another one, if spec was not seen", version(complete, func(ov *v1beta1.OperatorVersion) {
			ov.Status.InputsHash, ov.Generation = "9.0123", 2
		}), installation, "installPlan or installParameters changed"},
		{"its Installation was deleted", version(complete, digest), nil, "to restore its Installation, which was removed"},
		{"its Installation was deleted and created again", version(complete, digest), &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, "to restore its Installation, which was removed"},
		{"its Installation was deleted while it runs", version(runs, digest), nil, ""},
	} {
		if got := startCause(tc.ov, tc.installation, keys); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}

func TestRefusalOf(t *testing.T) {
	for _, tc := range []struct {
		reason string
		modify func(*v1beta1.OperatorVersion)
		want   string
	}{
		{"it can be run", nil, ""},
		{"Instances run the plan", func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = "deploy" },
			`spec.installPlan is "deploy", which Instances run: give the install plan a name of its own, such as install`},
		{"there is no such plan", func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallPlan = "prepare" },
			`spec.installPlan is "prepare", and there is no plan of the name: it has [deploy install]`},
		{"there is no such parameter", func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = map[string]string{"COUNT": "2"} },
			"spec.installParameters.COUNT is not defined in spec.parameters: correct its name"},
		{"a parameter without a value is one that Instances need", func(ov *v1beta1.OperatorVersion) {
			ov.Spec.Parameters = append(ov.Spec.Parameters, v1beta1.Parameter{Name: "PASSWORD", Required: ptr.To(true)})
		}, ""},
	} {
		if got := refusalOf(version(v1beta1.PlanStatus{}, tc.modify)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
		}
	}
}
