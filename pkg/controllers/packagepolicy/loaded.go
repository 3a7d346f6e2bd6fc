package packagepolicy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "kudo.dev/kudo/apis/config/v1alpha1"
)

// reportLoaded reports that the policy can be used, with the keys that it trusts.
func (a *action) reportLoaded() {
	var authorities []configv1alpha1.AuthorityStatus
	for _, known := range a.policy.Authorities {
		authority := configv1alpha1.AuthorityStatus{Name: known.Name}
		if known.Key != nil {
			authority.KeyHint = known.Key.Hint()
		}
		if !known.NotAfter.IsZero() {
			authority.Expires = &metav1.Time{Time: known.NotAfter}
		}
		authorities = append(authorities, authority)
	}
	a.setReady(metav1.Condition{Status: metav1.ConditionTrue, Reason: ReasonLoaded}, authorities)
}
