package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/clusters"
)

// Observe returns what the workers know. The engine has always settled: the shares follow from the weights, and a release is in the same
// object as the values. Right after the start, a cluster is one that has nothing until its worker has seen more.
func (e *Engine) Observe(_ context.Context, instance *v1beta1.Instance) (clusters.Observation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := client.ObjectKeyFromObject(instance)
	out := clusters.Observation{Members: map[string]clusters.Member{}}
	if e.launch == nil {
		out.Silent = "the engine of the inventory has not been started"
	}
	if instance.Spec.Placement != nil {
		out.Settled, out.Bound = true, bound(instance)
		for _, c := range instance.PlacedClusters() {
			out.Members[c.Name] = clusters.Member{AppliedMessage: notWritten}
		}
	}
	if p := e.placed[key]; p != nil && p.uid == instance.UID {
		for name, problem := range p.unresolved {
			out.Members[name] = clusters.Member{Unreachable: problem}
		}
	}
	placed := e.profilesOf(instance)
	for profile, m := range e.members {
		if name, member, known := m.observe(key, instance.UID); known {
			member.Leaving = member.Leaving || !placed[profile]
			out.Members[name] = member
		}
	}
	e.addUnseen(instance, placed, out.Members)
	return out, nil
}

// profilesOf returns the profiles of the clusters that an Instance is placed on.
func (e *Engine) profilesOf(instance *v1beta1.Instance) map[types.NamespacedName]bool {
	out := map[types.NamespacedName]bool{}
	for _, c := range instance.PlacedClusters() {
		if profile, err := ProfileKey(c.Name, e.ClusterNamespace); err == nil {
			out[profile] = true
		}
	}
	return out
}

// addUnseen adds the clusters in the status of an Instance that are to lose their copy, and that no worker has looked at: the status is all
// that a manager which was started anew knows of them, and a cluster that leaves the status is forgotten.
func (e *Engine) addUnseen(instance *v1beta1.Instance, placed map[types.NamespacedName]bool, members map[string]clusters.Member) {
	key := client.ObjectKeyFromObject(instance)
	for _, known := range instance.Status.Members {
		profile, err := ProfileKey(known.Cluster, e.ClusterNamespace)
		if _, seen := members[known.Cluster]; seen || err != nil || placed[profile] {
			continue
		}
		if m := e.members[profile]; m == nil || !m.knows(key, instance.UID) {
			members[known.Cluster] = clusters.Member{Leaving: true, AppliedMessage: "the hub has not looked at the cluster yet"}
		}
	}
}

// bound returns the clusters of an Instance with their shares, which are nil if nothing is divided.
func bound(instance *v1beta1.Instance) map[string]*int64 {
	out := map[string]*int64{}
	for _, c := range instance.PlacedClusters() {
		out[c.Name] = nil
	}
	if value := clusters.DividedValue(instance); value != nil {
		for name, share := range clusters.Shares(*value, instance.PlacedClusters()) {
			out[name] = &share
		}
	}
	return out
}
