package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// maxQuery bounds a text that is searched for, in bytes.
const maxQuery = 200

// listQuery is what an address says of a list.
type listQuery struct {
	Text, Namespace, State string
	Page                   int
}

func readQuery(values url.Values) listQuery {
	return listQuery{Text: text.Truncate(strings.TrimSpace(values.Get("q")), maxQuery), Namespace: values.Get("ns"),
		State: values.Get("state"), Page: pageOf(values)}
}

// link returns the address of another page of the list.
func (q listQuery) link(page int) string {
	return linkTo("/instances", map[string]string{"q": q.Text, "ns": q.Namespace, "state": q.State}, page)
}

// instanceRow is a line of the list of Instances.
type instanceRow struct {
	State           state
	Namespace, Name string
	Operator        string
	Version         string
	Plan            string
	Since           time.Time
	// Wrong is filled for the rows that are shown only: it takes the longest.
	Wrong    string
	Drifted  int
	instance *v1beta1.Instance
}

// Link is the address of the Instance's page.
func (r instanceRow) Link() string { return "/instances/" + r.Namespace + "/" + r.Name }

// instanceList is the data of the table.
type instanceList struct {
	pager
	Feed     feedStatus
	Rows     []instanceRow
	All      int
	Filtered bool
	Command  string
	// In is the namespace that the page shows; empty for all.
	In string
}

// count is how many Instances are in a state.
type count struct {
	State state
	N     int
	Link  string
}

// summary is the data of the line above the table.
type summary struct {
	Feed   feedStatus
	All    int
	Counts []count
}

// filterForm is the data of the form.
type filterForm struct {
	listQuery
	// Fixed is the namespace if the command shows one only.
	Fixed  string
	States []state
}

func (s *Server) instancesPage(r *http.Request) screen {
	q := readQuery(r.URL.Query())
	form := &fragment{Template: "filter", Data: filterForm{q, s.Namespace, instanceStates}}
	return still(func() view {
		rows := s.instanceRows()
		counts, list := s.summarize(rows), s.listInstances(rows, q)
		for n := range list.Rows {
			list.Rows[n].Wrong = s.lineOf(list.Rows[n].instance)
		}
		return view{Title: "Instances", Nav: "instances", Form: form, Fragments: []fragment{
			{ID: "summary", Spoken: true, Template: "summary", Data: counts},
			{ID: "rows", Template: "instances", Data: list},
		}}
	})
}

// instanceRows returns all Instances, those first that need a user.
func (s *Server) instanceRows() []instanceRow {
	all := objectsOf[*v1beta1.Instance](s.instances)
	rows := make([]instanceRow, len(all))
	for n, i := range all {
		rows[n] = rowOf(i)
	}
	slices.SortFunc(rows, func(a, b instanceRow) int {
		return cmp.Or(cmp.Compare(a.State.rank, b.State.rank), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

func rowOf(i *v1beta1.Instance) instanceRow {
	now := stateOf(i)
	row := instanceRow{State: now, Namespace: i.Namespace, Name: i.Name, Operator: i.Labels[v1beta1.OperatorLabel],
		Version: i.Spec.OperatorVersion.Name, Since: sinceOf(i, now), Drifted: len(i.Status.Drift), instance: i}
	if name, done, total := planOf(i); name != "" {
		row.Plan = fmt.Sprintf("%s %d/%d", name, done, total)
	}
	return row
}

const (
	// maxWrong bounds what is wrong in a line, in bytes.
	maxWrong = 240
	// maxLines bounds how many lines are kept.
	maxLines = 1000
)

// line is what is wrong with an Instance, masked, and the resource versions of the Instance and its OperatorVersion that it is of.
type line struct{ instance, version, wrong string }

// lineOf returns in a line what is wrong with an Instance. It makes a mask only after a change of the Instance or its OperatorVersion.
func (s *Server) lineOf(i *v1beta1.Instance) string {
	wrong := wrongOf(i, stateOf(i))
	if wrong == "" {
		return ""
	}
	of := line{instance: i.ResourceVersion}
	ov, known := objectOf[*v1beta1.OperatorVersion](s.versions, i.OperatorVersionKey().Namespace, i.OperatorVersionKey().Name)
	if known {
		of.version = ov.ResourceVersion
	}
	key := client.ObjectKeyFromObject(i)
	s.mu.Lock()
	kept := s.lines[key]
	s.mu.Unlock()
	if kept.instance == of.instance && kept.version == of.version && kept.wrong != "" {
		return kept.wrong
	}
	of.wrong = text.Truncate(maskOf(i.Spec.Parameters, ov, nil).Text(wrong), maxWrong)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) >= maxLines {
		clear(s.lines)
	}
	s.lines[key] = of
	return of.wrong
}

func (s *Server) summarize(rows []instanceRow) summary {
	out := summary{Feed: s.instances.Status(), All: len(rows)}
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.State.Word]++
	}
	for _, st := range instanceStates {
		if n := counts[st.Word]; n > 0 && st != stateReady {
			out.Counts = append(out.Counts, count{st, n, listQuery{State: st.Word}.link(1)})
		}
	}
	return out
}

// listInstances returns one page of the rows that a query finds.
func (s *Server) listInstances(rows []instanceRow, q listQuery) instanceList {
	out := instanceList{Feed: s.instances.Status(), All: len(rows), Filtered: q.Text != "" || q.Namespace != "" || q.State != "",
		Command: "kubectl kudo install PACKAGE", In: s.Namespace}
	if s.Namespace != "" {
		out.Command += " -n " + text.ShellQuote(s.Namespace)
	}
	found := slices.DeleteFunc(rows, func(r instanceRow) bool { return !q.matches(r) })
	out.pager = newPager(len(found), q.Page, q.link)
	out.Rows = found[out.first:out.To]
	return out
}

// matches reports whether each word of the query stands in a name, an operator, a version, a state or a plan of the row.
func (q listQuery) matches(r instanceRow) bool {
	if q.Namespace != "" && q.Namespace != r.Namespace || q.State != "" && q.State != r.State.Word {
		return false
	}
	in := strings.ToLower(strings.Join([]string{r.Namespace + "/" + r.Name, r.Operator, r.Version, r.State.Word, r.Plan}, " "))
	for word := range strings.FieldsSeq(strings.ToLower(q.Text)) {
		if !strings.Contains(in, word) {
			return false
		}
	}
	return true
}
