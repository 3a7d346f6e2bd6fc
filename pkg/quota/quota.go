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
	limitsPrefix   = "limits."
	countPrefix    = "count/"
	claimCount     = countPrefix + corev1.ResourcePersistentVolumeClaims
	// classInfix stands between a storage class and what is counted of its claims.
	classInfix = ".storageclass.storage.k8s.io/"
)

// Object is what an object declares.
type Object struct {
	// Resource is that of its kind. One without a name is not known, and not counted.
	Resource schema.GroupResource
	// Pods is how many pods it declares, and Requests what they request together.
	Pods     int64
	Requests corev1.ResourceList
	// Template is the spec of each pod, or nil if that is not known, and Limits are the limits of one pod.
	Template *corev1.PodSpec
	Limits   corev1.ResourceList
	// Claims are the PersistentVolumeClaims of each pod; of an object that is one, its own spec.
	Claims []corev1.PersistentVolumeClaimSpec
}

// Usage is what an object uses.
type Usage struct {
	// Resources have the longest of the names that quotas have for the same: `requests.cpu` for `cpu`, `count/secrets` for `secrets`.
	Resources corev1.ResourceList
	// template decides whether a quota with scopes counts the pods; nil if it is not known.
	template *corev1.PodSpec
}

// Of returns what an object uses: itself, and the pods that it declares, with their requests, limits and claims together.
func Of(o Object) Usage {
	used := corev1.ResourceList{}
	own := canonical(corev1.ResourceName(countPrefix + o.Resource.String()))
	if o.Resource.Resource != "" {
		used[own] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	used[corev1.ResourcePods] = *resource.NewQuantity(o.Pods, resource.DecimalSI)
	for name, quantity := range o.Requests {
		if name != corev1.ResourceStorage { // that of claims, which pods do not request
			used[requestsPrefix+name] = quantity.DeepCopy()
		}
	}
	for name, quantity := range o.Limits {
		addTimes(used, limitsPrefix+name, quantity, o.Pods)
	}
	claims := o.Pods
	if own == claimCount {
		delete(used, own) // it is counted with its storage
		claims = 1
	}
	for _, claim := range o.Claims {
		addClaims(used, claim, claims)
	}
	return Usage{used, o.Template}
}

// addClaims adds a number of claims that are alike. One that names no class is of the default class of the cluster, which is not known.
func addClaims(used corev1.ResourceList, claim corev1.PersistentVolumeClaimSpec, count int64) {
	one, storage := *resource.NewQuantity(1, resource.DecimalSI), claim.Resources.Requests[corev1.ResourceStorage]
	addTimes(used, claimCount, one, count)
	addTimes(used, corev1.ResourceRequestsStorage, storage, count)
	if class := claim.StorageClassName; class != nil && *class != "" {
		prefix := corev1.ResourceName(*class) + classInfix
		addTimes(used, prefix+corev1.ResourcePersistentVolumeClaims, one, count)
		addTimes(used, prefix+corev1.ResourceRequestsStorage, storage, count)
	}
}

// addTimes adds a quantity several times. What no quantity can hold is left out.
func addTimes(sum corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity, times int64) {
	total := quantity.DeepCopy()
	if times <= 0 || total.Sign() <= 0 || !total.Mul(times) {
		return
	}
	total.Add(sum[name])
	sum[name] = total
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

// Change is what an object uses before and after a run.
type Change struct{ Before, After Usage }

// growthFor returns how much more of what a quota counts objects use after a run.
func growthFor(q *corev1.ResourceQuota, changes []Change) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range changes {
		addGrowth(sum, c.Before.countedBy(q), c.After.countedBy(q))
	}
	return sum
}

// addGrowth adds to a sum what an object uses more than before. An object that gets smaller makes no room for others: its pods may go
// later than those come, or be kept by an autoscaler.
func addGrowth(sum, before, after corev1.ResourceList) {
	for name, quantity := range after {
		growth := quantity.DeepCopy()
		growth.Sub(before[name])
		if growth.Sign() > 0 {
			growth.Add(sum[name])
			sum[name] = growth
		}
	}
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

// Exceeded returns what quotas have too little of for changes, in the order of their names. Quotas that are not Judged are left out,
// and so are resources that the controller of quotas has not counted yet.
func Exceeded(quotas []corev1.ResourceQuota, changes []Change) []Excess {
	var out []Excess
	for i := range quotas {
		q := &quotas[i]
		if !Judged(q) {
			continue
		}
		growth := growthFor(q, changes)
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
