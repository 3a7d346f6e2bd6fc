// Package quota holds what objects will use against the ResourceQuotas of a namespace.
package quota

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kudo.dev/kudo/pkg/text"
)

const (
	requestsPrefix = "requests."
	countPrefix    = "count/"
)

// Usage is what objects use, by the longest of the names that quotas have for the same: `requests.cpu` for `cpu`,
// `count/secrets` for `secrets`. Limits are not known, since no question asks for them.
type Usage = corev1.ResourceList

// Of returns what one object of a resource uses: itself, and the pods that it declares, with their requests together. A resource
// without a name is not known, and not counted.
func Of(object schema.GroupResource, pods int64, requests corev1.ResourceList) Usage {
	used := Usage{}
	if object.Resource != "" {
		used[canonical(corev1.ResourceName(countPrefix+object.String()))] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	used[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	for name, quantity := range requests {
		if name != corev1.ResourceStorage { // that of claims, which pods do not request
			used[requestsPrefix+name] = quantity.DeepCopy()
		}
	}
	return used
}

// plain are the resources of which a quota may name the count by the resource alone.
var plain = []string{"configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "secrets", "services"}

// canonical returns the name of Usage for a name in a quota.
func canonical(name corev1.ResourceName) corev1.ResourceName {
	switch {
	case name == countPrefix+corev1.ResourcePods:
		return corev1.ResourcePods
	case name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return requestsPrefix + name
	case slices.Contains(plain, string(name)):
		return countPrefix + name
	}
	return name
}

// AddGrowth adds to a sum what an object uses more than before. An object that gets smaller makes no room for others: its pods may go
// later than those come, or be kept by an autoscaler.
func AddGrowth(sum, before, after Usage) {
	for name, quantity := range after {
		growth := quantity.DeepCopy()
		growth.Sub(before[name])
		if growth.Sign() > 0 {
			growth.Add(sum[name])
			sum[name] = growth
		}
	}
}

// Judged reports whether a quota can be judged: which pods those with scopes count is not known.
func Judged(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil && len(q.Status.Hard) > 0
}

// Excess is what a quota has too little of.
type Excess struct {
	// Quota is the name of the ResourceQuota.
	Quota string
	// Resource is the name that the quota has for it.
	Resource corev1.ResourceName
	// Needed is what is to be used more, and Left what there is, 0 or more.
	Needed, Left resource.Quantity
}

// String has all of it, such as `ResourceQuota tenant: pods: needed 4, left 2`.
func (e Excess) String() string {
	return fmt.Sprintf("ResourceQuota %s: %s: needed %s, left %s", e.Quota, e.Resource, e.Needed.String(), e.Left.String())
}

// Exceeded returns what quotas have too little of for a growth, in the order of their names. Quotas that are not Judged are left out,
// and so are resources that the controller of quotas has not counted yet.
func Exceeded(quotas []corev1.ResourceQuota, growth Usage) []Excess {
	var out []Excess
	for i := range quotas {
		q := &quotas[i]
		if !Judged(q) {
			continue
		}
		for name, hard := range q.Status.Hard {
			used, counted := q.Status.Used[name]
			needed := growth[canonical(name)]
			if !counted || needed.Sign() <= 0 {
				continue
			}
			left := hard.DeepCopy()
			left.Sub(used)
			if needed.Cmp(left) <= 0 {
				continue
			}
			if left.Sign() < 0 {
				left = resource.Quantity{Format: hard.Format}
			}
			out = append(out, Excess{q.Name, name, needed, left})
		}
	}
	slices.SortFunc(out, func(a, b Excess) int {
		return cmp.Or(cmp.Compare(a.Quota, b.Quota), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

// maxNamed is how many excesses a text names, and maxNumbers how many bytes they have: an Event has 1 KiB.
const (
	maxNamed   = 6
	maxNumbers = 700
)

// Describe names what is exceeded, with the numbers, and counts what it leaves out.
func Describe(exceeded []Excess) string {
	names := make([]string, len(exceeded))
	for i, e := range exceeded {
		names[i] = e.String()
	}
	return text.Truncate(text.List(names, maxNamed), maxNumbers)
}
