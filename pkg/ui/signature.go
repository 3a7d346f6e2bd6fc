package ui

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	// Message names the policy and the authority that has signed the package, or says what is wrong.
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
	switch {
	case verified == nil:
		return out
	case verified.ObservedGeneration != ov.Generation:
		out.Message = "kudo has not judged the newest content yet"
		return out
	case verified.Status == metav1.ConditionTrue:
		out.State = signatureVerified
	case verified.Status == metav1.ConditionFalse && slices.Contains(refusals, trust.Reason(verified.Reason)):
		out.State = signatureRefused
	case verified.Status == metav1.ConditionFalse: // a policy may only warn
		out.State = signatureUnproven
	}
	out.Message, out.Since = verified.Message, &verified.LastTransitionTime
	return out
}

// refusals are the reasons for which a package is refused also if a policy only warns of signatures.
var refusals = []trust.Reason{trust.Refused, trust.Revoked, trust.VersionTooLow, trust.PolicyInvalid, trust.NoPolicy}

// judges has what a verdict on a package depends on.
type judges struct {
	policies []trust.Policy
	// namespace has the labels of the namespace where the packages are going to run; nil if it is not known.
	namespace labels.Set
	// required is set if a package without a policy is refused, as long as known is set.
	required, known bool
	at              time.Time
}

// judgeAll returns what the policies of the cluster say of a package that is not in the cluster, the last of the OperatorVersions, and of
// those that it depends on. If the page shows all namespaces, it is not known in which one the package is going to run, so that each policy
// counts, as for kubectl kudo package verify.
func (s *Server) judgeAll(ctx context.Context, versions []*v1beta1.OperatorVersion) signatureRow {
	by, err := s.readJudges(ctx)
	if err != nil {
		return signatureRow{State: signatureUnknown, Message: long("the policies of the cluster cannot be read: " + err.Error())}
	}
	all := make([]v1beta1.OperatorVersion, len(versions))
	for i, version := range versions {
		all[i] = *version
	}
	out := by.judge(versions[len(versions)-1], all)
	for _, dependency := range versions[:len(versions)-1] {
		row := by.judge(dependency, all)
		if (row.State == signatureRefused || row.State == signatureUnknown) && row.State.rank < out.State.rank {
			out.State, out.Message = row.State, "dependency "+dependency.Spec.Operator.Name+": "+row.Message
		}
	}
	return out
}

// readJudges reads the policies, the labels of the namespace and the settings, with the rights of the user.
func (s *Server) readJudges(ctx context.Context) (*judges, error) {
	objects, err := live.List[configv1alpha1.PackagePolicy](ctx, s.client, "PackagePolicy")
	if err != nil && !meta.IsNoMatchError(err) { // a cluster without kudo has no policies
		return nil, err
	}
	out := &judges{at: s.Clock.Now()}
	if in := (&corev1.Namespace{}); s.Namespace != "" && s.client.Get(ctx, client.ObjectKey{Name: s.Namespace}, in) == nil {
		out.namespace = labels.Set{}
		maps.Copy(out.namespace, in.Labels)
	}
	now, known := kudoinit.ReadSettings(ctx, s.client)
	out.required, out.known, out.policies = now.RequirePackagePolicy, known, trust.ParsePolicies(objects)
	return out, nil
}

// judge returns the verdict on an OperatorVersion, for which others may vouch.
func (j *judges) judge(version *v1beta1.OperatorVersion, all []v1beta1.OperatorVersion) signatureRow {
	candidate, err := trust.NewCandidate(version, j.namespace)
	if err != nil {
		return signatureRow{State: signatureUnknown, Message: long(err.Error())}
	}
	candidate.Anywhere = j.namespace == nil
	candidate.AddParents(version.Namespace, all)
	verdict := trust.Judge(j.policies, candidate, j.required, j.at)
	out := signatureRow{Signatures: len(candidate.Signatures), Message: long(verdict.Message)}
	switch {
	case !verdict.Allowed:
		out.State = signatureRefused
	case verdict.Reason == trust.NoPolicy && !j.known:
		out.State = signatureUnknown
		out.Message += ", and the settings of kudo, which may require one, cannot be read"
	case verdict.Reason == trust.Verified:
		out.State = signatureVerified
	case out.Signatures == 0:
		out.State = signatureMissing
	default:
		out.State = signatureUnproven
	}
	return out
}
