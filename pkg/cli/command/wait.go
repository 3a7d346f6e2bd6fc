package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// InstanceCondition reports whether a wait for an Instance is over, and how it ended. The Instance is nil if it is absent.
type InstanceCondition func(*v1beta1.Instance) (done bool, err error)

// UntilArrived is met when the controller has observed the generation, and no plan is running or queued. It returns an error
// if the newest run failed, unless a retry of that run is requested, which changes no generation: the next run counts then.
func UntilArrived(generation int64, uid types.UID) InstanceCondition {
	return func(i *v1beta1.Instance) (bool, error) {
		switch {
		case i == nil, uid != "" && i.UID != uid:
			return true, fmt.Errorf("the Instance was deleted")
		case i.Status.ObservedGeneration < generation:
			return refusal(i, generation)
		case plans.Running(i.Status.PlanStatus) != "", len(i.Status.Queue) > 0, i.Status.AggregatedStatus.Status == v1beta1.Pending:
			return false, nil
		}
		if done, err := refusal(i, generation); done {
			return done, err
		}
		last, run := plans.LatestRun(i.Status.PlanStatus)
		if last == "" {
			return false, nil
		}
		if plans.IsRetryRequested(i.Annotations, i.Status.PlanStatus[last]) {
			return false, nil
		}
		if run.Status == v1beta1.FatalError {
			return true, WithCode(ExitFailed, fmt.Errorf("plan %s failed: %s", last, run.Message))
		}
		return true, nil
	}
}

// refusal ends a wait with an error if the controller has refused the spec, or cannot record a run of it.
func refusal(i *v1beta1.Instance, generation int64) (bool, error) {
	for _, c := range i.Status.Conditions {
		refused := c.Reason == v1beta1.ReasonInvalidSpec || c.Reason == v1beta1.ReasonRecordNameTaken
		if refused && c.Type == v1beta1.ReadyCondition && c.ObservedGeneration >= generation {
			return true, WithCode(ExitFailed, fmt.Errorf("%s", c.Message))
		}
	}
	return false, nil
}

// UntilDeleted is met when the Instance is absent. It returns an error if the cleanup plan failed, and no retry of it is requested.
func UntilDeleted(uid types.UID) InstanceCondition {
	return func(i *v1beta1.Instance) (bool, error) {
		if i == nil || i.UID != uid {
			return true, nil
		}
		st := i.Status.PlanStatus[v1beta1.CleanupPlan]
		if st.Status == v1beta1.FatalError && !plans.IsRetryRequested(i.Annotations, st) {
			return true, WithCode(ExitFailed, fmt.Errorf("plan cleanup failed, so the Instance stays: %s. Correct the cause and run kubectl kudo "+
				"plan retry, or give the cleanup up with kubectl kudo plan cancel", st.Message))
		}
		return false, nil
	}
}

// watcher watches one Instance, and draws its plans.
type watcher struct {
	env      *Env
	client   client.WithWatch
	key      types.NamespacedName
	screen   screen
	changes  changeLines
	start    time.Time
	instance *v1beta1.Instance
	version  *v1beta1.OperatorVersion
	// mode is how what is awaited is shown, as progressMode returns it.
	mode string
	// over is set when the wait is over: what is drawn then is left.
	over bool
}

// follow watches until the condition is met, or until the watch ends.
func (w *watcher) follow(ctx context.Context, known *v1beta1.Instance, over InstanceCondition) (bool, error) {
	return observe(ctx, w.client, &v1beta1.InstanceList{}, known, func() { w.redraw(ctx) }, func(obj client.Object) (bool, error) {
		w.instance, _ = obj.(*v1beta1.Instance)
		return over(w.instance)
	})
}

// observe watches one object until see returns true, or until the watch ends. It begins with the known object, which is read
// from the API server if it has no resourceVersion. An absent object is nil for see; draw is called after each event, and
// twice a second.
func observe(ctx context.Context, c client.WithWatch, list client.ObjectList, known client.Object, draw func(),
	see func(client.Object) (bool, error)) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	from := &client.ListOptions{Namespace: known.GetNamespace(), FieldSelector: fields.OneTermEqualSelector("metadata.name", known.GetName())}
	since := known.GetResourceVersion()
	if since == "" {
		var err error
		if known, err = first(ctx, c, list, from); err != nil {
			return false, err
		}
		since = list.GetResourceVersion()
	}
	if done, err := see(known); done {
		return true, err
	}
	from.Raw = listOptions(since)
	events, err := c.Watch(ctx, list, from)
	if err != nil {
		return false, err
	}
	defer events.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	draw()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		case e, open := <-events.ResultChan():
			if !open {
				return false, nil
			}
			if done, err := seeEvent(e, see); done || err != nil {
				return done, err
			}
		}
		draw()
	}
}

// seeEvent gives see the object of an event, or nil if the object was deleted. It returns an error that the API server sends in place of
// an object.
func seeEvent(e watch.Event, see func(client.Object) (bool, error)) (bool, error) {
	if e.Type == watch.Error {
		return false, apierrors.FromObject(e.Object)
	}
	obj, ok := e.Object.(client.Object)
	if !ok {
		return false, nil
	}
	if e.Type == watch.Deleted {
		obj = nil
	}
	if done, err := see(obj); done {
		return true, err
	}
	return false, nil
}

// first returns the first object of a list, or nil if there is none.
func first(ctx context.Context, c client.Client, list client.ObjectList, options client.ListOption) (client.Object, error) {
	if err := c.List(ctx, list, options); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	obj, _ := items[0].(client.Object)
	return obj, nil
}

// redraw draws the plans, with the message of an Instance that waits, or writes a line for each change.
func (w *watcher) redraw(ctx context.Context) {
	if w.instance == nil || w.mode == progressNone {
		return
	}
	if w.mode == progressPlain {
		message := ""
		if !w.ended() {
			message = w.awaited()
		}
		w.changes.report(w.instance.Status.PlanStatus, message, w.env.Now())
		return
	}
	drawn := w.drawPlans(ctx)
	drawn += fmt.Sprintf("%s elapsed", w.env.Now().Sub(w.start).Round(time.Second))
	if message := w.awaited(); message != "" && !w.ended() {
		drawn += ", waits for: " + message
	}
	if w.over {
		w.screen.leave(drawn)
		return
	}
	w.screen.draw(drawn)
}

// drawPlans returns what FormatPlans does.
func (w *watcher) drawPlans(ctx context.Context) string {
	if w.version == nil || w.version.Name != w.instance.Spec.OperatorVersion.Name {
		ov := &v1beta1.OperatorVersion{}
		if w.client.Get(ctx, w.instance.OperatorVersionKey(), ov) == nil {
			w.version = ov
		}
	}
	return FormatPlans(w.instance, w.version, w.env.Now())
}

// ended reports whether no plan is running or queued.
func (w *watcher) ended() bool {
	status := w.instance.Status
	last, _ := plans.LatestRun(status.PlanStatus)
	return last != "" && plans.Running(status.PlanStatus) == "" && len(status.Queue) == 0
}

// awaited returns the message of what the Instance waits for.
func (w *watcher) awaited() string {
	if w.instance == nil {
		return ""
	}
	if m := w.instance.Status.AggregatedStatus.Message; m != "" {
		return m
	}
	for _, c := range w.instance.Status.Conditions {
		if c.Type == v1beta1.ReadyCondition && c.Status != "True" {
			return c.Message
		}
	}
	if len(w.instance.Status.Conditions) == 0 {
		return "the manager to take it up (is it running? kubectl get pods -n kudo-system)"
	}
	return ""
}

// reason returns why the Instance is not ready. If a plan is queued, it names the plan that runs before it.
func (w *watcher) reason() string {
	if w.instance != nil {
		if queued := plans.Queued(w.instance); queued != "" {
			return queued
		}
	}
	return w.awaited()
}

// explained adds what is known of the cause to the error of a plan that has failed, or that takes too long.
func (w *watcher) explained(ctx context.Context, err error) error {
	var coded *CodeError
	if w.instance == nil || !errors.As(err, &coded) || coded.Code != ExitFailed && coded.Code != ExitTimeout {
		return err
	}
	if refused, _ := refusal(w.instance, 0); refused { // no run has failed by that
		return err
	}
	return withDetails(err, w.env.ExplainInstance(ctx, w.client, w.instance))
}

// listOptions make a watch begin at a resourceVersion.
func listOptions(resourceVersion string) *metav1.ListOptions {
	return &metav1.ListOptions{ResourceVersion: resourceVersion}
}

// WaitForInstance watches an Instance until the condition is met, and draws its plans. It begins with the known Instance if
// that has a resourceVersion.
func (env *Env) WaitForInstance(ctx context.Context, c client.WithWatch, known *v1beta1.Instance, limit time.Duration,
	over InstanceCondition) error {
	w := &watcher{mode: env.progressMode(), changes: changeLines{writef: env.Notef}}
	return env.waitForInstance(ctx, c, known, limit, over, w)
}

// WatchInstance watches an Instance until the condition is met, without a limit: it draws its plans on a terminal, and prints a line for
// each change elsewhere.
func (env *Env) WatchInstance(ctx context.Context, c client.WithWatch, known *v1beta1.Instance, over InstanceCondition) error {
	w := &watcher{mode: progressAuto, changes: changeLines{writef: env.Printf, withLast: true}}
	if !env.IsTerminal() {
		w.mode = progressPlain
	}
	return env.waitForInstance(ctx, c, known, watchLimit, over, w)
}

// watchLimit is how long an Instance is watched at most.
const watchLimit = 365 * 24 * time.Hour

func (env *Env) waitForInstance(ctx context.Context, c client.WithWatch, known *v1beta1.Instance, limit time.Duration,
	over InstanceCondition, w *watcher) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	key := client.ObjectKeyFromObject(known)
	w.env, w.client, w.key, w.screen, w.start = env, c, key, screen{env: env}, env.Now()
	for {
		done, err := w.follow(ctx, known, over)
		known = &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		w.over = done || ctx.Err() == context.DeadlineExceeded
		if done {
			w.redraw(ctx)
			return w.explained(ctx, err)
		}
		if ctx.Err() == context.DeadlineExceeded {
			w.redraw(context.WithoutCancel(ctx))
			return w.explained(context.WithoutCancel(ctx),
				WithCode(ExitTimeout, fmt.Errorf("instance %s is not ready after %s: %s", key, limit, w.reason())))
		}
		if ctx.Err() != nil {
			return w.interrupted()
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
}
