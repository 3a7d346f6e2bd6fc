package act

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/plans"
)

// Rollback sets an Instance back to what an earlier run was started with.
type Rollback struct {
	Instance *v1beta1.Instance
	// Revision is the number of the run; 0 is the newest that was complete and had another version or other parameters than the Instance has.
	Revision int64
	// AfterRunning is set if the plan that runs is to end first; otherwise it is cancelled.
	AfterRunning bool
}

// Change implements Edit. It is an error if there is no such run, if the run cannot be read, and if it would change nothing.
func (r Rollback) Change(ctx context.Context, c client.Client) (Change, error) {
	namespace, name := r.Instance.Namespace, r.Instance.Name
	runs, err := history.List(ctx, c, r.Instance)
	if err != nil {
		return Change{}, err
	}
	for _, run := range slices.Backward(runs) {
		if !r.accepts(run) {
			continue
		}
		if run.Unread != nil {
			return Change{}, fmt.Errorf("read run %d of Instance %s/%s: %w", r.Revision, namespace, name, run.Unread)
		}
		back, err := r.specEdit(ctx, c, run)
		switch {
		case err != nil:
			return Change{}, err
		case back != nil:
			return r.changeTo(run.Revision, back), nil
		case r.Revision != 0:
			return Change{}, fmt.Errorf("instance %s/%s has the version and the parameters of run %d already", namespace, name, r.Revision)
		}
	}
	if r.Revision != 0 {
		return Change{}, fmt.Errorf("instance %s/%s has no run %d any more: kubectl kudo plan history --instance %s lists those that it has",
			namespace, name, r.Revision, name)
	}
	return Change{}, fmt.Errorf("instance %s/%s has no complete run with another version or other parameters than it has now", namespace, name)
}

// Preview implements Edit.
func (r Rollback) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "rollback", r.Instance, change.Apply)
}

// Command implements Action.
func (r Rollback) Command() string {
	var args []string
	if r.Revision != 0 {
		args = append(args, "--to-revision", strconv.FormatInt(r.Revision, 10))
	}
	if r.AfterRunning {
		args = append(args, "--after-running")
	}
	return commandOf("rollback", r.Instance, args...)
}

// accepts reports whether a run is one to go back to: the run of the revision, or, if none is given, each complete run that can be read.
// A run from before a restore is never one.
func (r Rollback) accepts(run history.Entry) bool {
	switch {
	case run.Former:
		return false
	case r.Revision != 0:
		return run.Revision == r.Revision
	}
	return run.Status == v1beta1.Complete && run.Unread == nil
}

// changeTo returns the one change of a rollback: it edits the spec, and requests the cancellation of the active run, because the plans of
// the new spec would wait for its end. The cleanup plan of an Instance that is being deleted is never cancelled, since that would give the
// cleanup up.
func (r Rollback) changeTo(revision int64, back func(*v1beta1.Instance)) Change {
	verb := fmt.Sprintf("set back to run %d", revision)
	running := plans.Running(r.Instance.Status.PlanStatus)
	uid := r.Instance.Status.PlanStatus[running].UID
	switch {
	case running == "" || uid == "" || r.Instance.DeletionTimestamp != nil:
		return Change{Verb: verb, Apply: back}
	case r.AfterRunning:
		return Change{Verb: fmt.Sprintf("%s, after plan %s has ended", verb, running), Apply: back}
	}
	return Change{Verb: fmt.Sprintf("%s; plan %s, which was running, is being cancelled", verb, running),
		Apply: func(i *v1beta1.Instance) {
			back(i)
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.CancelAnnotation, string(uid))
		}}
}

// specEdit returns the edit that gives the Instance the version and the parameters of a run, or nil if it has them.
func (r Rollback) specEdit(ctx context.Context, c client.Client, run history.Entry) (func(*v1beta1.Instance), error) {
	ov := &v1beta1.OperatorVersion{}
	in, called, _ := strings.Cut(run.Version, "/")
	key := types.NamespacedName{Namespace: in, Name: called}
	if err := c.Get(ctx, key, ov); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("operatorversion %s, which run %d was started with, does not exist any more: install it with kubectl kudo "+
			"install --skip-instance", key, run.Revision)
	} else if err != nil {
		return nil, err
	}
	sourced, err := paramsource.Read(ctx, c, r.Instance, ov.Spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("read the parameters that spec.parametersFrom gives: %w", err)
	}
	wanted := parametersOf(run, r.Instance, sourced.Given)
	if key == r.Instance.OperatorVersionKey() && maps.Equal(wanted, r.Instance.Spec.Parameters) {
		return nil, nil
	}
	return func(i *v1beta1.Instance) {
		if key != i.OperatorVersionKey() {
			i.Spec.OperatorVersion.Name, i.Spec.OperatorVersion.Namespace = key.Name, ""
			if key.Namespace != i.Namespace {
				i.Spec.OperatorVersion.Namespace = key.Namespace
			}
		}
		i.Spec.Parameters = wanted
	}, nil
}

// parametersOf returns the spec.parameters that give an Instance the values of a run. A value of a sensitive parameter is not recorded, so
// that the present one stays. A parameter that is not in spec.parameters stays out of it if a source gives it, or if the value of the run
// is the default that was fixed at creation.
func parametersOf(r history.Entry, instance *v1beta1.Instance, sourced map[string]string) map[string]string {
	wanted := map[string]string{}
	for name, value := range r.Parameters {
		present, written := instance.Spec.Parameters[name]
		_, elsewhere := sourced[name]
		switch {
		case slices.Contains(r.Sensitive, name):
			if written {
				wanted[name] = present
			}
		case !written && (elsewhere || isFixedDefault(instance, name, value)):
		default:
			wanted[name] = value
		}
	}
	return wanted
}

// isFixedDefault reports whether a value is the default of an immutable parameter that was fixed when the Instance was created.
func isFixedDefault(instance *v1beta1.Instance, name, value string) bool {
	if instance.Status.Baseline == nil {
		return false
	}
	fixed, is := instance.Status.Baseline.ImmutableDefaults[name]
	return is && fixed == value
}
