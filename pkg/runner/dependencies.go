package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"kudo.dev/kudo/apis/config/v1alpha1"
	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/explore"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

const (
	// maxDependencies is how many dependencies of one object are looked for.
	maxDependencies = 100
	// maxSearched is how many objects one run looks for, or has found.
	maxSearched = 1000
	// maxNamedDependencies is how many dependencies of one object, and how many objects of one task, a message names.
	maxNamedDependencies = 3
	// dependencyTime is how long one Execute asks about dependencies and looks for them; the next one continues. A question that has begun is
	// ended by the bounds of the layers only.
	dependencyTime = 10 * time.Second
	// minSearchTime is how long objects are looked for all the same after an answer that took long, so that the next Execute knows more.
	minSearchTime = 2 * time.Second
	// maxDependencyText is the length of one dependency, and of the reason why it is not known, in a message, in bytes.
	maxDependencyText = 300
)

// dependencies is what a run knows of the objects that its objects depend on.
type dependencies struct {
	// made are the labels of the objects that the tasks of the run make, as far as they are rendered. The IDs have no version.
	made map[apply.ID]labels.Set
	// partial is set if a task of the batch could not be rendered at the moment, so that made lacks what the task makes.
	partial bool
	// answers are the dependencies of objects, by the digest of the rendered object.
	answers map[[sha256.Size]byte]*dependencyAnswer
	// presences holds which objects were there and which were not.
	presences map[string]presence
	// clock measures the time that is left of dependencyTime.
	clock clock.PassiveClock
	left  time.Duration
	// mask takes sensitive values out of a text; nil takes nothing.
	mask func(string) string
}

// dependencyAnswer is what an object depends on.
type dependencyAnswer struct {
	list []v1alpha1.DependentObjectReference
	// found is set if there is something, and all of it was there.
	found bool
}

// errTimeSpent is the reason why something is not known of dependencies.
var errTimeSpent = fmt.Errorf("kudo looks for dependencies for %s at a time, and continues later", dependencyTime)

// presence is what a search for an object has found. An error says why that is not known.
type presence struct {
	exists bool
	err    error
}

// begin prepares for one Execute. Objects that were found are not looked for again, all others are. Answers with dependencies that were not
// found are dropped, since no watch shows that a webhook is repaired; and all answers are dropped if rules have changed.
func (d *dependencies) begin(changed bool, clock clock.PassiveClock, mask func(string) string) {
	d.clock, d.left, d.mask = clock, dependencyTime, mask
	if d.presences == nil || changed {
		d.answers = map[[sha256.Size]byte]*dependencyAnswer{}
	}
	maps.DeleteFunc(d.answers, func(_ [sha256.Size]byte, a *dependencyAnswer) bool { return !a.found })
	there := map[string]presence{}
	for key, p := range d.presences {
		if p.exists {
			there[key] = p
		}
	}
	d.presences = there
	if d.made == nil {
		d.made = map[apply.ID]labels.Set{}
	}
}

// noteMade notes what a task makes.
func (d *dependencies) noteMade(w *PreparedTask) {
	if w.deletes {
		return
	}
	for _, obj := range w.objects {
		d.made[unversioned(apply.IDOf(obj))] = obj.GetLabels()
	}
	for _, obj := range w.Artifacts() {
		d.made[unversioned(apply.IDOf(obj))] = obj.GetLabels()
	}
}

// note records whether an object exists, which another part of the run has found out.
func (d *dependencies) note(id apply.ID, exists bool) {
	if d.presences != nil {
		d.presences[presenceKey(id, "")] = presence{exists: exists}
	}
}

// makes reports whether the run makes an object, or one that a selector matches if there is no name.
func (d *dependencies) makes(id apply.ID, selector labels.Selector) bool {
	if id.Name != "" {
		_, found := d.made[unversioned(id)]
		return found
	}
	for made, set := range d.made {
		made.Name = ""
		if made == unversioned(id) && selector.Matches(set) {
			return true
		}
	}
	return false
}

func unversioned(id apply.ID) apply.ID {
	id.Version = ""
	return id
}

func presenceKey(id apply.ID, selector string) string {
	return strings.Join([]string{id.Group, id.Version, id.Kind, id.Namespace, id.Name, selector}, "\n")
}

// needs are the dependencies of an object that are not there, and those of which that is not known.
type needs struct {
	missing, unknown []string
	// found are the same, each by itself.
	found []DependencyFinding
	// unanswered is why no layer says what the object depends on.
	unanswered error
}

// String is what a message says of the dependencies, or "" if all are there: `needs Secret a/b: missing`.
func (n needs) String() string {
	var parts []string
	if n.missing != nil {
		parts = append(parts, "needs "+text.List(n.missing, maxNamedDependencies)+": missing")
	}
	if n.unknown != nil {
		parts = append(parts, "needs "+text.List(n.unknown, maxNamedDependencies)+": not known")
	}
	if n.unanswered != nil {
		parts = append(parts, "its dependencies are not known: "+n.unanswered.Error())
	}
	return strings.Join(parts, "; ")
}

// checkDependencies looks for what the objects of a task depend on, before the task writes. Objects without DependenciesAnnotation are
// only asked about if they are to be written.
//
//	annotation   missing   not known
//	(none)       said      said
//	await        waits     waits
//	refuse       fatal     said
//	another      fatal     fatal
func (r *Runner) checkDependencies(ctx context.Context, w *PreparedTask) {
	if w.outcome != nil || w.deletes {
		return
	}
	var said []string
	var waiting *plans.Outcome
	for _, obj := range annotatedFirst(w.objects) {
		mode, err := v1beta1.DependencyModeOf(obj.GetAnnotations())
		if err != nil {
			w.decide(plans.Fatal, fmt.Sprintf("%s: %s", apply.IDOf(obj), err))
			return
		}
		if !w.isToWrite(obj) && (mode == v1beta1.IgnoreDependencies || r.isWritten(w, obj)) {
			continue
		}
		n := r.findNeeds(ctx, w, obj)
		switch {
		case n.String() == "":
			continue
		case mode == v1beta1.RefuseDependencies && n.missing != nil:
			state := plans.Fatal
			if w.run.depends.partial { // the plan may make it
				state = plans.Transient
			}
			w.decide(state, fmt.Sprintf("%s is not written: %s: create it and run the plan again, or remove the annotation %s=%s from "+
				"the template", apply.IDOf(obj), n, v1beta1.DependenciesAnnotation, mode))
			return
		case mode == v1beta1.AwaitDependencies && waiting == nil:
			waiting = n.wait(obj, w.run.Account)
		}
		said = append(said, fmt.Sprintf("%s: %s", apply.IDOf(obj), n))
	}
	if waiting != nil {
		w.outcome = waiting
		return
	}
	w.needs = text.List(said, maxNamedDependencies)
}

// annotatedFirst returns objects in their order, but those with DependenciesAnnotation first: what the task does depends on the answers
// about them, and the time for all may not suffice.
func annotatedFirst(objs []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := slices.Clone(objs)
	rank := func(obj *unstructured.Unstructured) int {
		if _, annotated := obj.GetAnnotations()[v1beta1.DependenciesAnnotation]; annotated {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// wait returns the outcome of a task that waits for the dependencies of an object. No watch shows that a layer answers again, so that a
// missing answer is asked for with back-off.
func (n needs) wait(obj *unstructured.Unstructured, account apply.Account) *plans.Outcome {
	state, remedy := plans.Waiting, "create it"
	switch {
	case n.unanswered != nil:
		state, remedy = plans.Transient, "correct the rule or the webhook"
	case n.missing == nil:
		remedy = fmt.Sprintf("let %s read it", account)
	}
	return &plans.Outcome{State: state, Message: fmt.Sprintf("%s is not written yet: %s: %s, or remove the annotation %s=%s from the template",
		apply.IDOf(obj), n, remedy, v1beta1.DependenciesAnnotation, v1beta1.AwaitDependencies)}
}

// isToWrite reports whether an object differs from the last write. For an install plan, only new objects count: shared objects are compared
// when they are written.
func (w *PreparedTask) isToWrite(obj *unstructured.Unstructured) bool {
	if w.run.Installation != nil {
		return w.run.Held.Find(apply.IDOf(obj)) < 0
	}
	return !apply.SameHash(w.inventory[apply.IDOf(obj)].Hash, obj, w.run.Keys)
}

// isWritten reports whether an object that is not to be written is there, as the Instance has made it.
func (r *Runner) isWritten(w *PreparedTask, obj *unstructured.Unstructured) bool {
	if w.run.Installation != nil {
		return true // the Installation holds it
	}
	live, _ := r.mirror.Get(apply.IDOf(obj))
	uid := w.inventory[apply.IDOf(obj)].UID
	return uid != "" && live != nil && live.GetUID() == uid
}

// remark returns which missing objects an object needs, with a colon at the end; empty if none is missing.
func (r *Runner) remark(ctx context.Context, w *PreparedTask, id apply.ID) string {
	for _, obj := range w.objects {
		if apply.IDOf(obj) != id {
			continue
		}
		if n := r.findNeeds(ctx, w, obj).String(); n != "" {
			return n + ": "
		}
	}
	return ""
}

// findNeeds asks what a rendered object of a task depends on, and looks for that.
func (r *Runner) findNeeds(ctx context.Context, w *PreparedTask, obj *unstructured.Unstructured) needs {
	return w.run.depends.find(ctx, r.all, obj, func(ctx context.Context, id apply.ID, selector labels.Selector) (bool, error) {
		return r.exists(ctx, w, id, selector)
	})
}

// exists looks for an object: without a request if it is in the inventory and in the mirror, else by one for its metadata, with the rights
// of the run. The mirror alone does not count: the message would show objects that the account of the run may not read.
func (r *Runner) exists(ctx context.Context, w *PreparedTask, id apply.ID, selector labels.Selector) (bool, error) {
	if _, made := w.inventory[id]; made && id.Namespace == w.run.Subject.Namespace {
		if live, _ := r.mirror.Get(id); live != nil {
			return true, nil
		}
	}
	engine, err := r.accounts.Engine(w.run.Account)
	if err != nil {
		return false, err
	}
	return engine.Exists(ctx, id, selector)
}

// existsFunc reports whether an object exists, or one that the selector matches if the ID has no name.
type existsFunc func(ctx context.Context, id apply.ID, selector labels.Selector) (bool, error)

// find asks what a rendered object depends on, and looks for that. An answer that named something, all of which is there, is kept for
// the run, for each form of the object.
func (d *dependencies) find(ctx context.Context, all Interpreter, obj *unstructured.Unstructured, exists existsFunc) needs {
	start := d.clock.Now()
	before := d.left
	defer func() { d.left = before - d.clock.Since(start) }()
	answer, err := d.ask(ctx, all, obj)
	if err != nil {
		return needs{unanswered: errors.New(d.plain(err.Error()))}
	}
	list := answer.list
	var out needs
	if more := len(list) - maxDependencies; more > 0 {
		list = list[:maxDependencies]
		out.unknown = append(out.unknown, fmt.Sprintf("%d more objects (kudo looks for %d)", more, maxDependencies))
	}
	limit := before - d.clock.Since(start)
	if before > 0 {
		limit = max(limit, minSearchTime)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, reference := range list {
		name, p := d.findPresence(ctx, reference, exists)
		switch {
		case p.err != nil:
			reason := d.plain(p.err.Error())
			out.unknown = append(out.unknown, fmt.Sprintf("%s (%s)", name, reason))
			out.found = append(out.found, DependencyFinding{reference, DependencyUnknown, reason})
		case !p.exists:
			out.missing = append(out.missing, name)
			out.found = append(out.found, DependencyFinding{reference, DependencyMissing, ""})
		}
	}
	// No dependencies may be the answer in place of a webhook that did not respond and may be ignored.
	answer.found = len(list) > 0 && out.missing == nil && out.unknown == nil
	return out
}

// ask asks what a rendered object depends on, once an Execute for each form of it, unless the time is spent.
func (d *dependencies) ask(ctx context.Context, all Interpreter, obj *unstructured.Unstructured) (*dependencyAnswer, error) {
	form, comparable := apply.Digest(obj)
	if known := d.answers[form]; known != nil && comparable {
		return known, nil
	}
	if d.left <= 0 {
		return nil, errTimeSpent
	}
	answer, _, err := all.Explore(ctx, explore.Request{Operation: explore.Dependencies, Object: obj})
	if err != nil {
		return nil, err
	}
	if len(d.answers) >= maxSearched { // a new content of a mounted object changes the pod template, and so the key
		clear(d.answers)
	}
	asked := &dependencyAnswer{list: answer.Dependencies}
	d.answers[form] = asked
	return asked, nil
}

// plain is a text for a message, without sensitive values: a value that was cut in two would not be found later.
func (d *dependencies) plain(s string) string {
	if d.mask != nil {
		s = d.mask(s)
	}
	return text.Plain(s, maxDependencyText)
}

// findPresence looks for a dependency that the run does not make and has not looked for yet. It returns the name for messages, too.
func (d *dependencies) findPresence(ctx context.Context, reference v1alpha1.DependentObjectReference,
	exists existsFunc) (string, presence) {
	id := apply.ID{GroupVersionKind: schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)}
	id.Namespace, id.Name = reference.Namespace, reference.Name
	name, key, selector := d.plain(id.String()), presenceKey(id, ""), labels.Nothing()
	if id.Name == "" {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(reference.LabelSelector); err != nil {
			return d.plain(id.Kind), presence{err: err}
		}
		name = d.plain(fmt.Sprintf("%s %s with labels %q", id.Kind, id.Namespace, selector))
		key = presenceKey(id, selector.String())
	}
	if d.makes(id, selector) {
		return name, presence{exists: true}
	}
	p, known := d.presences[key]
	switch {
	case known:
	case len(d.presences) >= maxSearched:
		p.err = fmt.Errorf("kudo looks for %d objects in a run", maxSearched)
	case ctx.Err() != nil:
		p.err = errTimeSpent
	default:
		if p.exists, p.err = exists(ctx, id, selector); p.err != nil && ctx.Err() != nil {
			return name, presence{err: errTimeSpent}
		}
		d.presences[key] = p
	}
	return name, p
}
