package instances

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/paramsource"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/plans"
)

// NewRollback returns the command rollback.
func NewRollback(env *command.Env) *cobra.Command {
	w, o := &command.WaitFlags{}, rollbackOptions{}
	cmd := newInstanceCommand(env, "rollback NAME", "Set an Instance back to what an earlier run was started with",
		func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
			return rollbackTo(ctx, env, c, i, o, w)
		})
	cmd.Long = `Set the operator version and the parameters of an Instance back to those of an earlier run, which kubectl kudo plan history
lists. The plans that such a change starts are run: nothing but the plans changes what is in the cluster. Values of Secrets
and ConfigMaps that spec.parametersFrom names stay as they are there. A plan that runs is cancelled, so that the rollback does
not wait behind one that may never end.

  kubectl kudo rollback db --to-revision 3 --wait`
	cmd.Flags().Int64Var(&o.revision, "to-revision", 0, "number of the run (default the newest that was complete and had other values or "+
		"another version than the Instance has now)")
	cmd.Flags().BoolVar(&o.afterRunning, "after-running", false, "wait behind the plan that runs, and do not cancel it")
	o.preview.add(cmd.Flags())
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.preview.check(env) }
	w.Add(cmd.Flags(), "the plans that the change starts have ended")
	return cmd
}

// rollbackOptions are the flags of rollback: the run to go back to (0 selects the newest suitable run), and whether a running plan ends
// first.
type rollbackOptions struct {
	revision     int64
	afterRunning bool
	preview      previewFlags
}

func rollbackTo(ctx context.Context, env *command.Env, c client.WithWatch, instance *v1beta1.Instance, o rollbackOptions,
	w *command.WaitFlags) error {
	namespace, name, revision := instance.Namespace, instance.Name, o.revision
	runs, err := history.List(ctx, c, instance)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(runs) {
		if !o.accepts(r) {
			continue
		}
		if r.Unread != nil {
			return fmt.Errorf("read run %d of Instance %s/%s: %w", revision, namespace, name, r.Unread)
		}
		back, err := rollbackEdit(ctx, c, instance, r)
		if err != nil {
			return err
		}
		if back == nil {
			if revision != 0 {
				return fmt.Errorf("instance %s/%s has the version and the parameters of run %d already", namespace, name, revision)
			}
			continue
		}
		edit := o.editOf(instance, r.Revision, back)
		if done, err := o.preview.show(env, c, func(p *previewer) (*preview.Preview, error) {
			return p.instance(ctx, "rollback", instance, edit.apply)
		}); done || err != nil {
			return err
		}
		return changeInstance(ctx, env, c, instance, w, o.preview.lock(edit.verb, edit.apply))
	}
	if revision != 0 {
		return fmt.Errorf("instance %s/%s has no run %d any more: kubectl kudo plan history --instance %s lists those that it has", namespace,
			name, revision, name)
	}
	return fmt.Errorf("instance %s/%s has no complete run with another version or other parameters than it has now", namespace, name)
}

// accepts reports whether a run is one to go back to: the run of the revision, or, if none is given, each complete run that can be read.
// A run from before a restore is never one.
func (o rollbackOptions) accepts(r history.Entry) bool {
	switch {
	case r.Former:
		return false
	case o.revision != 0:
		return r.Revision == o.revision
	}
	return r.Status == v1beta1.Complete && r.Unread == nil
}

// editOf returns the one edit of a rollback: it changes the spec, and requests the cancellation of the active run, because the plans of
// the new spec would wait for its end. The cleanup plan of an Instance that is being deleted is never cancelled, since that would give the
// cleanup up.
func (o rollbackOptions) editOf(instance *v1beta1.Instance, revision int64, back func(*v1beta1.Instance)) instanceEdit {
	verb := fmt.Sprintf("set back to run %d", revision)
	running := plans.Running(instance.Status.PlanStatus)
	uid := instance.Status.PlanStatus[running].UID
	switch {
	case running == "" || uid == "" || instance.DeletionTimestamp != nil:
		return instanceEdit{verb: verb, apply: back}
	case o.afterRunning:
		return instanceEdit{verb: fmt.Sprintf("%s, after plan %s has ended", verb, running), apply: back}
	}
	return instanceEdit{verb: fmt.Sprintf("%s; plan %s, which was running, is being cancelled", verb, running),
		apply: func(i *v1beta1.Instance) {
			back(i)
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.CancelAnnotation, string(uid))
		}}
}

// rollbackEdit is the edit that gives an Instance the version and the parameters of a run, or nil if it has them.
func rollbackEdit(ctx context.Context, c client.Client, instance *v1beta1.Instance, r history.Entry) (func(*v1beta1.Instance), error) {
	ov := &v1beta1.OperatorVersion{}
	in, called, _ := strings.Cut(r.Version, "/")
	key := types.NamespacedName{Namespace: in, Name: called}
	if err := c.Get(ctx, key, ov); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("operatorversion %s, which run %d was started with, does not exist any more: install it with kubectl kudo "+
			"install --skip-instance", key, r.Revision)
	} else if err != nil {
		return nil, err
	}
	sourced, err := paramsource.Read(ctx, c, instance, ov.Spec.Parameters)
	if err != nil {
		return nil, fmt.Errorf("read the parameters that spec.parametersFrom gives: %w", err)
	}
	wanted := parametersOf(r, instance, sourced.Given)
	if key == instance.OperatorVersionKey() && maps.Equal(wanted, instance.Spec.Parameters) {
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
