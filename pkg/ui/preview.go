package ui

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/pkg/act"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/pkg/text"
)

const (
	// previewTime is how long the cluster may take to answer what a preview asks.
	previewTime = 30 * time.Second
	// maxPreviews is how many previews are computed at a time: each asks the API server as much as a run of the plans.
	maxPreviews = 2
	// maxPreview bounds the text of a preview, in bytes.
	maxPreview = 512 << 10
)

// errLate is the error of a preview of which nothing is known.
var errLate = errors.New("the cluster did not answer within " + previewTime.String() + " what would happen: try again later")

// previewed is what the page of a preview shows.
type previewed struct {
	// Problem is why there is no preview; empty if there is one.
	Problem string
	// Back is the address of the page with the forms.
	Back string
	// Command is the command of the action. Expects is set if it does only what the preview shows.
	Command string
	Expects bool
	// Fails is set if the action would be refused, or a plan would fail; Unknown is how much is not known.
	Fails   bool
	Unknown int
	Text    string
}

// previewPage returns the page of a preview. It answers a POST: values stand in no address (U9). It asks by dry runs, and changes nothing.
func (s *Server) previewPage(r *http.Request) screen {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	v := view{Title: "Preview of " + key.Namespace + "/" + key.Name, Nav: "instances", Fixed: true}
	out := previewed{Back: instanceLink(key) + "/change"}
	if err := s.preview(r, key, &out); err != nil {
		out.Problem, v.Status = long(err.Error()), http.StatusUnprocessableEntity
	}
	v.Form = &fragment{Template: "preview", Data: out}
	return still(func() view { return v })
}

// preview computes the preview of what a form asks for.
func (s *Server) preview(r *http.Request, key client.ObjectKey, out *previewed) error {
	if err := r.ParseForm(); err != nil {
		return errors.New("the form cannot be read: " + err.Error())
	}
	select {
	case s.previews <- struct{}{}:
		defer func() { <-s.previews }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	reads, cancel := context.WithTimeout(r.Context(), changeTime)
	defer cancel()
	t, err := s.readTarget(reads, key)
	if err != nil {
		return err
	}
	action, err := t.actionOf(r.PostForm)
	if err != nil {
		return errors.New(t.mask.Text(err.Error()))
	}
	p, err := action.Preview(r.Context(), &act.Previewer{Config: s.Config, Client: s.client, Limit: previewTime, Late: errLate})
	if err != nil {
		return errors.New(t.mask.Text(err.Error()))
	}
	out.Command, out.Fails, out.Unknown = action.Command(), p.Fails(), p.Unknown()
	if out.Expects = !out.Fails; out.Expects {
		out.Command += " --expect " + p.Digest
	}
	out.Text, err = t.textOf(p)
	return err
}

// textOf returns a preview as the command line prints it. The values that were sensitive in a run are masked, too: the preview knows those
// that are.
func (t *target) textOf(p *preview.Preview) (string, error) {
	var b strings.Builder
	if err := p.WriteText(&b); err != nil {
		return "", err
	}
	return text.Truncate(t.mask.Text(b.String()), maxPreview), nil
}
