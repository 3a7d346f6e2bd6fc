package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/plans"
)

func (t *tool) planCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plan", Short: "Look at the plans of an Instance, and start, cancel or retry them"}
	group(cmd)
	cmd.AddCommand(t.planStatus(), t.planHistory(), t.planTrigger(), t.planWait(), t.planCancel(), t.planRetry())
	return cmd
}

// instanceCommand makes a command that works on one Instance.
func (t *tool) instanceCommand(use, short string, run func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, namespace, err := t.connect()
			if err != nil {
				return err
			}
			instance, err := t.find(cmd.Context(), c, namespace, name)
			if err != nil {
				return err
			}
			return run(cmd.Context(), c, instance)
		},
	}
	instanceFlag(cmd, &name)
	return cmd
}

func (t *tool) planStatus() *cobra.Command {
	var output string
	w := &waiting{}
	cmd := t.instanceCommand("status --instance NAME", "Show the plans of an Instance as a tree", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		var failed error // what is there is shown all the same
		if w.wait {
			failed = t.await(ctx, c, i, time.Duration(w.time), settled(i.Generation, i.UID))
			if err := c.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
				return errors.Join(failed, err)
			}
		}
		if output != "" {
			return errors.Join(failed, t.printAny(output, i.Status))
		}
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, i.OperatorVersionKey(), ov) != nil {
			ov = nil
		}
		_, err := fmt.Fprint(t.out, tree(i, ov, time.Now()))
		return errors.Join(failed, err)
	})
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json: print status as such")
	w.add(cmd.Flags(), "no plan runs any more")
	return t.onVersion(cmd, t.versionStatus(&output, w))
}

func (t *tool) planWait() *cobra.Command {
	limit := defaultWait
	cmd := t.instanceCommand("wait --instance NAME", "Wait until no plan of an Instance runs any more", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		if err := t.await(ctx, c, i, time.Duration(limit), settled(i.Generation, i.UID)); err != nil {
			return err
		}
		t.say("instance %s/%s ready", i.Namespace, i.Name)
		return nil
	})
	cmd.Flags().Var(&limit, "wait-time", "how long to wait at most: seconds, or a duration such as 5m")
	return cmd
}

func (t *tool) planTrigger() *cobra.Command {
	var plan string
	w := &waiting{}
	cmd := t.instanceCommand("trigger --instance NAME --name PLAN", "Start a plan", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		if plan == "" {
			return usage("--name is missing: name the plan to start")
		}
		ov := &v1beta1.OperatorVersion{}
		if err := c.Get(ctx, i.OperatorVersionKey(), ov); err != nil {
			return fmt.Errorf("operatorversion %s: %w", i.OperatorVersionKey(), err)
		}
		if plan == ov.Spec.InstallPlan {
			return fmt.Errorf("plan %q is the install plan of operatorversion %s, which Instances do not run: to run it again after a failure, use kubectl kudo plan retry --operator-version %s", plan, ov.Name, ov.Name)
		}
		if runs := ov.Spec.InstancePlans(); !slices.Contains(plans.Names(runs), plan) {
			return fmt.Errorf("plan %q does not exist in operatorversion %s: it has %v", plan, ov.Name, plans.Names(runs))
		}
		return t.change(ctx, c, i, "triggered: plan "+plan, w, func(i *v1beta1.Instance) {
			i.Spec.PlanExecution = v1beta1.PlanExecution{PlanName: plan, UID: types.UID(uuid.NewString())}
		})
	})
	cmd.Flags().StringVar(&plan, "name", "", "name of the plan")
	w.add(cmd.Flags(), "the plan has ended")
	return cmd
}

func (t *tool) planCancel() *cobra.Command {
	return t.instanceCommand("cancel --instance NAME", "End the plan that runs; of a failed cleanup, give it up", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		name := plans.Running(i.Status.PlanStatus)
		if name == "" && i.DeletionTimestamp != nil {
			name = v1beta1.CleanupPlan
		}
		if name == "" {
			return fmt.Errorf("no plan of instance %s/%s is running", i.Namespace, i.Name)
		}
		if err := annotate(ctx, c, i, v1beta1.CancelAnnotation, i.Status.PlanStatus[name].UID); err != nil {
			return err
		}
		t.say("plan %s of instance %s/%s is being cancelled", name, i.Namespace, i.Name)
		return nil
	})
}

func (t *tool) planRetry() *cobra.Command {
	w := &waiting{}
	cmd := t.instanceCommand("retry --instance NAME", "Run the plan that failed last again", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		name := plans.Last(i.Status.PlanStatus)
		if name == "" || i.Status.PlanStatus[name].Status != v1beta1.FatalError {
			return fmt.Errorf("the last plan of instance %s/%s has not failed: use kubectl kudo plan trigger to run one", i.Namespace, i.Name)
		}
		failed := i.Status.PlanStatus[name].UID
		if err := annotate(ctx, c, i, v1beta1.RetryAnnotation, failed); err != nil {
			return err
		}
		t.say("plan %s of instance %s/%s is being retried", name, i.Namespace, i.Name)
		if !w.wait {
			return nil
		}
		over := settled(i.Generation, i.UID)
		err := t.await(ctx, c, i, time.Duration(w.time), func(now *v1beta1.Instance) (bool, error) {
			if now != nil && now.Status.PlanStatus[name].UID == failed {
				return false, nil
			}
			return over(now)
		})
		if err == nil {
			t.say("instance %s/%s ready", i.Namespace, i.Name)
		}
		return err
	})
	w.add(cmd.Flags(), "the plan has ended")
	return t.onVersion(cmd, t.retryVersion(w))
}

func annotate(ctx context.Context, c client.Client, i *v1beta1.Instance, key string, uid types.UID) error {
	return write(ctx, c, i, func(i *v1beta1.Instance) { metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, string(uid)) })
}

// run is one line of the history.
type run struct {
	Revision int64                   `json:"revision"`
	Plan     string                  `json:"plan"`
	Status   v1beta1.ExecutionStatus `json:"status,omitempty"`
	Started  metav1.MicroTime        `json:"started"`
	Finished *metav1.MicroTime       `json:"finished,omitempty"`
	Version  string                  `json:"operatorVersion"`
	Cause    string                  `json:"cause,omitempty"`
	Message  string                  `json:"message,omitempty"`

	parameters map[string]string
	sensitive  []string
}

func (t *tool) planHistory() *cobra.Command {
	var output string
	cmd := t.instanceCommand("history --instance NAME", "List the last runs of an Instance's plans", func(ctx context.Context, c client.WithWatch, i *v1beta1.Instance) error {
		return t.history(ctx, c, i, i.Status.PlanStatus, client.MatchingLabels{v1beta1.InstanceLabel: i.Name}, output)
	})
	cmd.Flags().StringVarP(&output, "output", "o", "", "yaml or json")
	return t.onVersion(cmd, func(ctx context.Context, c client.WithWatch, ov *v1beta1.OperatorVersion) error {
		return t.history(ctx, c, ov, ov.Status.PlanStatus, client.MatchingLabels{v1beta1.HistoryLabel: string(ov.UID)}, output)
	})
}

// history prints the runs of an Instance or an OperatorVersion.
func (t *tool) history(ctx context.Context, c client.Client, owner client.Object, now map[string]v1beta1.PlanStatus, by client.MatchingLabels, output string) error {
	runs, err := runsOf(ctx, c, owner, now, by)
	if err != nil {
		return err
	}
	if output != "" {
		return t.printAny(output, runs)
	}
	rows := [][]string{{"REVISION", "PLAN", "STATUS", "STARTED", "TOOK", "OPERATOR-VERSION", "CAUSE"}}
	for _, r := range runs {
		took := elapsed(&r.Started, r.Finished, time.Now())
		rows = append(rows, []string{fmt.Sprint(r.Revision), r.Plan, string(r.Status), r.Started.Format(time.DateTime), trim(took), r.Version, r.Cause})
	}
	return t.table(rows)
}

// runsOf reads the history: what was started stands in ControllerRevisions, what came of it in the status, and of older
// runs in an annotation.
func runsOf(ctx context.Context, c client.Client, owner client.Object, now map[string]v1beta1.PlanStatus, by client.MatchingLabels) ([]run, error) {
	list := &appsv1.ControllerRevisionList{}
	if err := c.List(ctx, list, client.InNamespace(owner.GetNamespace()), by); err != nil {
		return nil, err
	}
	ended := map[int64]v1beta1.PlanStatus{}
	for _, st := range now {
		ended[st.Revision] = st
	}
	runs, oldest := []run{}, max(0, history.Newest(owner)-history.Limit) // what is older holds a version for a newer run
	for _, object := range list.Items {
		started := history.Run{}
		if object.Revision <= oldest || !metav1.IsControlledBy(&object, owner) || json.Unmarshal(object.Data.Raw, &started) != nil {
			continue
		}
		r := run{Revision: object.Revision, Plan: started.Plan, Started: started.Started, Version: started.OperatorVersion, Cause: started.Cause, parameters: started.Parameters, sensitive: started.Sensitive}
		if st, known := ended[object.Revision]; known {
			r.Status, r.Finished, r.Message = st.Status, st.FinishedTimestamp, st.Message
		} else if o := history.OutcomeOf(&object); o != nil {
			r.Status, r.Finished, r.Message = o.Status, o.Finished, o.Message
		}
		runs = append(runs, r)
	}
	sort.Slice(runs, func(a, b int) bool { return runs[a].Revision < runs[b].Revision })
	return runs, nil
}
