package runner

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/operators/versions"
	"kudo.dev/kudo/pkg/apply"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/task"
)

// prepareShared awaits an Instance that others use, too. Nothing is written: it is installed, upgraded and deleted by itself.
//
//	it does not exist, or is being deleted     waits
//	it is not ready                            waits
//	it is of another operator                  fatal
//	its versions are not in the ranges         fatal
//	else                                       done
//
// The OperatorVersion that it runs is read only when it is ready: then it may use that, wherever it is.
func (r *Runner) prepareShared(ctx context.Context, run *Run, w *PreparedTask, t task.KudoOperator) *PreparedTask {
	switch {
	case run.Installation != nil:
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: spec.shared cannot be used in an install plan, which belongs to no Instance: "+
			"remove it", w.Name))
	case t.InstanceName == run.Subject.Name:
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: spec.instanceName is the Instance itself, which cannot wait for itself: give "+
			"this Instance another name", w.Name))
	case run.Plan == v1beta1.CleanupPlan: // an Instance that is being deleted must not wait for one that may be deleted, too
		return w.decide(plans.Done, "")
	}
	if t.EnablingParameter != "" {
		if on, err := run.boolParameter(t.EnablingParameter); err != nil || !on {
			return w.decideSwitch(err)
		}
	}
	id := apply.ID{GroupVersionKind: v1beta1.GroupVersion.WithKind("Instance")}
	id.Namespace, id.Name = run.Subject.Namespace, t.InstanceName
	r.mirror.Watch(ctx, id.GroupVersionKind)
	wait := func(format string, args ...any) *PreparedTask {
		w.effects.Recheck = true // the run owns nothing whose events would come
		return w.decide(plans.Waiting, fmt.Sprintf(format, args...))
	}
	live, err := r.engine.Lookup(ctx, id)
	switch {
	case err != nil:
		return w.failed(err)
	case live == nil:
		return wait("needs %s of operator %s%s, which others can use, too, and which does not exist: kubectl kudo install PACKAGE --instance %s "+
			"-n %s installs it", id, t.Package, wantedVersions(t), id.Name, id.Namespace)
	case live.GetDeletionTimestamp() != nil:
		return wait("needs %s, which is being deleted", id)
	}
	if result, unknown := r.Health(ctx, live); result.State != health.Ready || unknown != nil {
		return wait("%s: %s", id, result.Message)
	}
	version, err := r.runningVersion(ctx, live)
	if err != nil {
		return w.failed(err)
	}
	if version == nil {
		return wait("needs %s, and what it runs is not known", id)
	}
	if err := checkShared(*version, id, t); err != nil {
		return w.decide(plans.Fatal, err.Error())
	}
	return w.decide(plans.Done, "")
}

// decideSwitch ends a task whose Instance is switched off, or whose switch cannot be read.
func (w *PreparedTask) decideSwitch(err error) *PreparedTask {
	if err != nil {
		return w.decide(plans.Fatal, fmt.Sprintf("task %q: %s", w.Name, err))
	}
	return w.decide(plans.Done, "")
}

// sharedVersion is what an OperatorVersion says that it is.
type sharedVersion struct{ operator, app, operatorVersion string }

// runningVersion returns what the OperatorVersion that an Instance runs says that it is; nil if it does not exist.
func (r *Runner) runningVersion(ctx context.Context, instance *unstructured.Unstructured) (*sharedVersion, error) {
	id := apply.ID{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion")}
	running, _, _ := unstructured.NestedString(instance.Object, "status", "baseline", "operatorVersion")
	id.Namespace, id.Name, _ = strings.Cut(running, "/")
	if id.Name == "" {
		return nil, nil
	}
	version, err := r.engine.Lookup(ctx, id)
	if err != nil || version == nil {
		return nil, err
	}
	out := &sharedVersion{}
	out.operator, _, _ = unstructured.NestedString(version.Object, "spec", "operator", "name")
	out.app, _, _ = unstructured.NestedString(version.Object, "spec", "appVersion")
	out.operatorVersion, _, _ = unstructured.NestedString(version.Object, "spec", "version")
	return out, nil
}

// checkShared says why an Instance of a version is not what a task awaits.
func checkShared(v sharedVersion, id apply.ID, t task.KudoOperator) error {
	if v.operator != t.Package {
		return fmt.Errorf("%s is of operator %s, and the package needs one of %s: name another Instance in spec.instanceName of the task, or "+
			"install this package in another namespace", id, v.operator, t.Package)
	}
	for _, of := range []struct{ field, is, wanted string }{
		{"appVersion", v.app, t.AppVersion}, {"operatorVersion", v.operatorVersion, t.OperatorVersion},
	} {
		fits, err := versions.Matches(of.is, of.wanted)
		if err != nil {
			return err
		}
		if !fits {
			return fmt.Errorf("%s has %s %s, and the package needs %s: upgrade it if all that use it take another version, or use another "+
				"version of the package", id, of.field, of.is, of.wanted)
		}
	}
	return nil
}

// wantedVersions puts the ranges of a task into words.
func wantedVersions(t task.KudoOperator) string {
	out := ""
	for _, of := range []struct{ field, wanted string }{{"appVersion", t.AppVersion}, {"operatorVersion", t.OperatorVersion}} {
		if of.wanted != "" {
			out += ", " + of.field + " " + of.wanted
		}
	}
	return out
}
