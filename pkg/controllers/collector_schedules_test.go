package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// scheduledInstance is an Instance of an hour that has schedules, with what is known of the first one.
func scheduledInstance(name string, st v1beta1.ScheduleStatus, schedules ...string) *v1beta1.Instance {
	i := instanceOf("a", name, "redis-1")
	i.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	for _, s := range schedules {
		i.Spec.Schedules = append(i.Spec.Schedules, v1beta1.Schedule{Name: s, Plan: "backup", Cron: "0 3 * * *", Suspend: s == "suspended"})
	}
	if st.Name != "" {
		i.Status.Schedules = []v1beta1.ScheduleStatus{st}
	}
	return i
}

// scrapeSchedules returns the lines of the metric of schedules.
func scrapeSchedules(t *testing.T, c *stateCollector) []string {
	return slices.DeleteFunc(scrape(t, c), func(line string) bool { return !strings.HasPrefix(line, "schedule_") })
}

// TestScheduleMetric: G1, how long ago a run of each schedule was complete.
func TestScheduleMetric(t *testing.T) {
	success := metav1.NewTime(now.Add(-time.Minute))
	suspended := scheduledInstance("asleep", v1beta1.ScheduleStatus{}, "nightly")
	suspended.Spec.Suspend = true
	c := newCollector(t, scheduledInstance("done", v1beta1.ScheduleStatus{Name: "nightly", LastSuccess: &success}, "nightly", "suspended"),
		scheduledInstance("never", v1beta1.ScheduleStatus{}, "nightly"), suspended)
	want := []string{`schedule_last_success_seconds{instance="done",namespace="a",schedule="nightly"} 60`,
		`schedule_last_success_seconds{instance="never",namespace="a",schedule="nightly"} 3600`}
	if diff := cmp.Diff(want, scrapeSchedules(t, c)); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// TestScheduleMetricIsBounded: of more schedules than there are series, those that have failed come first.
func TestScheduleMetricIsBounded(t *testing.T) {
	m := &measurement{now: now}
	for n := range maxSchedules + 50 {
		m.addSchedules(scheduledInstance(fmt.Sprintf("i-%03d", n), v1beta1.ScheduleStatus{}, "nightly"))
	}
	success := metav1.NewTime(now)
	m.addSchedules(scheduledInstance("failed", v1beta1.ScheduleStatus{Name: "nightly", LastSuccess: &success, Message: "no space left"}, "nightly"))
	var sent []string
	m.sendSchedules(func(_ string, _ float64, labels ...string) { sent = append(sent, labels[1]) })
	if len(sent) != maxSchedules || sent[0] != "failed" || sent[1] != "i-000" {
		t.Errorf("%d series, first %v", len(sent), sent[:2])
	}
}
