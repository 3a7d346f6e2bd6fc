package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/act"
)

// Names of the fields by which a form says what the user has seen: the digest of the preview, and the generation of the Instance, or a
// token for a new one, so that a form that is posted twice acts once.
const (
	fieldDigest     = "digest"
	fieldGeneration = "generation"
)

// manager is the field manager of what the page writes: the history names it.
const manager = client.FieldOwner(v1beta1.CommandManagerPrefix + "ui")

// errConflict is the error of an Instance that has changed between the preview and the write.
var errConflict = errors.New("another client has changed the Instance at this moment: go back, and preview it again")

// uncertainError is the error of a write whose answer was lost or came too late: the API server may have done the write.
type uncertainError struct{ error }

// outcomeOf returns what an error means for who wanted to act.
func outcomeOf(err error) string {
	if errors.As(err, &uncertainError{}) {
		return "It is not known whether it was done: look at the Instance, and preview again. " + err.Error()
	}
	return "Nothing was done: " + err.Error()
}

// uncertain returns the error of a write: that of an answer by which the API server has written nothing, or an uncertainError.
func uncertain(err error) error {
	var answer apierrors.APIStatus
	if err == nil || errors.As(err, &answer) && answer.Status().Code/100 == 4 {
		return err
	}
	return uncertainError{err}
}

// maxTokens bounds how many tokens are kept.
const maxTokens = 1000

// tokens are those of the forms that can be posted once.
type tokens struct {
	mu   sync.Mutex
	kept map[string]bool
}

// give returns a new token. If too many are kept, the others are dropped.
func (t *tokens) give() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil || len(t.kept) >= maxTokens {
		t.kept = map[string]bool{}
	}
	token := rand.Text()
	t.kept[token] = true
	return token
}

// take reports whether a token is kept, and drops it.
func (t *tokens) take(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.kept[token]
	delete(t.kept, token)
	return known
}

// newGeneration returns what a form says of the generation of the Instance. One that is to be made has none: the form has a token instead.
func (c *computation) newGeneration(t *tokens) string {
	if _, is := c.action.(act.Install); is {
		return t.give()
	}
	return c.generation()
}

// isGeneration reports whether a form says what newGeneration has returned, and the Instance has not changed since. It takes a token.
func (c *computation) isGeneration(said string, t *tokens) bool {
	if _, is := c.action.(act.Install); is {
		return t.take(said)
	}
	return said == c.generation()
}

// generation returns the uid and the generation of the Instance: one that was created anew is another one. A retry does not change them, so
// that the run that has failed stands behind them.
func (c *computation) generation() string {
	out := fmt.Sprintf("%s %d", c.Instance.UID, c.Instance.Generation)
	if retry, is := c.action.(act.Retry); is {
		if name, err := retry.Plan(); err == nil {
			out += " " + string(c.Instance.Status.PlanStatus[name].UID)
		}
	}
	return out
}

// actOn returns the handler that does what the user has seen in a preview, and leads to the page of the Instance. If it would do something
// else now, it shows the new preview instead (U6). Without Options.AllowActions, no route leads here (U5).
func (s *Server) actOn(placeOf func(*http.Request) place) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.act(w, r, placeOf(r)) }
}

// act answers a form that asks for an action.
func (s *Server) act(w http.ResponseWriter, r *http.Request, p place) {
	c, err := s.compute(r, p)
	changed := false
	if err == nil {
		changed = c.preview.Digest != r.PostForm.Get(fieldDigest) || !c.isGeneration(r.PostForm.Get(fieldGeneration), &s.tokens)
		if !changed && !c.preview.Fails() {
			if err = s.write(r.Context(), c); err == nil {
				http.Redirect(w, r, instanceLink(client.ObjectKeyFromObject(c.Instance)), http.StatusSeeOther)
				return
			}
		}
	}
	s.show(func(r *http.Request) screen {
		v := s.viewOf(r, p, c, err, changed)
		return still(func() view { return v })
	})(w, r)
}

// write does an action. The Instance must be as it was read, unless the action names the run that it is for.
func (s *Server) write(ctx context.Context, c *computation) error {
	ctx, cancel := context.WithTimeout(ctx, s.computeTime)
	defer cancel()
	err := s.do(ctx, c)
	switch {
	case apierrors.IsConflict(err):
		return errConflict
	case errors.As(err, &uncertainError{}):
		return uncertainError{errors.New(c.mask.Text(err.Error()))}
	case err != nil:
		return errors.New(c.mask.Text(err.Error()))
	}
	return nil
}

func (s *Server) do(ctx context.Context, c *computation) error {
	if install, is := c.action.(act.Install); is {
		return uncertain(install.Create(ctx, s.client, manager))
	}
	uninstall, is := c.action.(act.Uninstall)
	if !is {
		return uncertain(act.Write(ctx, s.client, c.Instance.DeepCopy(), !c.change.IsBound, c.change.Apply, manager))
	}
	all, err := act.WithChildren(ctx, s.client, c.Instance)
	if err != nil && uninstall.KeepClaims {
		return fmt.Errorf("the Instances that are deleted with this one are not known: %w", err)
	}
	effects, err := uninstall.Effects(ctx, s.client, s.Config, all)
	if err != nil {
		return err
	}
	return uncertain(uninstall.Delete(ctx, s.client, effects, true))
}

// missingRight returns what the user lacks for an action; empty if nothing is missing.
func (s *Server) missingRight(ctx context.Context, c *computation) string {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	key, verb := client.ObjectKeyFromObject(c.Instance), "patch"
	switch c.action.(type) {
	case act.Uninstall:
		verb = "delete"
	case act.Install:
		verb, key.Name = "create", "" // the API server knows no name when it asks for the right to create
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: key.Namespace, Name: key.Name, Verb: verb,
			Group: v1beta1.GroupVersion.Group, Resource: "instances"}}}
	switch err := s.client.Create(ctx, review); {
	case err != nil:
		return "it is not known whether you may " + verb + " this Instance: " + err.Error()
	case !review.Status.Allowed:
		return "you may not " + verb + " instances.kudo.dev in namespace " + key.Namespace
	}
	return ""
}
