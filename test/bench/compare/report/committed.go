package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Tolerance is how much worse than the committed figures new ones may be.
const (
	// timeTolerance is the share of a ratio of times that may be lost. Two runs of a workload may differ by nearly as much, so a loss counts only
	// if a second run shows it, too.
	timeTolerance = 0.15
	// requestTolerance is the share of requests that may be added, and requestSlack their number where there are few.
	// Events are sent in batches, and status patches depend on what a watch shows first.
	requestTolerance, requestSlack = 0.05, 2
)

// Row is a line of a section's table on the page.
type Row struct {
	Case, Size, Subject string
	// Ratio is how many times as long the contestant takes as kudo.
	Ratio    float64
	Requests int
}

// Page is a page of benchmarks as it was committed: the text of each section by its title.
type Page map[string]string

// ParsePage splits a page into its sections. An empty page has none.
func ParsePage(text string) Page {
	page := Page{}
	for _, part := range strings.Split("\n"+text, "\n## ")[1:] {
		title, _, _ := strings.Cut(part, "\n")
		page[title] = "## " + strings.TrimRight(part, "\n") + "\n"
	}
	return page
}

// Rows returns the lines of the table of measurements of a section. Lines of other tables, and those that cannot be read,
// are left out.
func (p Page) Rows(title string) []Row {
	var rows []Row
	for line := range strings.Lines(p[title]) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != len(header) {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		ratio, err := strconv.ParseFloat(cells[5], 64)
		if err != nil {
			continue
		}
		requests, err := strconv.Atoi(cells[6])
		if err != nil {
			continue
		}
		rows = append(rows, Row{Case: cells[0], Size: cells[1], Subject: cells[2], Ratio: ratio, Requests: requests})
	}
	return rows
}

// isProvisional reports whether the times of a section do not count.
func (p Page) isProvisional(title string) bool { return strings.Contains(p[title], provisional) }

// Regression is a row of a section's table that is worse than the same row of the committed page.
type Regression struct {
	Case, Subject string
	Size          int
	// Text names the row and both values.
	Text string
}

// Intersect returns the regressions whose rows are also among the regressions of a second run.
func Intersect(regressions, again []Regression) []Regression {
	return slices.DeleteFunc(slices.Clone(regressions), func(r Regression) bool {
		return !slices.ContainsFunc(again, func(other Regression) bool {
			return other.Case == r.Case && other.Size == r.Size && other.Subject == r.Subject
		})
	})
}

// Regressions returns what has become worse than on the committed page, beyond the tolerance: requests of kudo, and times of
// the others as multiples of kudo's, both of the same run. Times of a busy machine or of a quick run are not compared.
func (s *Section) Regressions(committed Page, cores int) []Regression {
	before := map[[3]string]Row{}
	for _, row := range committed.Rows(s.Title) {
		before[[3]string{row.Case, row.Size, row.Subject}] = row
	}
	withTimes := s.caveats(cores) == s.version() && !committed.isProvisional(s.Title)
	var out []Regression
	for i := range s.Series {
		of := &s.Series[i]
		old, found := before[[3]string{of.Case, fmt.Sprint(of.Size), of.Subject}]
		if !found {
			continue
		}
		add := func(format string, args ...any) {
			where := fmt.Sprintf("%s: %s, %d: ", s.Title, of.Case, of.Size)
			out = append(out, Regression{Case: of.Case, Size: of.Size, Subject: of.Subject, Text: where + fmt.Sprintf(format, args...)})
		}
		if s.first(of) {
			requests := Median(of.Of(func(one Sample) float64 { return float64(one.Requests) }))
			if limit := float64(old.Requests)*(1+requestTolerance) + requestSlack; requests > limit {
				add("%.0f requests, %d committed", requests, old.Requests)
			}
			continue
		}
		if ratio := s.Ratio(of); withTimes && ratio > 0 && ratio < old.Ratio*(1-timeTolerance) {
			add("%.2f times as fast as %s, %.2f committed", ratio, of.Subject, old.Ratio)
		}
	}
	return out
}
