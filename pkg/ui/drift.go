package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
)

const (
	// maxDifferent is how many objects the page of the drift shows, and maxDifferentFields how many fields of each.
	maxDifferent       = 2 * v1beta1.MaxDrift
	maxDifferentFields = 20
)

// driftView is what the page of the drift of an Instance shows.
type driftView struct {
	// Problem is why it cannot be shown; empty if it can.
	Problem string
	// Link is the address of the page of the Instance.
	Link    string
	Objects []differentObject
	// More is how many objects are not shown.
	More int
	// Unknown says what is not known.
	Unknown []string
	// Command shows the same.
	Command string
}

// differentObject is an object that is not as plan deploy writes it, or that another client has changed.
type differentObject struct {
	Name  string
	Drift v1beta1.ObjectDrift
	// Fields have the present value and that which plan deploy writes. More is how many are not shown.
	Fields []preview.Field
	More   int
	Note   string
}

// driftPage returns the page with the differences between the objects of an Instance and what plan deploy writes. It is read once, by the
// dry runs of a preview.
func (s *Server) driftPage(r *http.Request) screen {
	p := s.changePlace(r)
	v := view{Title: "Drift of " + p.title, Nav: p.nav, Fixed: true}
	out := driftView{Link: p.address}
	if err := s.withPreviewSlot(r.Context(), func(ctx context.Context) error { return s.readDrift(ctx, p, &out) }); err != nil {
		out.Problem, v.Status = long(err.Error()), statusOf(err)
		if out.Command != "" && v.Status == http.StatusNotFound { // the Instance is there
			v.Status = http.StatusUnprocessableEntity
		}
	}
	v.Form = &fragment{Template: "drift", Data: out}
	return still(func() view { return v })
}

// readDrift reads what plan deploy would set back. The error has no sensitive value.
func (s *Server) readDrift(ctx context.Context, p place, out *driftView) error {
	reads, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	t, err := p.target(reads, nil)
	if err != nil {
		return err
	}
	out.Command = "kubectl kudo diff" + instanceFlags(t.Instance)
	found, err := s.previewer().Drift(ctx, t.Instance)
	if err != nil {
		return errors.New(t.mask.Text(err.Error()))
	}
	if t.mask.all {
		return errors.New("the Instance has too many sensitive values to search the differences for them: use " + out.Command)
	}
	for _, reason := range unknownReasons(found) {
		out.Unknown = append(out.Unknown, long(t.mask.Text(reason)))
	}
	out.Objects = t.differences(found.Objects, len(out.Unknown) == 0)
	out.More = max(0, len(out.Objects)-maxDifferent)
	out.Objects = out.Objects[:len(out.Objects)-out.More]
	return nil
}

// unknownReasons returns why it is not known what plan deploy would change, for children, too.
func unknownReasons(p *preview.Preview) []string {
	out := slices.Concat(p.Refused, p.UnknownReasons)
	for _, run := range p.Runs {
		if run.Failure != nil {
			out = append(out, strings.TrimSpace("plan "+run.Plan+" would fail "+run.Failure.Step)+": "+run.Failure.Message)
		}
	}
	for _, child := range p.Children {
		for _, reason := range unknownReasons(child) {
			out = append(out, child.Subject+": "+reason)
		}
	}
	return out
}

// differences returns the objects that plan deploy would change, each with what is known of the client that has changed it; then those that
// others have changed besides. known is set if all is known that plan deploy would change.
func (t *target) differences(objects []preview.Object, known bool) []differentObject {
	var out []differentObject
	left := slices.Clone(t.Instance.Status.Drift)
	for _, o := range objects {
		if o.Effect == preview.Unchanged {
			continue
		}
		one := differentObject{Name: o.ID(), Fields: slices.Clone(o.Fields[:min(len(o.Fields), maxDifferentFields)]),
			Note: long(t.mask.Text(noteOf(o)))}
		one.More = len(o.Fields) - len(one.Fields)
		for n, f := range one.Fields {
			one.Fields[n].Path, one.Fields[n].From, one.Fields[n].To = t.mask.Text(f.Path), t.mask.Text(f.From), t.mask.Text(f.To)
		}
		same := v1beta1.ObjectDrift{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		if n := slices.IndexFunc(left, same.IsSameObject); n >= 0 {
			one.Drift = left[n]
			left = slices.Delete(left, n, n+1)
		}
		out = append(out, one)
	}
	note := "plan deploy does not change it"
	if !known {
		note = "it is not known whether plan deploy changes it"
	}
	for _, d := range left {
		out = append(out, differentObject{Name: d.Kind + " " + strings.TrimPrefix(d.Namespace+"/"+d.Name, "/"), Drift: d, Note: note})
	}
	return out
}

// noteOf returns what becomes of an object, unless its fields say so.
func noteOf(o preview.Object) string {
	if o.Effect == preview.Modify && len(o.Fields) > 0 {
		return o.Why
	}
	return strings.TrimSuffix(string(o.Effect)+": "+o.Why, ": ")
}
