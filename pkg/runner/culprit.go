package runner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/plans"
)

// When and how often culprits are searched for. A search costs two lists.
const (
	// searchDelay is how long a step waits before its culprits are searched for, and the shortest time between two searches.
	searchDelay = 10 * time.Second
	// maxSearchDelay is the longest time between two searches while the object that is awaited does not change.
	maxSearchDelay = 5 * time.Minute
	searchTimeout  = 5 * time.Second
	// maxCulprits is how many tasks have their culprits searched for in one Execute.
	maxCulprits = 4
	// maxSearchResults is how many results are kept. A search whose result is dropped is made again.
	maxSearchResults = 4096
)

// searchKey is a place in a run.
type searchKey struct {
	run types.UID
	at  plans.Place
}

// suspect is the object that a task waits for, or that has failed.
type suspect struct {
	id apply.ID
	// live is the object, or nil if it could not be written.
	live *unstructured.Unstructured
	// err is why it could not be written.
	err error
}

// version is the resourceVersion of the object, or "".
func (s *suspect) version() string {
	if s.live == nil {
		return ""
	}
	return s.live.GetResourceVersion()
}

// searchResult is what was found of an object last.
type searchResult struct {
	// id and version are those of the object.
	id      apply.ID
	version string
	// step is the start of the step.
	step time.Time
	// at and next are the times of this search and of the next one, if the object does not change.
	at, next time.Time
	found    *v1beta1.Culprit
}

// due is when a search may have another answer: the object has changed, or has not for a time that doubles with each search.
func (s *searchResult) due(of *suspect) time.Time {
	if soon := s.at.Add(searchDelay); of.version() != s.version && soon.Before(s.next) {
		return soon
	}
	return s.next
}

// suspectOf returns the object that a task waits for, or that has failed, or nil if there is none.
func (w *PreparedTask) suspectOf(effects Effects) *suspect {
	if w.suspect == nil && len(effects.Failed) > 0 {
		return &suspect{id: effects.Failed[0].ID, err: effects.Failed[0].Err}
	}
	return w.suspect
}

// explain puts the culprit of a task into its outcome, and returns when the next search is due; the zero time if none is.
//
//	the task is done                                no culprit
//	it has failed                                   a search
//	its step was started less than 10 s ago         none yet, a search is due then
//	the object was searched, and has not changed   the same culprit, until a search is due after 10 s, 20 s, 40 s and so on
//	else                                            a search
func (r *Runner) explain(ctx context.Context, run *Run, w *PreparedTask, outcome *plans.Outcome, effects Effects,
	before *v1beta1.Culprit) time.Time {
	of := w.suspectOf(effects)
	if of == nil || outcome.State == plans.Done {
		r.searchResults.Remove(searchKey{run.UID, w.Place})
		return time.Time{}
	}
	known := r.lastSearch(run, w, of)
	if outcome.State != plans.Fatal {
		if due := w.started.Add(searchDelay); w.now.Before(due) {
			return due
		}
		if known != nil && w.now.Before(known.due(of)) {
			outcome.Culprit = known.found
			return known.due(of)
		}
		if run.searches >= maxCulprits {
			outcome.Culprit = before
			return w.now.Add(time.Second)
		}
	}
	run.searches++
	found := culprit.Keep(r.search(ctx, run, of, before, w.started), before)
	if found.Since == nil {
		found.Since = &metav1.Time{Time: w.now.Truncate(time.Second)}
	}
	result := &searchResult{id: of.id, version: of.version(), step: w.started, at: w.now, next: w.now.Add(searchDelay), found: &found}
	if known != nil && known.version == of.version() {
		result.next = w.now.Add(min(2*known.next.Sub(known.at), maxSearchDelay))
	}
	if found.Reason == v1beta1.CulpritUnread { // the answer changes only if rights do
		result.next = w.now.Add(maxSearchDelay)
	}
	r.searchResults.Add(searchKey{run.UID, w.Place}, result)
	outcome.Culprit = &found
	return result.next
}

// lastSearch returns the result of the last search for an object in a step, or nil if there was none.
func (r *Runner) lastSearch(run *Run, w *PreparedTask, of *suspect) *searchResult {
	if known, ok := r.searchResults.Get(searchKey{run.UID, w.Place}); ok {
		if s := known.(*searchResult); s.id == of.id && s.step.Equal(w.started) {
			return s
		}
	}
	return nil
}

// search finds what keeps an object from being ready, with the rights of the account of the run.
func (r *Runner) search(ctx context.Context, run *Run, of *suspect, before *v1beta1.Culprit, since time.Time) v1beta1.Culprit {
	found := v1beta1.Culprit{Namespace: of.id.Namespace, Name: of.id.Name}
	found.APIVersion, found.Kind = of.id.ToAPIVersionAndKind()
	switch {
	case of.live == nil && of.err != nil:
		found.Reason, found.Message = string(apierrors.ReasonForError(of.err)), of.err.Error()
	case of.live != nil:
		o := culprit.Options{Since: since}
		if before != nil {
			o.Known = before.Pod
		}
		found = r.searchLive(ctx, run, of.live, o)
	}
	return culprit.Bounded(found, run.mask)
}

func (r *Runner) searchLive(ctx context.Context, run *Run, live *unstructured.Unstructured, o culprit.Options) v1beta1.Culprit {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	engine, err := r.accounts.Engine(run.Account)
	if err != nil {
		return culprit.Find(live, nil, "").Culprit
	}
	f, err := culprit.Search(ctx, lister{engine}, live, o)
	if !apierrors.IsForbidden(err) {
		return f.Culprit
	}
	if live.GetKind() == "Job" && f.Pod == "" {
		if pods, err := culprit.PodsOf(ctx, lister{r.engine}, live); err == nil {
			if known := culprit.Find(live, pods, o.Known); known.ExitCode != nil {
				known.Message = ""
				return known.Culprit
			}
		}
	}
	if f.Pod == "" && f.Message == "" {
		what := "events"
		if !f.PodsRead {
			what = "pods"
		}
		f.Reason, f.Message = v1beta1.CulpritUnread, fmt.Sprintf("the cause is not known, since %s may not list %s", run.Account, what)
	}
	return f.Culprit
}

// lister lists with the rights of an engine.
type lister struct{ engine *apply.Engine }

// Pods implements culprit.Reader.
func (l lister) Pods(ctx context.Context, namespace, labels string) ([]corev1.Pod, error) {
	return listed[corev1.Pod](ctx, l.engine, "pods", namespace, metav1.ListOptions{LabelSelector: labels, Limit: culprit.MaxPods})
}

// Events implements culprit.Reader.
func (l lister) Events(ctx context.Context, namespace, fields string) ([]corev1.Event, error) {
	return listed[corev1.Event](ctx, l.engine, "events", namespace, metav1.ListOptions{FieldSelector: fields, Limit: culprit.MaxEvents})
}

// listed lists objects of a core kind. One that is malformed is left out.
func listed[T any](ctx context.Context, engine *apply.Engine, resource, namespace string, options metav1.ListOptions) ([]T, error) {
	list, err := engine.ListContent(ctx, corev1.SchemeGroupVersion.WithResource(resource), namespace, options)
	if err != nil {
		return nil, err
	}
	var out []T
	for i := range list.Items {
		var item T
		if apiruntime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &item) == nil {
			out = append(out, item)
		}
	}
	return out, nil
}
