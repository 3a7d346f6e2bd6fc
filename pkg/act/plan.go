package act

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/preview"
	"kudo.dev/kudo/plans"
)

// Trigger starts a plan of an Instance.
type Trigger struct {
	Instance *v1beta1.Instance
	Plan     string
}

// Check returns an error if Instances of the OperatorVersion do not have the plan.
func (t Trigger) Check(ov *v1beta1.OperatorVersion) error {
	if t.Plan == ov.Spec.InstallPlan {
		return fmt.Errorf("plan %q is the install plan of operatorversion %s, which Instances do not run: to run it again after a failure, "+
			"use kubectl kudo plan retry --operator-version %s", t.Plan, ov.Name, ov.Name)
	}
	if names := plans.Names(ov.Spec.InstancePlans()); !slices.Contains(names, t.Plan) {
		return fmt.Errorf("plan %q does not exist in operatorversion %s: it has %v", t.Plan, ov.Name, names)
	}
	return nil
}

// Change implements Edit.
func (t Trigger) Change(ctx context.Context, c client.Client) (Change, error) {
	ov, err := FindVersion(ctx, c, t.Instance)
	if err != nil {
		return Change{}, err
	}
	return Change{Verb: "triggered: plan " + t.Plan, Apply: t.Apply}, t.Check(ov)
}

// Apply requests the run in the spec of an Instance.
func (t Trigger) Apply(i *v1beta1.Instance) {
	i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: t.Plan, UID: types.UID(uuid.NewString())}
}

// Preview implements Edit.
func (t Trigger) Preview(ctx context.Context, p *Previewer, change Change) (*preview.Preview, error) {
	return p.Instance(ctx, "trigger", t.Instance, change.Apply)
}

// Command implements Action.
func (t Trigger) Command() string { return commandOf("plan trigger", t.Instance, "--name", t.Plan) }

// checkRuns returns an error if the plans of the Instance run elsewhere, where each cluster has runs of its own.
func checkRuns(i *v1beta1.Instance) error {
	if !i.IsTemplate() {
		return nil
	}
	return fmt.Errorf("instance %s/%s is placed on clusters, and each has runs of its own: name one of them by --cluster", i.Namespace, i.Name)
}

// Retry runs the plan of an Instance that has failed last again.
type Retry struct {
	Instance *v1beta1.Instance
}

// Plan returns the plan that has failed last. It is an error if the last plan has not failed.
func (r Retry) Plan() (string, error) {
	if err := checkRuns(r.Instance); err != nil {
		return "", err
	}
	name, run := plans.LatestRun(r.Instance.Status.PlanStatus)
	if run.Status != v1beta1.FatalError {
		return "", fmt.Errorf("the last plan of instance %s/%s has not failed: use kubectl kudo plan trigger to run one", r.Instance.Namespace,
			r.Instance.Name)
	}
	return name, nil
}

// Change implements Edit.
func (r Retry) Change(context.Context, client.Client) (Change, error) {
	name, err := r.Plan()
	if err != nil {
		return Change{}, err
	}
	uid := string(r.Instance.Status.PlanStatus[name].UID)
	return Change{Verb: fmt.Sprintf("plan %s of instance %s/%s is being retried", name, r.Instance.Namespace, r.Instance.Name),
		Apply: func(i *v1beta1.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.RetryAnnotation, uid) }}, nil
}

// Preview implements Edit.
func (r Retry) Preview(ctx context.Context, p *Previewer, _ Change) (*preview.Preview, error) {
	name, err := r.Plan()
	if err != nil {
		return nil, err
	}
	return p.retry(ctx, r.Instance, name)
}

// Command implements Action.
func (r Retry) Command() string { return commandOf("plan retry", r.Instance) }

// Cancel ends the plan of an Instance that runs. Of an Instance that is being deleted, it gives up the cleanup plan, if that has failed.
type Cancel struct {
	Instance *v1beta1.Instance
}

// Plan returns the plan that is cancelled. It is an error if none runs.
func (c Cancel) Plan() (string, error) {
	if err := checkRuns(c.Instance); err != nil {
		return "", err
	}
	name := plans.Running(c.Instance.Status.PlanStatus)
	if name == "" && c.Instance.DeletionTimestamp != nil {
		name = v1beta1.CleanupPlan
	}
	if name == "" {
		return "", fmt.Errorf("no plan of instance %s/%s is running", c.Instance.Namespace, c.Instance.Name)
	}
	return name, nil
}

// Change implements Edit.
func (c Cancel) Change(context.Context, client.Client) (Change, error) {
	name, err := c.Plan()
	if err != nil {
		return Change{}, err
	}
	uid := string(c.Instance.Status.PlanStatus[name].UID)
	return Change{Verb: fmt.Sprintf("plan %s of instance %s/%s is being cancelled", name, c.Instance.Namespace, c.Instance.Name),
		IsBound: true, Apply: func(i *v1beta1.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1beta1.CancelAnnotation, uid) }}, nil
}

// Preview implements Edit. It asks the cluster nothing: the plan ends where it is.
func (c Cancel) Preview(context.Context, *Previewer, Change) (*preview.Preview, error) {
	name, err := c.Plan()
	if err != nil {
		return nil, err
	}
	run := fmt.Sprintf("run %d of plan %s", c.Instance.Status.PlanStatus[name].Revision, name)
	out := &preview.Preview{Verb: "cancel", Subject: fmt.Sprintf("Instance %s/%s", c.Instance.Namespace, c.Instance.Name),
		Stays: []preview.Stay{{Object: "what " + run + " has written", Why: "the run ends where it is, and sets nothing back"}}}
	if c.Instance.DeletionTimestamp != nil {
		out.Warnings = append(out.Warnings, "the cleanup is given up: the Instance is deleted without it")
	}
	return preview.Of(out, nil)
}

// Command implements Action.
func (c Cancel) Command() string { return commandOf("plan cancel", c.Instance) }
