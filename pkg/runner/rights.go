package runner

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// rightsHint says how to give an account a right that it lacks; empty for other errors. The API server says in words only
// what it was about.
func (w *PreparedTask) rightsHint(err error) string {
	if w.run == nil || w.run.Installation != nil || !apierrors.IsForbidden(err) {
		return ""
	}
	switch text := err.Error(); {
	case strings.Contains(text, "cannot impersonate resource"):
		return fmt.Sprintf(". Let kudo act as the account: kubectl kudo account create -n %s --instance %s creates the RoleBinding to "+
			"ClusterRole kudo-run-as that allows it",
			w.run.Subject.Namespace, w.run.Subject.Name)
	case strings.Contains(text, "at the cluster scope"):
		return fmt.Sprintf(". Ask an administrator to move such objects to an install plan, to bind what kubectl kudo package rights %s prints "+
			"to %s, or to label Namespace %s %s=true",
			w.run.Version.Spec.Operator.Name, w.run.Account, w.run.Subject.Namespace, v1beta1.PrivilegedLabel)
	}
	return ""
}
