package ui

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/preview"
)

const (
	// previewTime is how long the cluster may take to answer what a preview asks.
	previewTime = 30 * time.Second
	// computeTime is how long a preview may take in all, with what is read before and the webhooks that are asked: others wait for its place.
	computeTime = changeTime + 2*previewTime
	// maxPreviews is how many previews are computed at a time: each asks the API server as much as a run of the plans.
	maxPreviews = 2
	// maxPreview bounds the text of a preview, in bytes.
	maxPreview = 512 << 10
)

// errLate is the error of what the cluster did not answer in time.
var errLate = errors.New("the cluster did not answer in time: try again later")

// previewView is what the page of a preview shows.
type previewView struct {
	// Problem is why there is no preview; empty if there is one.
	Problem string
	// Changed is set if another preview than this one was to be done.
	Changed bool
	// Back is the address of the page with the forms.
	Back string
	// Command is the command of the action. Expects is set if it does only what the preview shows.
	Command string
	Expects bool
	// Fails is set if the action would be refused, or a plan would fail; Unknown is how much is not known.
	Fails   bool
	Unknown int
	Text    string
	// Form does the action; nil if it cannot be done here.
	Form *actForm
}

// actForm is the form that does what a preview shows.
type actForm struct {
	// Action is the address to post to.
	Action string
	Fields []formField
	// Missing is the right that the user lacks; empty if there is none.
	Missing string
}

// formField is a hidden field of a form.
type formField struct{ Name, Value string }

// computation is a preview with what it is of.
type computation struct {
	*target
	action act.Action
	// change is what an act.Edit writes: the same edit as that of the preview.
	change  act.Change
	preview *preview.Preview
}

// previewPage returns the page of a preview. It answers a POST: values stand in no address (U9). It asks by dry runs, and changes nothing.
func (s *Server) previewPage(placeOf func(*http.Request) place) page {
	return func(r *http.Request) screen {
		p := placeOf(r)
		c, err := s.compute(r, p)
		v := s.viewOf(r, p, c, err, false)
		return still(func() view { return v })
	}
}

// place is what the forms of a page are about.
type place struct {
	// address is that of the page of the subject, and form the name of the page with the forms below it.
	address, form string
	// title names the subject, and nav is the entry of the navigation.
	title, nav string
	// read returns the Instance that a form is about.
	read func(ctx context.Context, form url.Values) (*target, error)
}

// target reads the Instance that a form is about, until the context ends.
func (p place) target(ctx context.Context, form url.Values) (*target, error) {
	t, err := p.read(ctx, form)
	if err != nil && ctx.Err() != nil {
		return nil, errLate
	}
	return t, err
}

// changePlace is an Instance that is there.
func (s *Server) changePlace(r *http.Request) place {
	key := keyOf(r)
	return place{address: instanceLink(key), form: "change", title: key.String(), nav: "instances",
		read: func(ctx context.Context, _ url.Values) (*target, error) { return s.readTarget(ctx, key) }}
}

// keyOf returns which Instance a request is about.
func keyOf(r *http.Request) client.ObjectKey {
	return client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// compute computes the preview of what a form asks for. The error has no sensitive value.
func (s *Server) compute(r *http.Request, p place) (*computation, error) {
	if err := r.ParseForm(); err != nil {
		return nil, errors.New("the form cannot be read: " + err.Error())
	}
	var c *computation
	err := s.withPreviewSlot(r.Context(), func(ctx context.Context) (err error) {
		c, err = s.previewOf(ctx, p, r.PostForm)
		return err
	})
	return c, err
}

// withPreviewSlot calls a function that computes a preview, once there is a place for it, and ends it after a time.
func (s *Server) withPreviewSlot(ctx context.Context, compute func(context.Context) error) error {
	select {
	case s.previews <- struct{}{}:
		defer func() { <-s.previews }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.computeTime)
	defer cancel()
	err := compute(ctx)
	if err != nil && ctx.Err() != nil {
		return errLate
	}
	return err
}

// previewOf computes the preview of the action that a form asks for.
func (s *Server) previewOf(ctx context.Context, p place, form url.Values) (*computation, error) {
	reads, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	t, err := p.target(reads, form)
	if err != nil {
		return nil, err
	}
	action, err := t.actionOf(reads, s.client, form)
	if err != nil {
		return nil, errors.New(t.mask.Text(err.Error()))
	}
	c := &computation{target: t, action: action}
	if err := s.ask(ctx, c); err != nil {
		return nil, errors.New(t.mask.Text(err.Error()))
	}
	return c, nil
}

// previewer returns what asks the cluster with the rights of the user.
func (s *Server) previewer() *act.Previewer {
	return &act.Previewer{Config: s.Config, Client: s.client, Limit: previewTime, Late: errLate}
}

// ask asks the cluster what an action would do.
func (s *Server) ask(ctx context.Context, c *computation) (err error) {
	previewer := s.previewer()
	switch action := c.action.(type) {
	case act.Install:
		if err = action.Check(ctx, s.client); err == nil {
			c.preview, err = action.Preview(ctx, previewer)
		}
	case act.Uninstall:
		c.preview, err = action.Preview(ctx, previewer)
	case act.Edit:
		if c.change, err = action.Change(ctx, s.client); err == nil {
			c.preview, err = action.Preview(ctx, previewer, c.change)
		}
	default:
		err = errors.New("this cannot be done here: copy its command")
	}
	return err
}

// viewOf returns the page of a preview, or of why there is none. changed is set if another one was to be done.
func (s *Server) viewOf(r *http.Request, p place, c *computation, problem error, changed bool) view {
	v := view{Title: "Preview of " + p.title, Nav: p.nav, Fixed: true}
	out := previewView{Back: p.address + "/" + p.form, Changed: changed}
	if problem == nil {
		problem = s.fillPreview(r, p, c, &out)
	}
	switch {
	case problem != nil:
		out.Problem, v.Status = long(outcomeOf(problem)), http.StatusUnprocessableEntity
	case changed:
		v.Status = http.StatusConflict
	}
	v.Form = &fragment{Template: "preview", Data: out}
	return v
}

// fillPreview fills the page of a preview.
func (s *Server) fillPreview(r *http.Request, p place, c *computation, out *previewView) error {
	out.Command, out.Fails, out.Unknown = c.action.Command(), c.preview.Fails(), c.preview.Unknown()
	if out.Expects = !out.Fails && !act.NeedsFile(c.action); out.Expects {
		out.Command += " --expect " + c.preview.Digest
	}
	if s.AllowActions && !out.Fails {
		out.Form = &actForm{Action: p.address + "/act", Missing: s.missingRight(r.Context(), c), Fields: c.fieldsOf(r.PostForm, &s.tokens)}
	}
	shown, err := c.textOf(c.preview)
	if out.Text = shown; c.mask.all || len(shown) > maxPreview {
		out.Command, out.Expects, out.Form = c.action.Command()+" --dry-run", false, nil
		out.Text = "The preview cannot be shown here: it is too long, or has too many sensitive values. The command prints it."
	}
	return err
}

// fieldsOf returns the fields of the form that does the action: those that the user has filled, and what the user has seen.
func (c *computation) fieldsOf(form map[string][]string, t *tokens) []formField {
	out := []formField{{fieldDigest, c.preview.Digest}, {fieldGeneration, c.newGeneration(t)}}
	kept := []string{fieldAction, fieldPlan, fieldVersion, fieldRun, fieldKeep, fieldName, fieldAccount, valuePrefix, formerPrefix,
		unsetPrefix}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		prefix, _, isParameter := strings.Cut(name, ".")
		if isParameter {
			prefix += "."
		}
		if slices.Contains(kept, prefix) {
			out = append(out, formField{name, unixLines(form[name][0])})
		}
	}
	return out
}

// textOf returns a preview as the command line prints it. The values that were sensitive in a run are masked, too: the preview knows those
// that are.
func (t *target) textOf(p *preview.Preview) (string, error) {
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		return "", err
	}
	return t.mask.Text(b.String()), nil
}
