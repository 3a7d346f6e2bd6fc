package ui

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/explore/live"
	"kudo.dev/kudo/pkg/kudoinit"
	"kudo.dev/kudo/pkg/trust"
)

// signatureRow is what the policies of the cluster say of a package.
type signatureRow struct {
	State state
	// Message names the policy, and who has signed.
	Message string
	// Signatures is how many there are.
	Signatures int
	// Since is when the manager has found it; nil if the page has.
	Since *metav1.Time
}

// The states of signatures.
var (
	signatureRefused  = state{"refused", "✗", "bad", 0}
	signatureUnknown  = state{"not known", "?", "idle", 1}
	signatureMissing  = state{"not signed", "○", "idle", 2}
	signatureUnproven = state{"not verified", "○", "warn", 2}
	signatureVerified = state{"verified", "✓", "good", 3}
)

// signatureOf returns what the manager has found of the signatures of an OperatorVersion.
func signatureOf(ov *v1beta1.OperatorVersion) signatureRow {
	out := signatureRow{State: signatureMissing}
	if ov.Spec.Provenance != nil {
		out.Signatures = len(ov.Spec.Provenance.Signatures)
	}
	if out.Signatures > 0 {
		out.State = signatureUnproven
	}
	verified := meta.FindStatusCondition(ov.Status.Conditions, v1beta1.VerifiedCondition)
	if verified == nil {
		return out
	}
	switch verified.Status {
	case metav1.ConditionTrue:
		out.State = signatureVerified
	case metav1.ConditionFalse:
		out.State = signatureUnproven
	case metav1.ConditionUnknown: // no policy asks for signatures
	}
	out.Message, out.Since = verified.Message, &verified.LastTransitionTime
	return out
}

// judge returns what the policies of the cluster say of a package that is not in the cluster. In which namespace it is going to run is not
// known, so that each policy counts for all namespaces, as for kubectl kudo package verify.
func judge(ctx context.Context, c client.Client, version *v1beta1.OperatorVersion, at time.Time) signatureRow {
	candidate, err := trust.NewCandidate(version, nil)
	if err != nil {
		return signatureRow{State: signatureUnknown, Message: long(err.Error())}
	}
	out := signatureRow{Signatures: len(candidate.Signatures)}
	objects, err := live.List[configv1alpha1.PackagePolicy](ctx, c, "PackagePolicy")
	if err != nil && !meta.IsNoMatchError(err) { // a cluster without kudo has no policies
		out.State, out.Message = signatureUnknown, long("the policies of the cluster cannot be read: "+err.Error())
		return out
	}
	now, known := kudoinit.ReadSettings(ctx, c)
	policies := make([]trust.Policy, len(objects))
	for i := range objects {
		objects[i].Spec.Match.NamespaceSelector = nil
		policies[i] = trust.ParsePolicy(&objects[i])
	}
	verdict := trust.Judge(policies, candidate, known && now.RequirePackagePolicy, at)
	out.Message = long(verdict.Message)
	switch {
	case !verdict.Allowed:
		out.State = signatureRefused
	case verdict.Reason == trust.Verified:
		out.State = signatureVerified
	case out.Signatures == 0:
		out.State = signatureMissing
	default:
		out.State = signatureUnproven
	}
	return out
}
