package render

import (
	"fmt"
	"text/template"
	"time"
)

// dates are the functions that format a time they are given. Those of sprig take the current time, and the time zone
// of the controller, if they are given none.
var dates = template.FuncMap{
	"date":           func(layout string, t any) (string, error) { return formatDate(layout, t, "UTC") },
	"dateInZone":     formatDate,
	"date_in_zone":   formatDate,
	"htmlDate":       func(t any) (string, error) { return formatDate(time.DateOnly, t, "UTC") },
	"htmlDateInZone": func(t any, zone string) (string, error) { return formatDate(time.DateOnly, t, zone) },
	"toDate": func(layout, text string) time.Time {
		t, err := time.Parse(layout, text)
		if err != nil {
			return time.Time{}
		}
		return t
	},
	"mustToDate": func(layout, text string) (time.Time, error) { return time.Parse(layout, text) },
}

func formatDate(layout string, given any, zone string) (string, error) {
	if zone != "" && zone != "UTC" && zone != "GMT" {
		return "", fmt.Errorf("the time zone %q is denied: zones are files of the controller; use UTC", zone)
	}
	var t time.Time
	switch v := given.(type) {
	case time.Time:
		t = v
	case *time.Time:
		t = *v
	case int64:
		t = time.Unix(v, 0)
	case int:
		t = time.Unix(int64(v), 0)
	case int32:
		t = time.Unix(int64(v), 0)
	default:
		return "", fmt.Errorf("a date needs a time (from toDate) or seconds since 1970, not %T: the current time is denied", given)
	}
	return t.UTC().Format(layout), nil
}
