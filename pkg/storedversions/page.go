package storedversions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
)

const (
	// maxPage is how many objects are rewritten at most before the progress is recorded.
	maxPage = 500
	// maxAnswer bounds what is read of an answer, in bytes: the metadata of 500 objects may be some hundred megabytes.
	maxAnswer = 8 << 20
	// pageTime is how long the objects of a page may take. No other one is begun after it.
	pageTime = 30 * time.Second
)

// page is what is kept of a list of objects.
type page struct {
	objects []types.NamespacedName
	// next is where the next page begins; empty if there is none.
	next string
	// left is how many objects follow, as far as the API server says so.
	left int64
}

// rewritePage rewrites the next page of objects. The last one ends the migration. A page that is too large or too slow ends, and begins
// again with fewer objects: those that were rewritten are not written again.
func (m *Migrator) rewritePage(ctx context.Context, d Definition, state *v1beta1.StoredVersionMigration) (Result, error) {
	result := Result{Action: Rewrite}
	if d.Resource.Version == "" {
		deferRetry(state, fmt.Sprintf("the storage version %s of CustomResourceDefinition %s is not served, so that its objects cannot be "+
			"rewritten: serve it", d.Storage, d.Name), m.clock.Now())
		return result, nil
	}
	size := pageSize(state)
	p, err := m.list(ctx, d, state.Continue, size)
	switch {
	case apierrors.IsResourceExpired(err) && state.Continue != "":
		resume(state, err)
		return result, nil
	case errors.Is(err, errLarge) && size > 1:
		state.PageSize = max(size/4, 1)
		return result, nil
	case err != nil:
		return result, fmt.Errorf("list objects of CustomResourceDefinition %s: %w", d.Name, err)
	}
	began := m.clock.Now()
	refusals, err := m.rewriteAll(ctx, d, p.objects)
	if err != nil {
		return result, err
	}
	if len(refusals) < len(p.objects) {
		state.PageSize = max(int64(len(refusals))/2, 1)
		return result, nil
	}
	next := state.DeepCopy()
	count(d, next, p, refusals)
	if m.clock.Now().Sub(began) < pageTime/4 {
		next.PageSize = grown(size)
	}
	switch {
	case next.Refused > 0 && (next.Continue == "" || next.Refused >= maxRefused):
		deferRetry(next, next.Message, m.clock.Now())
	case next.Continue == "":
		result.Finished, err = m.trim(ctx, next)
	}
	if err != nil {
		return result, err
	}
	*state = *next
	return result, nil
}

// pageSize is how many objects the next page has at most.
func pageSize(state *v1beta1.StoredVersionMigration) int64 {
	if state.PageSize <= 0 {
		return maxPage
	}
	return min(state.PageSize, maxPage)
}

// grown is the page size after a quick page.
func grown(size int64) int64 {
	if size *= 2; size < maxPage {
		return size
	}
	return 0
}

// list reads which objects the next page has.
func (m *Migrator) list(ctx context.Context, d Definition, token string, size int64) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := m.objects.Resource(d.Resource).List(ctx, metav1.ListOptions{Limit: size, Continue: token})
	if err != nil {
		return nil, err
	}
	p := &page{next: list.Continue}
	if list.RemainingItemCount != nil {
		p.left = *list.RemainingItemCount
	}
	for i := range list.Items {
		p.objects = append(p.objects, types.NamespacedName{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name})
	}
	return p, nil
}

// rewriteAll rewrites objects, and returns for each whether it was refused. After pageTime, it begins no other one, and returns the answers
// for those before; for one at least.
func (m *Migrator) rewriteAll(ctx context.Context, d Definition, objects []types.NamespacedName) ([]error, error) {
	until, begun := m.clock.Now().Add(pageTime), len(objects)
	refusals := make([]error, len(objects))
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i, object := range objects {
		if i > 0 && m.clock.Now().After(until) {
			begun = i
			break
		}
		group.Go(func() (err error) {
			refusals[i], err = m.rewrite(limited, d, object.Namespace, object.Name)
			return err
		})
	}
	return refusals[:begun], group.Wait()
}

// resume continues after a token that has expired: with the one that the API server offers for the rest of the objects, or from the
// beginning. What was created before the next object meanwhile is in the storage version.
func resume(state *v1beta1.StoredVersionMigration, expired error) {
	var status apierrors.APIStatus
	if errors.As(expired, &status) {
		if offered := status.Status().Continue; offered != "" && offered != state.Continue {
			state.Continue = offered
			return
		}
	}
	state.Continue = ""
}

// count puts what came of a page into the state.
func count(d Definition, state *v1beta1.StoredVersionMigration, p *page, refusals []error) {
	if state.Continue == "" {
		state.Done, state.Refused, state.Blocked = 0, 0, nil
		state.Of = int64(len(p.objects)) + p.left
	}
	for i, refusal := range refusals {
		if refusal == nil {
			state.Done++
			continue
		}
		state.Refused++
		if state.Blocked == nil {
			state.Blocked = &v1beta1.RefusedObject{Namespace: p.objects[i].Namespace, Name: p.objects[i].Name}
			state.Blocked.Message = blockedMessage(d, *state.Blocked, refusal)
		}
	}
	state.Of = max(state.Of, state.Done+state.Refused) // objects may have come since
	state.Continue, state.Message = p.next, ""
	if state.Blocked != nil {
		state.Message = state.Blocked.Message
	}
}

// errLarge is the error of an answer that has more than maxAnswer bytes.
var errLarge = fmt.Errorf("the answer of the API server has more than %d MiB", maxAnswer>>20)

// boundAnswers has answers end with errLarge after maxAnswer bytes.
func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil {
			response.Body = &boundBody{ReadCloser: response.Body, left: maxAnswer}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// boundBody is a body that ends with errLarge after a number of bytes.
type boundBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLarge
	}
	return n, err
}
