package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// list makes a list of `name=quantity` separated by spaces.
func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, pair := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(pair, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return out
}

// show is the reverse of list, in the order of the names.
func show(l corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l)) {
		quantity := l[name]
		out = append(out, fmt.Sprintf("%s=%s", name, quantity.String()))
	}
	return strings.Join(out, " ")
}

// grown is the change of a new object.
func grown(usage string) []Change { return []Change{{After: Usage{Resources: list(usage)}}} }

// TestOf (C64) has an object of each sort that quotas count.
func TestOf(t *testing.T) {
	for _, tc := range []struct {
		reason, resource, group string
		pods                    int64
		requests, want          string
	}{
		{"an object with pods", "deployments", "apps", 3, "cpu=300m memory=1Gi example.com/gpu=2", "count/deployments.apps=1 pods=3 requests.cpu=300m requests.example.com/gpu=2 requests.memory=1Gi"},
		{"an object of the core group", "secrets", "", 0, "", "count/secrets=1 pods=0"},
		{"a pod is one pod", "pods", "", 1, "cpu=1", "pods=1 requests.cpu=1"},
		{"a kind that the cluster does not serve yet", "", "", 2, "", "pods=2"},
		{"storage is that of claims", "", "", 1, "storage=1Gi", "pods=1"},
	} {
		o := Object{Resource: schema.GroupResource{Group: tc.group, Resource: tc.resource}, Pods: tc.pods, Requests: list(tc.requests)}
		if got := show(Of(o).Resources); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestOfLimitsAndClaims (C64) has objects whose pods are limited, or have claims.
func TestOfLimitsAndClaims(t *testing.T) {
	claim := func(class *string, storage string) corev1.PersistentVolumeClaimSpec {
		return corev1.PersistentVolumeClaimSpec{StorageClassName: class, Resources: corev1.VolumeResourceRequirements{Requests: list(storage)}}
	}
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for _, tc := range []struct {
		reason string
		object Object
		want   string
	}{
		{"limits are those of each pod", Object{Pods: 3, Limits: list("cpu=500m memory=1Gi")}, "limits.cpu=1500m limits.memory=3Gi pods=3"},
		{"no pod has no limits", Object{Limits: list("cpu=500m"), Claims: []corev1.PersistentVolumeClaimSpec{claim(nil, "storage=1Gi")}}, "pods=0"},
		{"each pod has its claims", Object{Pods: 2, Claims: []corev1.PersistentVolumeClaimSpec{claim(nil, "storage=1Gi"), claim(ptr.To("gold"), "storage=2Gi")}},
			"count/persistentvolumeclaims=4 gold.storageclass.storage.k8s.io/persistentvolumeclaims=2 gold.storageclass.storage.k8s.io/requests.storage=4Gi pods=2 requests.storage=6Gi"},
		{"a claim is one claim", Object{Resource: claims, Claims: []corev1.PersistentVolumeClaimSpec{claim(ptr.To("gold"), "storage=2Gi")}},
			"count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/requests.storage=2Gi pods=0 requests.storage=2Gi"},
		{"the class without a name is no class", Object{Resource: claims, Claims: []corev1.PersistentVolumeClaimSpec{claim(ptr.To(""), "storage=2Gi")}}, "count/persistentvolumeclaims=1 pods=0 requests.storage=2Gi"},
		{"a quantity that is less than nothing, or too large", Object{Pods: 1 << 62, Limits: list("cpu=-1 memory=9E")}, "pods=4611686018427387904"},
	} {
		if got := show(Of(tc.object).Resources); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestAddGrowth (C64) checks that what live objects use is not counted twice.
func TestAddGrowth(t *testing.T) {
	for _, tc := range []struct{ reason, sum, before, after, want string }{
		{"a new object", "", "", "pods=3 requests.cpu=1", "pods=3 requests.cpu=1"},
		{"an object that stays as it is", "", "pods=3 requests.cpu=1", "pods=3 requests.cpu=1", ""},
		{"one that grows", "pods=1", "pods=3", "pods=5", "pods=3"},
		{"one whose pods request more", "", "pods=3 requests.cpu=300m", "pods=3 requests.cpu=3", "requests.cpu=2700m"},
		{"one that gets smaller makes no room", "pods=2", "pods=5", "pods=1", "pods=2"},
		{"one that requests nothing any more", "pods=2", "pods=1 requests.memory=1Gi", "pods=1", "pods=2"},
		{"none", "pods=2", "", "pods=0", "pods=2"},
	} {
		sum := list(tc.sum)
		addGrowth(sum, list(tc.before), list(tc.after))
		if got := show(sum); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestExceeded (C64) holds a growth against one quota.
func TestExceeded(t *testing.T) {
	for _, tc := range []struct{ reason, hard, used, growth, want string }{
		{"there is room", "pods=10 requests.cpu=4", "pods=2 requests.cpu=1", "pods=8 requests.cpu=3", ""},
		{"one more than there is", "pods=10", "pods=2", "pods=9", "ResourceQuota q: pods: needed 9, left 8"},
		{"short names", "cpu=2 memory=1Gi secrets=3 count/pods=1", "cpu=500m memory=0 secrets=3 count/pods=0", "requests.cpu=2 requests.memory=1536Mi count/secrets=1 pods=2",
			"ResourceQuota q: count/pods: needed 2, left 1, ResourceQuota q: cpu: needed 2, left 1500m, ResourceQuota q: memory: needed 1536Mi, left 1Gi, ResourceQuota q: secrets: needed 1, left 0"},
		{"huge pages have a short name", "hugepages-2Mi=2Mi", "hugepages-2Mi=0", "requests.hugepages-2Mi=4Mi", "ResourceQuota q: hugepages-2Mi: needed 4Mi, left 2Mi"},
		{"counts of a group", "count/deployments.apps=1", "count/deployments.apps=1", "count/deployments.apps=1", "ResourceQuota q: count/deployments.apps: needed 1, left 0"},
		{"a quota that was lowered has nothing left, not less", "pods=1", "pods=3", "pods=1", "ResourceQuota q: pods: needed 1, left 0"},
		{"nothing is needed of what is used up", "pods=1 cpu=1", "pods=3 cpu=2", "count/secrets=1 pods=0", ""},
		{"limits are no requests", "limits.cpu=1", "limits.cpu=1", "requests.cpu=5", ""},
		{"limits", "limits.cpu=1 limits.memory=1Gi", "limits.cpu=500m limits.memory=0", "limits.cpu=2 limits.memory=1Gi", "ResourceQuota q: limits.cpu: needed 2, left 500m"},
		{"claims, by either name, and their storage", "persistentvolumeclaims=1 requests.storage=1Gi gold.storageclass.storage.k8s.io/requests.storage=1Gi",
			"persistentvolumeclaims=0 requests.storage=0 gold.storageclass.storage.k8s.io/requests.storage=0",
			"count/persistentvolumeclaims=2 requests.storage=2Gi gold.storageclass.storage.k8s.io/requests.storage=2Gi",
			"ResourceQuota q: gold.storageclass.storage.k8s.io/requests.storage: needed 2Gi, left 1Gi, ResourceQuota q: persistentvolumeclaims: needed 2, left 1, ResourceQuota q: requests.storage: needed 2Gi, left 1Gi"},
		{"not counted yet", "pods=1", "", "pods=5", ""},
	} {
		quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: list(tc.hard), Used: list(tc.used)}}
		if got := Describe(Exceeded([]corev1.ResourceQuota{quota}, grown(tc.growth))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestExceededQuotas (C64) checks which of several quotas are judged, and in which order they are named.
func TestExceededQuotas(t *testing.T) {
	status := corev1.ResourceQuotaStatus{Hard: list("pods=1"), Used: list("pods=0")}
	quota := func(name string, spec corev1.ResourceQuotaSpec) corev1.ResourceQuota {
		return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec, Status: status}
	}
	quotas := []corev1.ResourceQuota{
		quota("b", corev1.ResourceQuotaSpec{}), quota("a", corev1.ResourceQuotaSpec{}),
		quota("scopes", corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}),
		quota("unjudged", corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeCrossNamespacePodAffinity}}),
		quota("none", corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{}}),
	}
	want := "ResourceQuota a: pods: needed 2, left 1, ResourceQuota b: pods: needed 2, left 1, ResourceQuota none: pods: needed 2, left 1"
	if diff := cmp.Diff(want, Describe(Exceeded(quotas, grown("pods=2")))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var many []corev1.ResourceQuota
	for i := range 30 {
		many = append(many, quota(fmt.Sprint(strings.Repeat("long-", 40), i), corev1.ResourceQuotaSpec{}))
	}
	if got := Describe(Exceeded(many, grown("pods=2"))); len(got) > maxNumbers {
		t.Errorf("%d bytes do not fit into an Event: %s", len(got), got)
	}
	if got := Describe(Exceeded(many[:0], grown("pods=2"))); got != "" {
		t.Errorf("without quotas: %s", got)
	}
}
