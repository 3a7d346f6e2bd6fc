package controllers

import (
	"cmp"
	"slices"
	"time"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/metrics"
	"kudo.dev/kudo/plans/schedule"
)

// maxSchedules bounds the series that name a schedule.
const maxSchedules = 200

// measuredSchedule is a schedule and the time since the last complete run of its plan.
type measuredSchedule struct {
	namespace, instance, name string
	failed                    bool
	since                     time.Duration
}

// addSchedules adds the schedules of an Instance that are not suspended. The time of a schedule without a complete run is measured since
// the creation of the Instance.
func (m *measurement) addSchedules(instance *v1beta1.Instance) {
	for _, s := range instance.Spec.Schedules {
		if s.Suspend || instance.Spec.Suspend {
			continue
		}
		st, since := schedule.Find(instance.Status.Schedules, s.Name), instance.CreationTimestamp.Time
		if st.LastSuccess != nil {
			since = st.LastSuccess.Time
		}
		m.schedules = append(m.schedules, measuredSchedule{instance.Namespace, instance.Name, s.Name, st.Message != "", m.now.Sub(since)})
	}
}

// sendSchedules sends the metric of those schedules whose last run has failed, then of those with the longest times.
func (m *measurement) sendSchedules(send func(name string, value float64, labels ...string)) {
	failedFirst := map[bool]int{true: 0, false: 1}
	slices.SortFunc(m.schedules, func(a, b measuredSchedule) int {
		return cmp.Or(failedFirst[a.failed]-failedFirst[b.failed], cmp.Compare(b.since, a.since), cmp.Compare(a.namespace, b.namespace),
			cmp.Compare(a.instance, b.instance), cmp.Compare(a.name, b.name))
	})
	for _, s := range m.schedules[:min(len(m.schedules), maxSchedules)] {
		send(metrics.ScheduleLastSuccess, s.since.Seconds(), s.namespace, s.instance, s.name)
	}
}
