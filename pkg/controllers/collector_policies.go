package controllers

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/controllers/packagepolicy"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/pkg/trust"
)

// maxAuthorities bounds the series that name an authority of a PackagePolicy.
const maxAuthorities = 200

// measuredAuthority is an authority of a PackagePolicy that ends.
type measuredAuthority struct {
	policy, name string
	end          time.Time
}

// isRefused reports whether an Instance, or an install plan, waits because PackagePolicies refuse the package: a condition says so that
// is false, or Stalled, which is true then.
func isRefused(conditions []metav1.Condition) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		stalled := c.Type == v1beta1.StalledCondition
		return c.Reason == v1beta1.ReasonPackageNotVerified && stalled == (c.Status == metav1.ConditionTrue)
	})
}

// addVerdict adds what the PackagePolicies say of an OperatorVersion.
func (m *measurement) addVerdict(ov *v1beta1.OperatorVersion) {
	if isRefused(ov.Status.Conditions) {
		m.refused[client.ObjectKeyFromObject(ov)] = true
	}
	verified := meta.FindStatusCondition(ov.Status.Conditions, v1beta1.VerifiedCondition)
	if verified == nil || verified.Status != metav1.ConditionFalse {
		return
	}
	reason := verified.Reason
	if !slices.Contains(trust.Reasons(), trust.Reason(reason)) { // whoever may write the status chooses it
		reason = metrics.Other
	}
	m.unverified[reason]++
}

// addRefused counts the OperatorVersions that wait, each once, by their operators.
func (m *measurement) addRefused(operators map[client.ObjectKey]string) {
	for key := range m.refused {
		if operator, exists := operators[key]; exists {
			m.operator(operator).refusedVersions++
		}
	}
}

func (m *measurement) addPolicies(policies []configv1alpha1.PackagePolicy) {
	m.policies = map[string]int{"true": 0, "false": 0, "unknown": 0} // an alert on a value that has no series says nothing
	for i := range policies {
		policy := &policies[i]
		m.policies[conditionValue(policy.Status.Conditions, packagepolicy.ReadyCondition)]++
		for _, authority := range policy.Spec.Authorities {
			if authority.NotAfter != nil {
				m.authorities = append(m.authorities, measuredAuthority{policy.Name, authority.Name, authority.NotAfter.Time})
			}
		}
	}
}

// sendPolicies sends the metrics of PackagePolicies, of those authorities that end first.
func (m *measurement) sendPolicies(send func(name string, value float64, labels ...string)) {
	for reason, n := range m.unverified {
		send(metrics.VersionsUnverified, float64(n), reason)
	}
	for ready, n := range m.policies {
		send(metrics.PackagePolicies, float64(n), ready)
	}
	slices.SortFunc(m.authorities, func(a, b measuredAuthority) int {
		return cmp.Or(a.end.Compare(b.end), cmp.Compare(a.policy, b.policy), cmp.Compare(a.name, b.name))
	})
	for _, a := range m.authorities[:min(len(m.authorities), maxAuthorities)] {
		send(metrics.AuthorityExpiry, float64(a.end.Unix()), a.policy, a.name)
	}
}
