// Package schedule decides when the schedules of an Instance are due, as functions over values: it reads no clock and no cluster.
package schedule

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// maxZone bounds the name of a time zone, in bytes.
const maxZone = 64

// anyValue is the bit that cron sets in a field that is `*`.
const anyValue = 1 << 63

var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// Cron computes the times of a schedule in a time zone.
//
//	the hour is `*`     by elapsed time: each hour has its times, also an hour that the clock shows twice
//	else                by the clock on the wall: each time once a day, so that a nightly backup is neither left out nor made twice
//
// The library always counts elapsed time, and skips the times of an hour that the clock skips.
type Cron struct {
	elapsed, wall *cron.SpecSchedule
	zone          *time.Location
}

// Parse reads the five fields of cron, and the name of a time zone; an empty name is UTC. It refuses fields that no date matches.
func Parse(text, zone string) (*Cron, error) {
	if strings.ContainsAny(text, "=@") { // the library takes a zone, and names such as @daily, in the place of fields
		return nil, fmt.Errorf("cron %q has no five fields: write minute, hour, day of the month, month and day of the week, such as "+
			"\"0 3 * * *\", and the time zone into timeZone", text)
	}
	parsed, err := fields.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("cron %q: %w: write minute, hour, day of the month, month and day of the week, such as \"0 3 * * *\"", text, err)
	}
	location, err := location(zone)
	if err != nil {
		return nil, fmt.Errorf("timeZone %q: %w: write a name of the IANA database, such as Europe/Vienna", zone, err)
	}
	wall, elapsed := *parsed.(*cron.SpecSchedule), *parsed.(*cron.SpecSchedule)
	wall.Location, elapsed.Location = time.UTC, location
	if wall.Next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, fmt.Errorf("cron %q is never due: there is no such day", text)
	}
	return &Cron{elapsed: &elapsed, wall: &wall, zone: location}, nil
}

// location returns a time zone. It refuses Local, the time zone of the machine.
func location(name string) (*time.Location, error) {
	switch {
	case strings.EqualFold(name, "Local"):
		return nil, errors.New("it is the zone of the machine that the manager runs on")
	case len(name) > maxZone:
		return nil, fmt.Errorf("it is longer than %d bytes", maxZone)
	}
	return time.LoadLocation(name)
}

// Next returns the first due time after a time, or zero if there is none within five years.
func (c *Cron) Next(after time.Time) time.Time {
	if c.elapsed.Hour&anyValue != 0 {
		return c.elapsed.Next(after)
	}
	clock := onWall(after.In(c.zone))
	for {
		if clock = c.wall.Next(clock); clock.IsZero() {
			return clock
		}
		if next := c.instant(clock); next.After(after) {
			return next
		}
	}
}

// IsDue reports whether a time is a due time.
func (c *Cron) IsDue(at time.Time) bool { return c.Next(at.Add(-time.Second)).Equal(at) }

// Latest returns the last due time after a time and not after another one, or zero if there is none. The number of steps does not grow with
// the number of due times.
func (c *Cron) Latest(after, upTo time.Time) time.Time {
	seconds := int(upTo.Sub(after) / time.Second)
	passed := sort.Search(max(seconds, 0), func(n int) bool {
		next := c.Next(after.Add(time.Duration(n) * time.Second))
		return next.IsZero() || next.After(upTo)
	})
	if passed == 0 {
		if next := c.Next(after); !next.IsZero() && !next.After(upTo) {
			return next
		}
		return time.Time{}
	}
	return c.Next(after.Add(time.Duration(passed-1) * time.Second))
}

// instant returns the first moment at which a clock of the time zone shows a time. For a time that the clock skips, it returns the moment
// at which the clock is set forward.
func (c *Cron) instant(clock time.Time) time.Time {
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, c.zone)
	start, end := at.ZoneBounds()
	switch shown := onWall(at); {
	case shown.After(clock):
		return start
	case shown.Before(clock):
		return end
	case start.IsZero():
		return at
	}
	_, before := start.Add(-time.Second).Zone()
	if first := clock.Add(-time.Duration(before) * time.Second).In(c.zone); first.Before(start) {
		return first
	}
	return at
}

// onWall returns the time that a clock of the time zone shows at a moment, as a time of UTC.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
