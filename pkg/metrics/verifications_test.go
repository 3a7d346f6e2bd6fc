package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestVerifications counts checks of packages. Errors begin at 0, so that the first one is an increase.
func TestVerifications(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	v, err := NewVerifications(registry)
	if err != nil {
		t.Fatal(err)
	}
	v.Count(CallerInstance, ResultRefused, "NoSignature")
	v.Count(CallerInstance, ResultRefused, "NoSignature")
	v.Count(CallerWebhook, ResultError, "")
	v.Took(50 * time.Millisecond)
	want := `
# HELP kudo_package_verifications_total ` + Find(PackageVerifications).Help + `
# TYPE kudo_package_verifications_total counter
kudo_package_verifications_total{caller="instance",reason="",result="error"} 0
kudo_package_verifications_total{caller="instance",reason="NoSignature",result="refused"} 2
kudo_package_verifications_total{caller="operatorversion",reason="",result="error"} 0
kudo_package_verifications_total{caller="webhook",reason="",result="error"} 1
# HELP kudo_package_verification_duration_seconds ` + Find(VerificationDuration).Help + `
# TYPE kudo_package_verification_duration_seconds histogram
kudo_package_verification_duration_seconds_bucket{le="0.0001"} 0
kudo_package_verification_duration_seconds_bucket{le="0.001"} 0
kudo_package_verification_duration_seconds_bucket{le="0.01"} 0
kudo_package_verification_duration_seconds_bucket{le="0.1"} 1
kudo_package_verification_duration_seconds_bucket{le="1"} 1
kudo_package_verification_duration_seconds_bucket{le="10"} 1
kudo_package_verification_duration_seconds_bucket{le="+Inf"} 1
kudo_package_verification_duration_seconds_sum 0.05
kudo_package_verification_duration_seconds_count 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := NewVerifications(registry); err == nil {
		t.Error("the metrics can be registered twice")
	}
	var none *Verifications
	none.Count(CallerInstance, ResultAccepted, "Verified")
	none.Took(time.Second)
}

// bounds says of each label why it has few values. What users choose goes through Values, or is limited by the collector.
var bounds = map[string]string{
	"operator": "MaxOperators", "plan": "maxPlans, and the series of InstanceStuck", "group": "maxGroups", "kind": "the kinds of tasks",
	"namespace": "the series of InstanceStuck and ScheduleLastSuccess", "instance": "as namespace", "schedule": "as namespace",
	"policy": "the series of AuthorityExpiry, whose names administrators choose", "authority": "as policy",
	"outcome": "Outcome", "cause": "causes of runs", "class": "Class, and accounts of writes", "verb": "verbs of requests", "code": "status codes",
	"ready": "values of conditions", "installed": "true or false", "operation": "operations of explore layers", "layer": "explore layers",
	"reason": "constants of the code, or the series of InstanceStuck", "caller": "Caller", "result": "Result, and results of answers",
	"version": "the program", "commit": "the program", "go": "the program",
}

// TestLabels: a label that is new needs a bound.
func TestLabels(t *testing.T) {
	used := map[string]bool{}
	for _, m := range Table {
		for _, label := range m.Labels {
			used[label] = true
			if bounds[label] == "" {
				t.Errorf("%s has the label %s: what bounds its values?", m.Name, label)
			}
		}
	}
	for label := range bounds {
		if !used[label] {
			t.Errorf("no metric has the label %s", label)
		}
	}
}
