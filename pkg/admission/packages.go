package admission

import (
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
)

// ValidateVersionPath is the path under which OperatorVersions are validated.
const ValidateVersionPath = "/validate-kudo-dev-v1beta1-operatorversion"

// VersionValidator warns of OperatorVersions that PackagePolicies refuse. It denies none: the controllers judge before each write, and a
// signature, or the policy, may follow the OperatorVersion, as with package sign, GitOps and a restore.
type VersionValidator struct {
	// Judge decides whether a package may run.
	Judge func(context.Context, trust.Request) (trust.Verdict, error)
}

// Handle implements admission.Handler.
func (v *VersionValidator) Handle(ctx context.Context, req admission.Request) admission.Response {
	ov, old := &v1beta1.OperatorVersion{}, &v1beta1.OperatorVersion{}
	if done := decodePair(req, ov, old, func() bool { return equality.Semantic.DeepEqual(ov.Spec, old.Spec) }); done != nil {
		return *done
	}
	identity := fmt.Sprintf("%x", sha256.Sum256(req.Object.Raw))
	verdict, err := v.Judge(ctx, trust.Request{Caller: metrics.CallerWebhook, Version: ov, Identity: identity,
		Namespace: req.Namespace})
	switch {
	case err != nil:
		return admission.Allowed("").WithWarnings(fmt.Sprintf("whether PackagePolicies let it run is not known: %s", err))
	case !verdict.Allowed:
		return admission.Allowed("").WithWarnings("it does not run: " + verdict.Message)
	case verdict.Reason == trust.Verified, verdict.Reason == trust.NotRequired, verdict.Reason == trust.NoPolicy, verdict.Message == "":
		return admission.Allowed("")
	}
	return admission.Allowed("").WithWarnings(verdict.Message)
}
