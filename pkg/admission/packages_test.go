package admission

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
	"kudo.dev/kudo/test/gen"
)

// TestVersionValidator (S26): the webhook allows each OperatorVersion, and returns a warning if a policy refuses it or warns of it.
func TestVersionValidator(t *testing.T) {
	ov := gen.Version("ns", "web-1.0", gen.ConfigMaps("cm", 1), gen.Serial("deploy", "cm"))
	other := ov.DeepCopy()
	other.Spec.AppVersion = "2"
	for _, tc := range []struct {
		reason    string
		operation admissionv1.Operation
		old       *v1beta1.OperatorVersion
		verdict   trust.Verdict
		err       error
		// judged is set if the policies are asked.
		judged bool
		want   []string
	}{
		{"it is refused", admissionv1.Create, nil, trust.Verdict{Reason: trust.NoSignature, Message: "web is not signed"}, nil, true, []string{"it does not run: web is not signed"}},
		{"it changes, and is refused", admissionv1.Update, other, trust.Verdict{Reason: trust.Revoked, Message: "revoked"}, nil, true, []string{"it does not run: revoked"}},
		{"its labels change", admissionv1.Update, ov, trust.Verdict{}, nil, false, nil},
		{"it is deleted", admissionv1.Delete, ov, trust.Verdict{}, nil, false, nil},
		{"a policy warns of it", admissionv1.Create, nil, trust.Verdict{Allowed: true, Reason: trust.WrongKey, Message: "only warns"}, nil, true, []string{"only warns"}},
		{"it is verified", admissionv1.Create, nil, trust.Verdict{Allowed: true, Reason: trust.Verified, Message: "signed by release"}, nil, true, nil},
		{"no signature is required", admissionv1.Create, nil, trust.Verdict{Allowed: true, Reason: trust.NotRequired, Message: "requires no signature"}, nil, true, nil},
		{"no policy is for it", admissionv1.Create, nil, trust.Verdict{Allowed: true, Reason: trust.NoPolicy, Message: "no PackagePolicy"}, nil, true, nil},
		{"there are no policies", admissionv1.Create, nil, trust.Verdict{Allowed: true}, nil, true, nil},
		{"the policies cannot be read", admissionv1.Create, nil, trust.Verdict{}, errors.New("etcd is slow"), true, []string{"whether PackagePolicies let it run is not known: etcd is slow"}},
	} {
		var asked []trust.Request
		validator := &VersionValidator{Judge: func(_ context.Context, r trust.Request) (trust.Verdict, error) {
			asked = append(asked, r)
			return tc.verdict, tc.err
		}}
		req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: tc.operation, Namespace: "ns", Object: rawVersion(t, ov), OldObject: rawVersion(t, tc.old)}}
		got := validator.Handle(t.Context(), req)
		if diff := cmp.Diff(tc.want, got.Warnings); diff != "" || !got.Allowed {
			t.Errorf("%s: allowed %t, warnings -want +got: %s", tc.reason, got.Allowed, diff)
		}
		if (len(asked) == 1) != tc.judged || tc.judged && (asked[0].Namespace != "ns" || asked[0].Caller != metrics.CallerWebhook || asked[0].Version.Name != "web-1.0" || len(asked[0].Identity) != 64) {
			t.Errorf("%s: the policies were asked %+v", tc.reason, asked)
		}
	}
	bad := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte("{")}}}
	if got := (&VersionValidator{}).Handle(t.Context(), bad); got.Allowed || got.Result.Code != 400 {
		t.Errorf("an object that is no JSON: %+v", got)
	}
}

func rawVersion(t *testing.T, ov *v1beta1.OperatorVersion) runtime.RawExtension {
	t.Helper()
	raw, err := json.Marshal(ov)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}
