package instance

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/gen"
)

// TestQuotaWouldExceed (C64): a run whose objects exceed a quota continues, and has one warning. A run in a namespace with quotas costs one
// LIST, a run in another namespace none, and an idle Instance none.
func TestQuotaWouldExceed(t *testing.T) {
	f := newFixture(t)
	f.quotas = true
	quota := &corev1.ResourceQuota{ObjectMeta: gen.Meta("ns", "small")}
	quota.Status.Hard = corev1.ResourceList{"configmaps": resource.MustParse("3")}
	quota.Status.Used = corev1.ResourceList{"configmaps": resource.MustParse("3")}
	f.Put(quota)
	runs := func(reason string, lists, warnings int) {
		t.Helper()
		f.Requests()
		f.settle(t)
		f.restart()
		f.reconcile(t)
		listed, warned := 0, []string{}
		for _, r := range f.Requests() {
			if strings.Contains(r, "ResourceQuota") {
				listed++
			}
		}
		for _, e := range f.recorded() {
			if strings.Contains(e, v1beta1.EventQuotaWouldExceed) {
				warned = append(warned, e)
			}
		}
		if listed != lists || len(warned) != warnings {
			t.Errorf("%s: %d requests for quotas and events %q, want %d and %d", reason, listed, warned, lists, warnings)
		}
		for _, e := range warned {
			if !strings.HasPrefix(e, "Warning QuotaWouldExceed Plan deploy was started, ") || !strings.Contains(e, "ResourceQuota small: configmaps: needed 1, left 0. ") {
				t.Errorf("%s: %s", reason, e)
			}
		}
		if got := f.ready(); got != "True ResourcesReady" {
			t.Errorf("%s: Ready is %s", reason, got)
		}
	}
	runs("a new ConfigMap", 1, 1)
	runs("idle", 0, 0)
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "2"} })
	runs("the ConfigMap is there, and changes", 1, 0)
	f.quotas = false
	f.change(func(i *v1beta1.Instance) { i.Spec.Parameters = map[string]string{"VALUE": "3"} })
	runs("a namespace without quotas", 0, 0)
}
