package schedule

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// at reads a time.
func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestParse: what is no schedule is refused, with the field and the remedy.
func TestParse(t *testing.T) {
	for _, tc := range []struct{ reason, cron, zone, wrong string }{
		{"each night", "0 3 * * *", "", ""},
		{"lists, ranges and steps", "*/5 0-6,22 1,15 jan-mar mon", "Europe/Vienna", ""},
		{"the zone by its offset", "0 3 * * *", "Etc/GMT-5", ""},
		{"UTC by its name", "0 3 * * *", "UTC", ""},
		{"seconds", "0 0 3 * * *", "", "expected exactly 5 fields"},
		{"four fields", "0 3 * *", "", "expected exactly 5 fields"},
		{"no field", "", "", "empty spec string"},
		{"a name for it", "@daily", "", "has no five fields"},
		{"an interval", "@every 1s", "", "has no five fields"},
		{"a zone in its place", "TZ=UTC 0 3 * * *", "", "has no five fields"},
		{"a zone in its place, which ends the library", "TZ=0", "", "has no five fields"},
		{"a zone in its place, by the long name", "CRON_TZ=UTC 0 3 * * *", "", "has no five fields"},
		{"no such minute", "60 3 * * *", "", "end of range (60) above maximum"},
		{"a step of none", "*/0 3 * * *", "", "step of range should be a positive number"},
		{"no such day", "0 3 30 2 *", "", "is never due"},
		{"a day that is rare", "0 3 29 2 *", "", ""},
		{"no such zone", "0 3 * * *", "Europe/Atlantis", "unknown time zone"},
		{"the zone of the machine", "0 3 * * *", "Local", "zone of the machine"},
		{"the zone of the machine, in another spelling", "0 3 * * *", "local", "zone of the machine"},
		{"a file", "0 3 * * *", "../../etc/passwd", "timeZone \"../../etc/passwd\""},
		{"a path", "0 3 * * *", "/etc/localtime", "timeZone \"/etc/localtime\""},
		{"a long name", "0 3 * * *", strings.Repeat("x", 65), "longer than 64 bytes"},
	} {
		_, err := Parse(tc.cron, tc.zone)
		if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.wrong)
		}
	}
}

// TestNext: K31, when a plan is due in zones, and as clocks are set for summer time.
func TestNext(t *testing.T) {
	for _, tc := range []struct {
		reason, cron, zone, after string
		want                      []string
	}{
		{"each night, by UTC", "0 3 * * *", "", "2026-01-02T03:00:00Z", []string{"2026-01-03T03:00:00Z"}},
		{"in winter", "0 3 * * *", "Europe/Vienna", "2026-01-02T00:00:00Z", []string{"2026-01-02T02:00:00Z"}},
		{"in summer", "0 3 * * *", "Europe/Vienna", "2026-07-02T00:00:00Z", []string{"2026-07-02T01:00:00Z"}},
		{"a zone with a half hour", "0 3 * * *", "Asia/Kolkata", "2026-07-02T00:00:00Z", []string{"2026-07-02T21:30:00Z"}},
		{"at the other end of the date line", "0 3 * * mon", "Pacific/Kiritimati", "2026-07-05T00:00:00Z", []string{"2026-07-05T13:00:00Z"}},
		{"02:30 does not exist: it is due when the clock is set", "30 2 * * *", "Europe/Vienna", "2026-03-28T02:00:00Z", []string{
			"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"several times that do not exist are one", "*/10 2 * * *", "Europe/Vienna", "2026-03-28T02:00:00Z", []string{
			"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"02:30 exists twice: the first counts", "30 2 * * *", "Europe/Vienna", "2026-10-24T12:00:00Z", []string{
			"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"between the two, none is left", "30 2 * * *", "Europe/Vienna", "2026-10-25T01:10:00Z", []string{"2026-10-26T01:30:00Z"}},
		{"each hour goes by elapsed time, as the clock is set back", "30 * * * *", "Europe/Vienna", "2026-10-24T23:45:00Z", []string{
			"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"and as it is set forward", "30 * * * *", "Europe/Vienna", "2026-03-29T00:00:00Z", []string{
			"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		{"midnight does not exist", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"}},
		{"clocks are set by half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{
			"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"a day was left out", "0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", []string{"2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"}},
		{"the 29th of February", "0 3 29 2 *", "", "2026-01-01T00:00:00Z", []string{"2028-02-29T03:00:00Z"}},
	} {
		cron, err := Parse(tc.cron, tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		next := at(t, tc.after)
		for range tc.want {
			next = cron.Next(next)
			got = append(got, next.UTC().Format(time.RFC3339))
			if !cron.IsDue(next) {
				t.Errorf("%s: it is not due at %s", tc.reason, next)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
		}
	}
}

// TestLatest: of what has passed, the latest is found, however much has passed.
func TestLatest(t *testing.T) {
	for _, tc := range []struct{ reason, cron, after, upTo, want string }{
		{"nothing has passed", "0 3 * * *", "2026-01-02T03:00:00Z", "2026-01-03T02:59:59Z", ""},
		{"one has", "0 3 * * *", "2026-01-02T03:00:00Z", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"a second is enough", "0 3 * * *", "2026-01-03T02:59:59Z", "2026-01-03T03:00:00Z", "2026-01-03T03:00:00Z"},
		{"several have", "* * * * *", "2026-01-02T03:00:00Z", "2026-01-02T03:10:30Z", "2026-01-02T03:10:00Z"},
		{"millions have", "* * * * *", "1970-01-01T00:00:00Z", "2026-01-02T03:10:30Z", "2026-01-02T03:10:00Z"},
		{"the clock was set back", "* * * * *", "2026-01-02T03:00:00Z", "2025-01-02T03:10:30Z", ""},
	} {
		cron, err := Parse(tc.cron, "")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if latest := cron.Latest(at(t, tc.after), at(t, tc.upTo)); !latest.IsZero() {
			got = latest.Format(time.RFC3339)
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
		}
	}
}

// TestPropertyNext: what is due comes later, in order, and is due.
func TestPropertyNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"* * * * *", "*/7 * * * *", "30 2 * * *", "*/10 1-3 * * *", "0 0 * * *", "0 3 * * sun", "59 23 31 * *",
			"0 */6 1 */2 *"}).Draw(t, "cron")
		zone := rapid.SampledFrom([]string{"", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca"}).
			Draw(t, "zone")
		cron, err := Parse(text, zone)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Unix(rapid.Int64Range(946684800, 2145916800).Draw(t, "from"), 0).UTC()
		later := from.Add(time.Duration(rapid.Int64Range(0, 8*86400).Draw(t, "seconds")) * time.Second)
		a, b := cron.Next(from), cron.Next(later)
		if !a.After(from) || !b.After(later) || b.Before(a) || !cron.IsDue(a) {
			t.Fatalf("after %s comes %s (%t), after %s %s", from, a, cron.IsDue(a), later, b)
		}
		if latest := cron.Latest(from, later); !latest.IsZero() && (latest.After(later) || !cron.Next(latest).After(later)) {
			t.Fatalf("the latest of %s to %s is %s", from, later, latest)
		}
	})
}

// FuzzParse: what users write ends nothing, and what is taken is due.
func FuzzParse(f *testing.F) {
	f.Add("0 3 * * *", "Europe/Vienna")
	f.Add("TZ=0", "Local")
	f.Add("*/0 1-100/2 ? l jan", "../x")
	f.Fuzz(func(t *testing.T, text, zone string) {
		if len(text) > 256 { // the API bounds it
			return
		}
		cron, err := Parse(text, zone)
		if err != nil {
			return
		}
		if now := time.Unix(1767323045, 0); !cron.Next(now).IsZero() && !cron.Next(now).After(now) {
			t.Errorf("%q in %q is due in the past", text, zone)
		}
	})
}
