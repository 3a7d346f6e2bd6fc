package culprit

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// HasLog reports whether a finding names a container that may have written something. The names come from a status, which others may write.
func (f *Finding) HasLog() bool {
	started := f.ExitCode != nil || f.Restarted || f.Reason == "Unhealthy" || f.Reason == "NotReady" || f.Reason == "CrashLoopBackOff"
	return started && len(validation.IsDNS1123Subdomain(f.Pod)) == 0 && len(validation.IsDNS1123Label(f.Container)) == 0 &&
		len(validation.IsDNS1123Label(f.Namespace)) == 0
}

// LogsCommand returns the command that prints all of a log; "" if there is none.
func (f *Finding) LogsCommand() string {
	if !f.HasLog() {
		return ""
	}
	command := fmt.Sprintf("kubectl logs %s -c %s -n %s", f.Pod, f.Container, f.Namespace)
	if f.Restarted {
		command += " --previous"
	}
	return command
}
