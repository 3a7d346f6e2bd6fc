package packagepolicy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/text"
)

// maxMessage bounds the message of the condition, in bytes.
const maxMessage = 4096

// reportInvalid says what of the policy cannot be used.
func (a *action) reportInvalid() {
	a.setReady(metav1.Condition{Status: metav1.ConditionFalse, Reason: ReasonInvalid,
		Message: text.Truncate(text.OneLine(a.policy.Err().Error()), maxMessage)}, nil)
}
