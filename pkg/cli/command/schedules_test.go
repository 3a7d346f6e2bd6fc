package command

import (
	"errors"
	"strings"
	"testing"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

// TestScheduleFlags: G1, which schedules the flags give, replace and remove.
func TestScheduleFlags(t *testing.T) {
	nightly := v1beta1.Schedule{Name: "nightly", Plan: "backup", Cron: "0 3 * * *"}
	vienna := nightly
	vienna.TimeZone = "Europe/Vienna"
	weekly := v1beta1.Schedule{Name: "weekly", Plan: "full", Cron: "0 4 * * sun"}
	for _, tc := range []struct {
		reason  string
		present []v1beta1.Schedule
		args    []string
		want    []v1beta1.Schedule
		wrong   string
	}{
		{"no flag", []v1beta1.Schedule{nightly}, nil, []v1beta1.Schedule{nightly}, ""},
		{"one", nil, []string{"--schedule", "nightly=backup@0 3 * * *"}, []v1beta1.Schedule{nightly}, ""},
		{"with a zone", nil, []string{"--schedule", "nightly=backup@0 3 * * *  Europe/Vienna"}, []v1beta1.Schedule{vienna}, ""},
		{"two", nil, []string{"--schedule", "nightly=backup@0 3 * * *", "--schedule", "weekly=full@0 4 * * sun"}, []v1beta1.Schedule{nightly, weekly}, ""},
		{"another one in its place", []v1beta1.Schedule{nightly, weekly}, []string{"--schedule", "nightly=backup@0 3 * * * Europe/Vienna"}, []v1beta1.Schedule{vienna, weekly}, ""},
		{"one less", []v1beta1.Schedule{nightly, weekly}, []string{"--unschedule", "nightly"}, []v1beta1.Schedule{weekly}, ""},
		{"one that is not there", []v1beta1.Schedule{weekly}, []string{"--unschedule", "nightly"}, nil, "no schedule of this name"},
		{"the same twice", nil, []string{"--schedule", "a=b@0 3 * * *", "--schedule", "a=c@0 3 * * *"}, nil, "a is given twice"},
		{"no plan", nil, []string{"--schedule", "nightly=@0 3 * * *"}, nil, "must be NAME=PLAN@CRON"},
		{"no time", nil, []string{"--schedule", "nightly=backup"}, nil, "must be NAME=PLAN@CRON"},
		{"no name", nil, []string{"--schedule", "backup@0 3 * * *"}, nil, "must be NAME=PLAN@CRON"},
		{"four fields", nil, []string{"--schedule", "nightly=backup@0 3 * *"}, nil, "expected exactly 5 fields"},
		{"no such zone", nil, []string{"--schedule", "nightly=backup@0 3 * * * Moon"}, nil, `timeZone "Moon"`},
		{"a plan that cannot be scheduled", nil, []string{"--schedule", "nightly=deploy@0 3 * * *"}, nil, `plan "deploy" cannot be scheduled`},
	} {
		var s ScheduleFlags
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Add(flags)
		s.AddRemoval(flags)
		if err := flags.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		before := append([]v1beta1.Schedule(nil), tc.present...)
		got, err := s.Apply(tc.present)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(before, tc.present); diff != "" {
			t.Errorf("%s: what was given is changed:\n%s", tc.reason, diff)
		}
		var coded *CodeError
		if (err != nil) != (tc.wrong != "") || err != nil && (!errors.As(err, &coded) || coded.Code != ExitUsage || !strings.Contains(err.Error(), tc.wrong)) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.wrong)
		}
		if s.IsSet() != (len(tc.args) > 0) {
			t.Errorf("%s: IsSet is %t", tc.reason, s.IsSet())
		}
	}
}
