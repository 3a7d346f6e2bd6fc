package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/xlab/treeprint"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
	"kudo.dev/kudo/plans/schedule"
)

// FormatPlans draws the plans of an Instance as a tree, or, of an Instance of a hub, a table of its clusters. The OperatorVersion, which
// may be nil, has the strategies.
func FormatPlans(instance *v1beta1.Instance, ov *v1beta1.OperatorVersion, now time.Time) string {
	if instance.IsTemplate() {
		return formatMembers(instance, now)
	}
	status := instance.Status
	root := treeprint.NewWithRoot(fmt.Sprintf("%s (Operator-Version: %q Active-Plan: %q)", instance.Name,
		instance.Spec.OperatorVersion.Name, status.AggregatedStatus.ActivePlanName))
	shown := map[string]v1beta1.PlanStatus{}
	for name, st := range status.PlanStatus {
		shown[name] = st
	}
	if ov != nil {
		for name := range ov.Spec.InstancePlans() {
			if _, known := shown[name]; !known {
				shown[name] = plans.NotRunStatus(name, ov.Spec.Plans[name])
			}
		}
	}
	last, _ := plans.LatestRun(shown)
	for _, name := range plans.Names(shown) {
		var plan v1beta1.Plan
		if ov != nil {
			plan = ov.Spec.Plans[name]
		}
		addPlan(root, shown[name], plan, name == last, now)
	}
	behind := plans.Behind(instance)
	for i, q := range status.Queue {
		cause := plans.DescribeCause(q.Cause, q.RequestedBy)
		root.AddNode(strings.TrimSpace(fmt.Sprintf("Queued %d: plan %s (%s) %s", i+1, q.PlanName, cause, behind)))
		behind = "behind plan " + q.PlanName
	}
	addDrift(root, status.Drift)
	addSchedules(root, instance, now)
	addCondition(root, status.Conditions, v1beta1.ScheduleFailedCondition)
	return fmt.Sprintf("Plan(s) for %q in namespace %q:\n%s", instance.Name, instance.Namespace, root.String())
}

// addSchedules adds when each schedule has run last, and when it is due next. A schedule that is due waits for the start of its plan.
func addSchedules(root treeprint.Tree, instance *v1beta1.Instance, now time.Time) {
	for _, s := range instance.Spec.Schedules {
		st, line := schedule.Find(instance.Status.Schedules, s.Name), fmt.Sprintf("Schedule %s: plan %s", s.Name, s.Plan)
		if st.LastRun != 0 {
			line += fmt.Sprintf(", last run %d [%s]", st.LastRun, st.LastResult)
		}
		switch {
		case st.Next != nil && st.Next.Time.Before(now):
			line += ", due since " + formatTick(st.Next) + ", waits"
		case st.Next != nil:
			line += ", next " + formatTick(st.Next)
		case s.Suspend:
			line += ", suspended"
		}
		root.AddNode(line)
	}
}

func formatTick(at *metav1.Time) string { return at.UTC().Format("2006-01-02 15:04 MST") }

// FormatInstallPlan draws the install plan of an OperatorVersion as a tree.
func FormatInstallPlan(ov *v1beta1.OperatorVersion, now time.Time) string {
	status := ov.Status
	root := treeprint.NewWithRoot(fmt.Sprintf("%s (Install-Plan: %q Status: %q)", ov.Name, ov.Spec.InstallPlan,
		status.AggregatedStatus.Status))
	if st, known := status.PlanStatus[ov.Spec.InstallPlan]; known {
		addPlan(root, st, ov.Spec.Plans[ov.Spec.InstallPlan], true, now)
	} else {
		addPlan(root, plans.NotRunStatus(ov.Spec.InstallPlan, ov.Spec.Plans[ov.Spec.InstallPlan]), ov.Spec.Plans[ov.Spec.InstallPlan], true, now)
	}
	addDrift(root, status.Drift)
	addCondition(root, status.Conditions, v1beta1.ReleasedCondition)
	return fmt.Sprintf("Install plan of operatorversion %q in namespace %q:\n%s", ov.Name, ov.Namespace, root.String())
}

// addCondition adds the message of a condition, if it is there.
func addCondition(root treeprint.Tree, conditions []metav1.Condition, name string) {
	if c := meta.FindStatusCondition(conditions, name); c != nil {
		root.AddNode(name + ": " + c.Message)
	}
}

// addDrift adds the objects that other clients have changed.
func addDrift(root treeprint.Tree, drift []v1beta1.ObjectDrift) {
	for _, d := range drift {
		root.AddNode("Drifted: " + d.Message)
	}
}

func addPlan(root treeprint.Tree, st v1beta1.PlanStatus, plan v1beta1.Plan, open bool, now time.Time) {
	st = plans.MarkStopped(st)
	line := fmt.Sprintf("Plan %s (%s strategy) [%s]", st.Name, StrategyName(plan.Strategy), st.Status)
	if st.Status == v1beta1.NeverRun || st.Status == "" {
		root.AddNode(fmt.Sprintf("Plan %s (%s strategy) [NOT ACTIVE]", st.Name, StrategyName(plan.Strategy)))
		return
	}
	line += Elapsed(st.StartedTimestamp, st.FinishedTimestamp, now)
	switch {
	case (st.Status == v1beta1.FatalError || st.Status == v1beta1.Pending) && st.Message != "":
		line += " (" + st.Message + ")"
	case st.Late != "":
		line += " (" + st.Late + ")"
	}
	if st.LastUpdatedTimestamp != nil {
		line += ", last updated " + st.LastUpdatedTimestamp.Format("2006-01-02 15:04:05")
	}
	branch := root.AddBranch(line)
	if !open && st.Status == v1beta1.Complete {
		return
	}
	for i, phase := range st.Phases {
		var def v1beta1.Phase
		if i < len(plan.Phases) {
			def = plan.Phases[i]
		}
		b := branch.AddBranch(fmt.Sprintf("Phase %s (%s strategy) [%s]", phase.Name, StrategyName(def.Strategy), phase.Status))
		for _, step := range phase.Steps {
			if st.FinishedTimestamp != nil && step.StartedTimestamp != nil && step.FinishedTimestamp == nil {
				step.FinishedTimestamp = st.FinishedTimestamp
			}
			addStep(b, step, now)
		}
	}
}

func addStep(branch treeprint.Tree, step v1beta1.StepStatus, now time.Time) {
	line := fmt.Sprintf("Step %s [%s]%s", step.Name, step.Status, Elapsed(step.StartedTimestamp, step.FinishedTimestamp, now))
	if step.Status == v1beta1.Complete || step.Status == v1beta1.Pending {
		branch.AddNode(line)
		return
	}
	switch {
	case len(step.Tasks) == 0 && step.Message != "":
		line += " (" + step.Message + ")"
	case step.Late != "":
		line += " (" + step.Late + ")"
	}
	b := branch.AddBranch(line)
	for _, task := range step.Tasks {
		line := fmt.Sprintf("Task %s [%s]", task.Name, task.Status)
		if task.Total > 0 {
			line += fmt.Sprintf(" %d/%d", task.Ready, task.Total)
		}
		if task.Message != "" {
			line += " (" + task.Message + ")"
		}
		if task.Culprit == nil {
			b.AddNode(line)
			continue
		}
		addCulprit(b.AddBranch(line), *task.Culprit, now)
	}
}

// addCulprit draws the way from an object to what keeps it from being ready: what it owns, the pod, the container and the reason.
func addCulprit(branch treeprint.Tree, c v1beta1.Culprit, now time.Time) {
	why := c
	why.Pod, why.Container = "", ""
	reason := plans.DescribeCulprit(why)
	switch {
	case c.Since == nil:
	case reason == "":
		reason = "not ready for " + duration.HumanDuration(now.Sub(c.Since.Time))
	default:
		reason += ", since " + duration.HumanDuration(now.Sub(c.Since.Time))
	}
	names := plans.CulpritPath(c)
	for _, name := range names[:max(len(names)-1, 0)] {
		branch = branch.AddBranch(name)
	}
	if len(names) > 0 {
		branch.AddNode(strings.TrimSuffix(names[len(names)-1]+": "+reason, ": "))
	}
}

// StrategyName returns the strategy of a plan or phase in the words of users.
func StrategyName(s v1beta1.Strategy) string {
	if s == v1beta1.Serial {
		return "serial"
	}
	return "parallel"
}

// Elapsed returns the time between two moments with a space before it, or until now if it has not ended. It is empty if
// it has not begun.
func Elapsed(from, to *metav1.MicroTime, now time.Time) string {
	if from == nil {
		return ""
	}
	end := now
	if to != nil {
		end = to.Time
	}
	d := max(end.Sub(from.Time), 0)
	switch {
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	default:
		d = d.Round(time.Second)
	}
	return " " + d.String()
}
