package preview

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// TestComputeVersions checks what a preview says of OperatorVersions without an Instance: those that are created, with their install plans,
// and those that exist, which install keeps and apply replaces.
func TestComputeVersions(t *testing.T) {
	former := shared("web-0.1.0")
	former.Spec.InstallParameters = map[string]string{"VALUE": "former"}
	changed := shared("web-0.1.0")
	changed.Spec.Version = "0.2.0"
	for name, tc := range map[string]struct {
		reason string
		there  *v1beta1.OperatorVersion
		keeps  bool
		refuse bool
		want   []string
	}{
		"New":        {"its install plan runs", nil, true, false, []string{"plan install", "create OperatorVersion ns/web-0.1.0", "create ConfigMap apps/common"}},
		"Same":       {"nothing is installed again", shared("web-0.1.0"), false, false, []string{"unchanged OperatorVersion ns/web-0.1.0"}},
		"Kept":       {"install uses the one that exists", changed, true, false, []string{"unchanged OperatorVersion ns/web-0.1.0"}},
		"Replaced":   {"its plan has not succeeded and runs again, and what the change does to others is unknown", changed, false, false, []string{"plan install", "change OperatorVersion ns/web-0.1.0 .spec.version: 0.2.0 -> ", "create ConfigMap apps/common", "unknown: what the change"}},
		"Refused":    {"admission refuses it", nil, true, true, []string{"refused: ", "create OperatorVersion ns/web-0.1.0"}},
		"Parameters": {"install changes the parameters of one that exists, and its plan runs again", former, true, false, []string{"plan install", "change OperatorVersion ns/web-0.1.0 .spec.installParameters.VALUE: former -> new", "keep ConfigMap apps/former", "create ConfigMap apps/common"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}})
			if tc.there != nil {
				tc.there.UID = l.Put(tc.there.DeepCopy()).GetUID()
			}
			l.watchWrites(func(r apitest.Request) (any, error) {
				if tc.refuse && r.Kind == "OperatorVersion" && r.Verb == "create" {
					return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "create", v1beta1.GroupVersion.WithResource("operatorversions").GroupResource(), r.Name, "no", 0, true)
				}
				return nil, nil
			})
			wanted := shared("web-0.1.0")
			if tc.there == former {
				wanted.Spec.InstallParameters = map[string]string{"VALUE": "new"}
			}
			if tc.there == former { // an object that the plan does not name any more
				held := &v1beta1.Installation{ObjectMeta: metav1.ObjectMeta{Name: former.InstallationName()}}
				held.Status.Resources = []v1beta1.HeldResource{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "apps", Name: "former", State: v1beta1.HoldExisting}}
				l.Put(held)
				l.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "former"}})
			}
			p, err := ComputeVersions(t.Context(), l.options(), "install", []*v1beta1.OperatorVersion{wanted}, tc.keeps)
			if err != nil {
				t.Fatal(err)
			}
			got := brief(p)
			for i := range min(len(got), len(tc.want)) {
				if strings.HasPrefix(got[i], tc.want[i]) {
					got[i] = tc.want[i]
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.Subject != "OperatorVersion ns/web-0.1.0" {
				t.Errorf("%s: %s%+v", tc.reason, diff, p)
			}
		})
	}
}

// TestComputeVersionsUnread checks that a user who may not read OperatorVersions learns so.
func TestComputeVersionsUnread(t *testing.T) {
	l := newLab(t)
	l.watchWrites(func(r apitest.Request) (any, error) {
		if r.Kind == "OperatorVersion" {
			return nil, apierrors.NewForbidden(v1beta1.GroupVersion.WithResource("operatorversions").GroupResource(), r.Name, nil)
		}
		return nil, nil
	})
	p, err := ComputeVersions(t.Context(), l.options(), "apply", []*v1beta1.OperatorVersion{shared("web-0.1.0")}, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Count(Unknown) != 1 || p.Fails() {
		t.Errorf("got %q", brief(p))
	}
}

// TestInstallSecretsAreMasked checks that no sensitive value of an install parameter is shown, with an Instance or without one (P7).
func TestInstallSecretsAreMasked(t *testing.T) {
	const secret = "hunter2-of-the-plan"
	version := shared("web-0.1.0")
	version.Spec.Parameters = append(version.Spec.Parameters, v1beta1.Parameter{Name: "TOKEN", Sensitive: true})
	version.Spec.Templates["shared.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common, namespace: apps}\ndata: {key: '{{ .Params.TOKEN }}'}\n"
	version.Spec.InstallParameters = map[string]string{"TOKEN": secret}
	old := version.DeepCopy()
	old.Spec.InstallParameters = map[string]string{"TOKEN": secret + "-before"}
	for name, there := range map[string]*v1beta1.OperatorVersion{"new": nil, "changed": old} {
		l := newLab(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "common"}, Data: map[string]string{"key": secret + "-before"}})
		if there != nil {
			l.Put(there)
		}
		versions := []*v1beta1.OperatorVersion{version}
		alone, err := ComputeVersions(t.Context(), l.options(), "install", versions, true)
		if err != nil {
			t.Fatal(err)
		}
		along := l.compute(Edit{Verb: "install", After: gen.Instance("i", version, nil), Version: version, Versions: versions, KeepsVersions: true})
		for _, p := range []*Preview{alone, along} {
			text, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "hunter2") {
				t.Errorf("%s: %s shows the value: %s", name, p.Subject, text)
			}
		}
	}
}

// TestReplacedVersionOfInstance checks that an edit that replaces OperatorVersions shows the install plans that run again, with an
// Instance, too: those of other parameters, and of a plan that has not succeeded.
func TestReplacedVersionOfInstance(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status v1beta1.ExecutionStatus
		change func(*v1beta1.OperatorVersion)
		runs   bool
	}{
		"Same":       {"nothing has changed", v1beta1.Complete, func(*v1beta1.OperatorVersion) {}, false},
		"Edited":     {"a plan that has succeeded does not run again for a task", v1beta1.Complete, func(ov *v1beta1.OperatorVersion) { ov.Spec.Version = "0.2.0" }, false},
		"Failed":     {"a plan that has failed runs again", v1beta1.FatalError, func(ov *v1beta1.OperatorVersion) { ov.Spec.Version = "0.2.0" }, true},
		"Parameters": {"other parameters run it again", v1beta1.Complete, func(ov *v1beta1.OperatorVersion) { ov.Spec.InstallParameters = map[string]string{"VALUE": "x"} }, true},
	} {
		l := newLab(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}})
		there := shared("web-0.1.0")
		there.Status.PlanStatus = map[string]v1beta1.PlanStatus{"install": {Name: "install", Status: tc.status, UID: "run"}}
		l.Put(there)
		version := shared("web-0.1.0")
		tc.change(version)
		p := l.compute(Edit{Verb: "apply", After: gen.Instance("i", version, nil), Version: version, Versions: []*v1beta1.OperatorVersion{version}})
		if got := p.Runs[0].Plan == "install"; got != tc.runs {
			t.Errorf("%s: %s: the install plan runs: %t\n%q", name, tc.reason, got, brief(p))
		}
	}
}
