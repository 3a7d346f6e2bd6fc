package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// widest is the length from which on a figure without an aim stands below the table.
const widest = 60

// header names the columns of the table of measurements.
var header = []string{"case", "size", "tool", "median", "minimum", "× kudo", "requests", "of objects", "writes", "tool CPU", "apiserver CPU"}

// provisional marks a section whose times do not count.
const provisional = "**provisional**"

// Table writes the tables of a section, in Markdown that can be read as it is.
func (s *Section) Table(w io.Writer) error {
	var out strings.Builder
	if len(s.Series) > 0 {
		rows := [][]string{header}
		for i := range s.Series {
			rows = append(rows, s.row(&s.Series[i]))
		}
		out.WriteString(align(rows) + "\n")
	}
	if len(s.Figures) > 0 {
		rows, long := [][]string{{"what", "measured", "aim", ""}}, ""
		for _, f := range s.Figures {
			if len(f.Value) > widest && f.Aim == "" {
				long += fmt.Sprintf("* %s: %s\n", f.What, f.Value)
				continue
			}
			rows = append(rows, []string{f.What, f.Value, f.Aim, f.verdict()})
		}
		out.WriteString(align(rows) + "\n")
		if long != "" {
			out.WriteString(long + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (f *Figure) verdict() string {
	switch {
	case f.Aim == "":
		return ""
	case f.Met:
		return "met"
	default:
		return "**missed**"
	}
}

func (s *Section) row(of *Series) []string {
	middle := func(field func(Sample) float64, format string) string {
		if value := Median(of.Of(field)); value > 0 {
			return fmt.Sprintf(format, value)
		}
		return "0"
	}
	return []string{
		of.Case, fmt.Sprint(of.Size), of.Subject,
		seconds(Median(of.Seconds())), seconds(Quantile(of.Seconds(), 0)), fmt.Sprintf("%.2f", s.Ratio(of)),
		middle(func(one Sample) float64 { return float64(one.Requests) }, "%.0f"),
		middle(func(one Sample) float64 { return float64(one.Objects) }, "%.0f"),
		middle(func(one Sample) float64 { return float64(one.Writes) }, "%.0f"),
		middle(func(one Sample) float64 { return one.ToolCPU }, "%.2f s"),
		middle(func(one Sample) float64 { return one.ServerCPU }, "%.2f s"),
	}
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", s*1000)
	}
	return fmt.Sprintf("%.2f s", s)
}

// align makes a Markdown table of equal columns.
func align(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&out, "| %-*s ", widths[i], cell)
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				out.WriteString("|" + strings.Repeat("-", width+2))
			}
			out.WriteString("|\n")
		}
	}
	return out.String()
}

const preface = `# Benchmarks

Written by ` + "`make bench`" + ` (` + "`test/bench/compare`" + `), which puts the samples behind each line into
` + "`dist/benchmarks.json`" + `, and fails if requests or ratios have become worse than on this page. Times are those of one machine and one run: compare them with one another, not with those of other machines.

* The contestants of a case run one after the other on one control plane, in an order that turns each round. Median and
  minimum are over the rounds; *× kudo* is the median over kudo's, so over 1 kudo is faster.
* Requests are counted by the API server itself (` + "`apiserver_request_total`" + `), until the cluster is idle, so that what is
  sent after the fact (events) counts too. Watches, leases, discovery and reviews of rights do not count, for anybody.
* *Tool CPU* is the CPU time of the command; for kudo also that of its manager, which does the work. *apiserver CPU* is
  that of kube-apiserver.
* Helm's and kubectl's clients render and send from the command itself. kudo's command stores the package and an Instance
  in the cluster, and the manager does the rest: it pays for that with requests of its own, which are in the figures.
`

// Document writes the report as a page. titles are those of all sections, in their order: one that was not measured stays
// as the committed page has it.
func (r *Report) Document(w io.Writer, titles []string, committed Page) error {
	var out strings.Builder
	out.WriteString(preface + "\n")
	fmt.Fprintf(&out, "Machine: %s, %d cores, %.0f GiB, %s.\n\n", r.Machine.CPU, r.Machine.Cores, r.Machine.Memory, r.Machine.OS)
	rows := [][]string{{"program", "version"}}
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		rows = append(rows, []string{name, r.Versions[name]})
	}
	out.WriteString(align(rows))
	for _, title := range titles {
		at := slices.IndexFunc(r.Sections, func(s Section) bool { return s.Title == title })
		if at < 0 {
			out.WriteString(strings.TrimRight("\n"+committed[title], "\n") + "\n")
			continue
		}
		s := &r.Sections[at]
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n", s.Title, s.About)
		fmt.Fprintf(&out, "Measured on %s%s.\n\n", s.Began.UTC().Format("2006-01-02 15:04 UTC"), s.caveats(r.Machine.Cores))
		if err := s.Table(&out); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(out.String(), "\n")+"\n")
	return err
}

// caveats say of what the figures are, and why they are not to be taken for more than they are.
func (s *Section) caveats(cores int) string {
	out := s.version()
	if s.Quick {
		out += ", " + provisional + ": with fewer rounds and smaller sizes (`-quick`)"
	}
	if s.Load > float64(cores)/2 {
		out += fmt.Sprintf(", "+provisional+": on a machine that was busy with something else (load %.1f)", s.Load)
	}
	return out
}

// version names the kudo that was measured.
func (s *Section) version() string {
	if s.Kudo == "" {
		return ""
	}
	return ", kudo " + s.Kudo
}
