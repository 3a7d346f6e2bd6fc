package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestScopes (C64) checks which pods a quota with scopes counts.
func TestScopes(t *testing.T) {
	container := func(requests, limits string) []corev1.Container {
		return []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}}}
	}
	bare, sized := &corev1.PodSpec{Containers: container("", "")}, &corev1.PodSpec{Containers: container("cpu=1", "")}
	ending, gold := &corev1.PodSpec{ActiveDeadlineSeconds: ptr.To[int64](60)}, &corev1.PodSpec{PriorityClassName: "gold"}
	scoped := func(scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Scopes: scopes}
	}
	classes := func(operator corev1.ScopeSelectorOperator, values ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values}}}}
	}
	for _, tc := range []struct {
		reason  string
		spec    corev1.ResourceQuotaSpec
		pods    *corev1.PodSpec
		counted bool
	}{
		{"pods without requests and limits", scoped(corev1.ResourceQuotaScopeBestEffort), bare, true},
		{"pods with requests", scoped(corev1.ResourceQuotaScopeBestEffort), sized, false},
		{"a limit suffices", scoped(corev1.ResourceQuotaScopeNotBestEffort), &corev1.PodSpec{InitContainers: container("", "memory=1Gi")}, true},
		{"a request of nothing does not", scoped(corev1.ResourceQuotaScopeNotBestEffort), &corev1.PodSpec{Containers: container("cpu=0", "")}, false},
		{"nor does one of something else", scoped(corev1.ResourceQuotaScopeBestEffort), &corev1.PodSpec{Containers: container("example.com/gpu=1", "")}, true},
		{"what the pod requests itself", scoped(corev1.ResourceQuotaScopeNotBestEffort), &corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("cpu=1")}}, true},
		{"pods with a deadline", scoped(corev1.ResourceQuotaScopeTerminating), ending, true},
		{"pods without one", scoped(corev1.ResourceQuotaScopeTerminating), bare, false},
		{"which run on", scoped(corev1.ResourceQuotaScopeNotTerminating), bare, true},
		{"and those that end", scoped(corev1.ResourceQuotaScopeNotTerminating), ending, false},
		{"all scopes have to match", scoped(corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort), sized, false},
		{"a class", classes(corev1.ScopeSelectorOpIn, "silver", "gold"), gold, true},
		{"another class", classes(corev1.ScopeSelectorOpIn, "silver"), gold, false},
		{"any but a class", classes(corev1.ScopeSelectorOpNotIn, "silver"), gold, true},
		{"any class", classes(corev1.ScopeSelectorOpExists), gold, true},
		{"any class, as a scope", scoped(corev1.ResourceQuotaScopePriorityClass), gold, true},
		{"no class", classes(corev1.ScopeSelectorOpDoesNotExist), gold, false},
		{"without a class, the cluster's default is not known", classes(corev1.ScopeSelectorOpDoesNotExist), bare, false},
		{"so that nothing is said", classes(corev1.ScopeSelectorOpNotIn, "silver"), bare, false},
		{"pods of which the template is not known", scoped(corev1.ResourceQuotaScopeNotTerminating), nil, false},
	} {
		status := corev1.ResourceQuotaStatus{Hard: list("pods=1 requests.storage=1 secrets=0"), Used: list("pods=1 requests.storage=1 secrets=0")}
		q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: tc.spec, Status: status}
		change := Change{After: Usage{list("pods=2 requests.storage=1Gi count/secrets=1"), tc.pods}}
		want := map[bool]string{true: "ResourceQuota q: pods: needed 2, left 0"}[tc.counted]
		if got := Describe(Exceeded([]corev1.ResourceQuota{q}, []Change{change})); got != want || !Judged(&q) {
			t.Errorf("%s: %q, want %q, judged %v", tc.reason, got, want, Judged(&q))
		}
	}
}

// TestScopeChanges (C64) checks that pods that a run moves into the scope of a quota are new to the quota.
func TestScopeChanges(t *testing.T) {
	q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}},
		Status: corev1.ResourceQuotaStatus{Hard: list("pods=2"), Used: list("pods=0")}}
	before, after := Usage{list("pods=3"), &corev1.PodSpec{}}, Usage{list("pods=3"), &corev1.PodSpec{ActiveDeadlineSeconds: ptr.To[int64](1)}}
	if got := Describe(Exceeded([]corev1.ResourceQuota{q}, []Change{{before, after}})); got != "ResourceQuota q: pods: needed 3, left 2" {
		t.Errorf("got %q", got)
	}
	if got := Describe(Exceeded([]corev1.ResourceQuota{q}, []Change{{after, after}})); got != "" {
		t.Errorf("unchanged: %q", got)
	}
}
