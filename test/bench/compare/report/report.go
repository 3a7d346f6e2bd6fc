// Package report holds what was measured, and shows it as tables and JSON.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Report is what was measured on one machine.
type Report struct {
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Sections []Section         `json:"sections"`
}

// Machine is where it was measured.
type Machine struct {
	CPU    string  `json:"cpu"`
	Cores  int     `json:"cores"`
	Memory float64 `json:"memoryGiB"`
	OS     string  `json:"os"`
}

// Section is what one workload has measured.
type Section struct {
	// Name is that of the flag -only, Title a headline, About what the figures contain.
	Name  string `json:"name"`
	Title string `json:"title"`
	About string `json:"about"`
	// Kudo is the version of kudo that was measured.
	Kudo string `json:"kudo"`
	// Began says when; Load is the load average of the machine at the begin: above the number of its cores, other
	// processes run too, and times are those of a busy machine.
	Began time.Time `json:"began"`
	Load  float64   `json:"load"`
	// Quick tells that sizes and rounds were cut.
	Quick   bool     `json:"quick"`
	Series  []Series `json:"series,omitempty"`
	Figures []Figure `json:"figures,omitempty"`
}

// Series are the samples of one contestant in one case. The first contestant of a case is kudo.
type Series struct {
	Case    string   `json:"case"`
	Size    int      `json:"size"`
	Subject string   `json:"subject"`
	Samples []Sample `json:"samples"`
}

// Sample is one measurement.
type Sample struct {
	// Seconds on the clock.
	Seconds float64 `json:"seconds"`
	// Requests at the apiserver, and the writes among them.
	Requests int `json:"requests"`
	Writes   int `json:"writes"`
	// Objects are the requests among them that concern the objects themselves.
	Objects int `json:"objects"`
	// ToolCPU and ServerCPU are CPU seconds.
	ToolCPU   float64 `json:"toolCPU"`
	ServerCPU float64 `json:"serverCPU"`
}

// Figure is a single number with its aim.
type Figure struct {
	What  string `json:"what"`
	Value string `json:"value"`
	// Aim is empty for a figure that is there for scale.
	Aim string `json:"aim,omitempty"`
	Met bool   `json:"met,omitempty"`
	// Required figures fail the run if the aim is not met: they do not depend on the machine.
	Required bool `json:"required,omitempty"`
}

// Missed returns the required figures whose aims are not met.
func (s *Section) Missed() []string {
	var out []string
	for _, f := range s.Figures {
		if f.Required && !f.Met {
			out = append(out, fmt.Sprintf("%s: %s: %s, %s", s.Title, f.What, f.Value, f.Aim))
		}
	}
	return out
}

// AtMost is a figure that should be at most an aim; both are printed by a format.
func AtMost(what string, value, aim float64, format string) Figure {
	return Figure{What: what, Value: fmt.Sprintf(format, value), Aim: "at most " + fmt.Sprintf(format, aim), Met: value <= aim}
}

// AtLeast is a figure that should be at least an aim; both are printed by a format.
func AtLeast(what string, value, aim float64, format string) Figure {
	return Figure{What: what, Value: fmt.Sprintf(format, value), Aim: "at least " + fmt.Sprintf(format, aim), Met: value >= aim}
}

// Told is a figure without an aim.
func Told(what, format string, args ...any) Figure {
	return Figure{What: what, Value: fmt.Sprintf(format, args...)}
}

// Quantile is the value that a share q of all is not above; 0 if there are none. It is one of the values: the nearest
// rank, so that a p99 of few values is their highest.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	at := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// Median of values: the mean of the middle two, if there are two.
func Median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Of collects a field of all samples.
func (s *Series) Of(field func(Sample) float64) []float64 {
	out := make([]float64, 0, len(s.Samples))
	for _, sample := range s.Samples {
		out = append(out, field(sample))
	}
	return out
}

// Seconds are the times of all samples.
func (s *Series) Seconds() []float64 {
	return s.Of(func(one Sample) float64 { return one.Seconds })
}

// Ratio is how many times as long a series takes as the first of its case; 0 if that is not known.
func (s *Section) Ratio(of *Series) float64 {
	for i := range s.Series {
		if first := &s.Series[i]; first.Case == of.Case && first.Size == of.Size {
			if base := Median(first.Seconds()); base > 0 {
				return Median(of.Seconds()) / base
			}
			return 0
		}
	}
	return 0
}

// Faster are figures that show if the first contestant of each case is the fastest.
func (s *Section) Faster() []Figure {
	var out []Figure
	for i := range s.Series {
		of := &s.Series[i]
		ratio := s.Ratio(of)
		if ratio == 0 || s.first(of) {
			continue
		}
		out = append(out, Figure{
			What:  fmt.Sprintf("%s, %d: times as fast as %s", of.Case, of.Size, of.Subject),
			Value: fmt.Sprintf("%.2f", ratio), Aim: "over 1", Met: ratio > 1,
		})
	}
	return out
}

func (s *Section) first(of *Series) bool {
	at := slices.IndexFunc(s.Series, func(o Series) bool { return o.Case == of.Case && o.Size == of.Size })
	return at >= 0 && &s.Series[at] == of
}

// Load reads a report; one that is not there is empty.
func Load(file string) (*Report, error) {
	r := &Report{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s is no report of benchmarks (delete it to begin anew): %w", file, err)
	}
	return r, nil
}

// Put adds a section in the place of an older one of its name; order lists the names of all.
func (r *Report) Put(s Section, order []string) {
	r.Sections = slices.DeleteFunc(r.Sections, func(old Section) bool { return old.Name == s.Name })
	r.Sections = append(r.Sections, s)
	slices.SortStableFunc(r.Sections, func(a, b Section) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
}

// Save writes a report as JSON.
func (r *Report) Save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
