package command

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans/schedule"
)

// ScheduleFlags name schedules of an Instance.
type ScheduleFlags struct {
	texts, removed []string
}

const (
	scheduleFlag   = "schedule"
	unscheduleFlag = "unschedule"
	cronFields     = 5
)

// Add adds the flag of schedules.
func (s *ScheduleFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.texts, scheduleFlag, nil, "run a plan at times, as NAME=PLAN@CRON with the five fields of cron, such as "+
		"'nightly=backup@0 3 * * *', and a time zone behind them, such as 'nightly=backup@0 3 * * * Europe/Vienna' (default UTC); may be "+
		"repeated")
}

// AddRemoval adds the flag that removes schedules.
func (s *ScheduleFlags) AddRemoval(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.removed, unscheduleFlag, nil, "name of a schedule to remove; may be repeated")
}

// IsSet reports whether the flags change anything.
func (s *ScheduleFlags) IsSet() bool { return len(s.texts)+len(s.removed) > 0 }

// Apply returns the schedules of an Instance as the flags change them: a schedule takes the place of the one with its name.
func (s *ScheduleFlags) Apply(present []v1beta1.Schedule) ([]v1beta1.Schedule, error) {
	out := slices.Clone(present)
	named := func(name string) int {
		return slices.IndexFunc(out, func(s v1beta1.Schedule) bool { return s.Name == name })
	}
	for _, name := range s.removed {
		i := named(name)
		if i < 0 {
			return nil, UsageError("--%s %s: the Instance has no schedule of this name", unscheduleFlag, name)
		}
		out = slices.Delete(out, i, i+1)
	}
	for n, text := range s.texts {
		next, err := readSchedule(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s.texts[:n], func(other string) bool { return strings.HasPrefix(other, next.Name+"=") }) {
			return nil, UsageError("--%s: %s is given twice", scheduleFlag, next.Name)
		}
		if i := named(next.Name); i >= 0 {
			out[i] = next
		} else {
			out = append(out, next)
		}
	}
	return out, nil
}

// readSchedule reads the value of a flag.
func readSchedule(text string) (v1beta1.Schedule, error) {
	name, rest, named := strings.Cut(text, "=")
	plan, cron, timed := strings.Cut(rest, "@")
	if !named || !timed || name == "" || plan == "" {
		return v1beta1.Schedule{}, UsageError("--%s %q: must be NAME=PLAN@CRON, such as 'nightly=backup@0 3 * * *'", scheduleFlag, text)
	}
	out := v1beta1.Schedule{Name: name, Plan: plan, Cron: cron}
	if words := strings.Fields(cron); len(words) == cronFields+1 {
		out.Cron, out.TimeZone = strings.Join(words[:cronFields], " "), words[cronFields]
	}
	if _, err := schedule.Check(out, nil); err != nil {
		return out, UsageError("--%s %q: %s", scheduleFlag, text, err)
	}
	return out, nil
}
