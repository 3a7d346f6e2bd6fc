package testsuite

import (
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/pkg/text"
)

// keepsFailed reports whether what a case has made stays: it has failed, and the user wants to look at it. An interrupted case has not
// failed.
func (r *Runner) keepsFailed(result *Result, interrupted bool) bool {
	return r.KeepFailed && !r.SkipDelete && result.Err != nil && !interrupted
}

// kept returns the commands that show and delete what a failed case has made.
func (p *caseRun) kept() []string {
	var look, remove []string
	for _, o := range slices.Backward(p.created) {
		at := p.kubeconfigFlag(o.cluster)
		if p.isOwn(o) {
			look = append(look, fmt.Sprintf("kubectl get all,instances.kudo.dev,events -n %s%s", p.namespace, at))
			remove = append(remove, fmt.Sprintf("kubectl delete namespace %s%s", p.namespace, at))
			continue
		}
		if o.obj.GetNamespace() == p.namespace && p.hasOwnNamespace(o.cluster) {
			continue
		}
		kind := strings.ToLower(o.obj.GetKind())
		if group := o.obj.GroupVersionKind().Group; group != "" {
			kind += "." + group
		}
		line := fmt.Sprintf("kubectl delete %s %s%s", text.ShellQuote(kind), text.ShellQuote(o.obj.GetName()), at)
		if o.obj.GetNamespace() != "" {
			line += " -n " + text.ShellQuote(o.obj.GetNamespace())
		}
		remove = append(remove, line)
	}
	if p.Namespace != "" {
		look = append(look, "kubectl get all,instances.kudo.dev,events -n "+text.ShellQuote(p.Namespace))
	}
	return append(look, remove...)
}

// kubeconfigFlag returns the flag that a printed command needs for a cluster, empty for that of the run.
func (p *caseRun) kubeconfigFlag(cluster *Cluster) string {
	if cluster.Kubeconfig == p.Cluster.Kubeconfig {
		return ""
	}
	return " --kubeconfig " + text.ShellQuote(cluster.Kubeconfig)
}

// hasOwnNamespace reports whether the case has made its namespace on a cluster.
func (p *caseRun) hasOwnNamespace(cluster *Cluster) bool {
	return slices.ContainsFunc(p.created, func(other owned) bool { return other.cluster == cluster && p.isOwn(other) })
}
