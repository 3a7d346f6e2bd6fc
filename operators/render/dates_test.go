package render

import (
	"testing"
	"time"
)

// TestFormatDate checks which values are a time, and that the zone of the process does not matter.
func TestFormatDate(t *testing.T) {
	moment := time.Date(2020, 3, 4, 23, 30, 0, 0, time.FixedZone("X", -2*3600))
	for name, tc := range map[string]struct {
		reason     string
		value      any
		zone, want string
		err        string
	}{
		"Time":    {"a time is printed in UTC", moment, "UTC", "2020-03-05 01:30", ""},
		"Pointer": {"a pointer to a time", &moment, "UTC", "2020-03-05 01:30", ""},
		"Int":     {"seconds since 1970", 90, "UTC", "1970-01-01 00:01", ""},
		"Int32":   {"seconds since 1970", int32(3600), "GMT", "1970-01-01 01:00", ""},
		"Int64":   {"seconds before 1970", int64(-60), "", "1969-12-31 23:59", ""},
		"Text": {"text is no time", "2020-01-01", "UTC", "",
			"a date needs a time (from toDate) or seconds since 1970, not string: the current time is denied"},
		"Nothing": {"nothing is not the current time", nil, "UTC", "",
			"a date needs a time (from toDate) or seconds since 1970, not <nil>: the current time is denied"},
		"Float": {"a float is no time", 1.5, "UTC", "",
			"a date needs a time (from toDate) or seconds since 1970, not float64: the current time is denied"},
		"Local": {"the zone of the controller", moment, "Local", "",
			`the time zone "Local" is denied: zones are files of the controller; use UTC`},
		"Zone": {"a zone of the file system", moment, "../../etc/passwd", "",
			`the time zone "../../etc/passwd" is denied: zones are files of the controller; use UTC`},
		"Lower": {"zones are written exactly", moment, "utc", "",
			`the time zone "utc" is denied: zones are files of the controller; use UTC`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := formatDate("2006-01-02 15:04", tc.value, tc.zone)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != tc.want || message != tc.err {
				t.Errorf("%s: got %q, %q, want %q, %q", tc.reason, got, message, tc.want, tc.err)
			}
		})
	}
}

// TestDateFunctions checks the functions by name, as templates call them.
func TestDateFunctions(t *testing.T) {
	checkRendered(t, map[string]string{
		`{{ date "2006" 0 }}`: "1970", `{{ date_in_zone "15" 7200 "UTC" }}`: "02", `{{ htmlDate 86400 }}`: "1970-01-02",
		`{{ htmlDateInZone 86399 "GMT" }}`:                           "1970-01-01",
		`{{ toDate "2006-01-02" "2020-02-30" | date "2006-01-02" }}`: "0001-01-01", `{{ (mustToDate "2006" "2021").Year }}`: "2021",
		`{{ mustToDate "2006" "x" }}`: `!parsing time "x" as "2006": cannot parse "x" as "2006"`,
		`{{ now }}`: `error: template t.yaml:1:4: the function now is denied in kudo: ` + clock +
			`; pass the value as a parameter (in "{{ now }}")`,
	})
}
