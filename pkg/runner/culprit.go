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

// When and how often culprits are looked for. A look costs two lists.
const (
	// lookDelay is how long a step waits before its culprits are looked for, and the shortest time between two looks.
	lookDelay = 10 * time.Second
	// maxLookDelay is the longest time between two looks while the object that is awaited does not change.
	maxLookDelay = 5 * time.Minute
	lookTimeout  = 5 * time.Second
	// maxCulprits is how many tasks are looked into in one Execute.
	maxCulprits = 4
	// maxSightings is how many looks are remembered. One that is forgotten is made again.
	maxSightings = 4096
)

// seenAt is a place in a run.
type seenAt struct {
	run types.UID
	at  plans.Place
}

// suspect is the object that a task waits for, or that has failed.
type suspect struct {
	id apply.ID
	// live is the object; nil if it could not be written.
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

// sighting is what was found of an object last.
type sighting struct {
	// id and version are those of the object.
	id      apply.ID
	version string
	// step is the start of the step.
	step time.Time
	// at and next are the times of this look and of the next one, if the object does not change.
	at, next time.Time
	found    *v1beta1.Culprit
}

// due is when a look may have another answer: the object has changed, or has not for a time that doubles with each look.
func (s *sighting) due(of *suspect) time.Time {
	if soon := s.at.Add(lookDelay); of.version() != s.version && soon.Before(s.next) {
		return soon
	}
	return s.next
}

// suspectOf returns the object that a task waits for, or that has failed; nil if there is none.
func (w *PreparedTask) suspectOf(effects Effects) *suspect {
	if w.suspect == nil && len(effects.Failed) > 0 {
		return &suspect{id: effects.Failed[0].ID, err: effects.Failed[0].Err}
	}
	return w.suspect
}

// explain puts the culprit of a task into its outcome, and returns when the next look is due; the zero time if none is.
//
//	the task is done                                no culprit
//	it has failed                                   a look
//	its step was started less than 10 s ago         none yet, a look is due then
//	the object was looked at, and has not changed   the same culprit, until a look is due after 10 s, 20 s, 40 s and so on
//	else                                            a look
func (r *Runner) explain(ctx context.Context, run *Run, w *PreparedTask, outcome *plans.Outcome, effects Effects,
	before *v1beta1.Culprit) time.Time {
	of := w.suspectOf(effects)
	if of == nil || outcome.State == plans.Done {
		r.sightings.Remove(seenAt{run.UID, w.Place})
		return time.Time{}
	}
	known := r.lastSighting(run, w, of)
	if outcome.State != plans.Fatal {
		if due := w.started.Add(lookDelay); w.now.Before(due) {
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
	found := culprit.Keep(r.look(ctx, run, of, before, w.started), before)
	if found.Since == nil {
		found.Since = &metav1.Time{Time: w.now.Truncate(time.Second)}
	}
	seen := &sighting{id: of.id, version: of.version(), step: w.started, at: w.now, next: w.now.Add(lookDelay), found: &found}
	if known != nil && known.version == of.version() {
		seen.next = w.now.Add(min(2*known.next.Sub(known.at), maxLookDelay))
	}
	if found.Reason == v1beta1.CulpritUnread { // the answer changes only if rights do
		seen.next = w.now.Add(maxLookDelay)
	}
	r.sightings.Add(seenAt{run.UID, w.Place}, seen)
	outcome.Culprit = &found
	return seen.next
}

// lastSighting returns the last look at an object in a step; nil if there was none.
func (r *Runner) lastSighting(run *Run, w *PreparedTask, of *suspect) *sighting {
	if known, ok := r.sightings.Get(seenAt{run.UID, w.Place}); ok {
		if s := known.(*sighting); s.id == of.id && s.step.Equal(w.started) {
			return s
		}
	}
	return nil
}

// look finds what keeps an object from being ready, with the rights of the account of the run.
func (r *Runner) look(ctx context.Context, run *Run, of *suspect, before *v1beta1.Culprit, since time.Time) v1beta1.Culprit {
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
		found = r.lookAt(ctx, run, of.live, o)
	}
	return culprit.Bounded(found, run.mask)
}

func (r *Runner) lookAt(ctx context.Context, run *Run, live *unstructured.Unstructured, o culprit.Options) v1beta1.Culprit {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
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
