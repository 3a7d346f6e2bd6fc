package ui

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/plans"
)

// node is a plan, phase, step, task, or an object on the way to a culprit.
type node struct {
	// ID of the element, so that a browser keeps what is open.
	ID      string
	Kind    string
	Name    string
	State   state
	Count   string
	Started *metav1.MicroTime
	Took    string
	Message string
	// Open is set if the children are shown at first.
	Open     bool
	Children []node
}

// planTree returns the plans of an object, each with its phases and steps, the last run open. show masks sensitive values.
func planTree(status map[string]v1beta1.PlanStatus, defined map[string]v1beta1.Plan, show func(string) string) []node {
	shown := map[string]v1beta1.PlanStatus{}
	maps.Copy(shown, status)
	shown = plans.WithNeverRun(shown, defined)
	last, _ := plans.LatestRun(status)
	var out []node
	for _, name := range plans.Names(shown) {
		st := plans.MarkStopped(shown[name])
		n := node{ID: "plan-" + name, Kind: "Plan", Name: name, State: executionState(st.Status), Open: name == last}
		if st.Status != "" && st.Status != v1beta1.NeverRun {
			n.Started, n.Took = st.StartedTimestamp, took(st.StartedTimestamp, st.FinishedTimestamp)
			n.Message = show(join(st.Message, st.Late))
			for _, phase := range st.Phases {
				n.Children = append(n.Children, phaseNode(n.ID, phase, show))
			}
		}
		out = append(out, n)
	}
	return out
}

func phaseNode(parent string, phase v1beta1.PhaseStatus, show func(string) string) node {
	n := node{ID: parent + "-" + phase.Name, Kind: "Phase", Name: phase.Name, State: executionState(phase.Status), Open: isOpen(phase.Status)}
	for _, step := range phase.Steps {
		child := node{ID: n.ID + "-" + step.Name, Kind: "Step", Name: step.Name, State: executionState(step.Status), Open: isOpen(step.Status),
			Started: step.StartedTimestamp, Took: took(step.StartedTimestamp, step.FinishedTimestamp), Message: show(step.Late)}
		if len(step.Tasks) == 0 {
			child.Message = show(join(step.Message, step.Late))
		}
		for _, task := range step.Tasks {
			child.Children = append(child.Children, taskNode(child.ID, task, show))
		}
		n.Children = append(n.Children, child)
	}
	return n
}

func taskNode(parent string, task v1beta1.TaskStatus, show func(string) string) node {
	n := node{ID: parent + "-" + task.Name, Kind: "Task", Name: task.Name, State: executionState(task.Status), Open: isOpen(task.Status),
		Message: show(task.Message)}
	if task.Total > 0 {
		n.Count = fmt.Sprintf("%d of %d", task.Ready, task.Total)
	}
	if c := task.Culprit; c != nil {
		n.Children = culpritNodes(n.ID, *c, show)
	}
	return n
}

// culpritNodes returns the path from an object to the culprit that keeps it from being ready, as nested nodes.
func culpritNodes(parent string, c v1beta1.Culprit, show func(string) string) []node {
	names := plans.CulpritPath(c)
	if len(names) == 0 {
		return nil
	}
	why := c
	why.Pod, why.Container = "", ""
	at := node{ID: parent + "-culprit", Name: names[len(names)-1], Message: show(plans.DescribeCulprit(why)), Open: true,
		State: state{"culprit", "→", "warn", 0}}
	if c.Since != nil {
		started := metav1.NewMicroTime(c.Since.Time)
		at.Started = &started
	}
	for n := len(names) - 2; n >= 0; n-- {
		at = node{ID: at.ID + "-of", Name: names[n], Open: true, Children: []node{at}, State: state{"waits", "·", "idle", 0}}
	}
	return []node{at}
}

// isOpen reports whether the children of a node are shown at first: those of a node that is done or has not begun are not.
func isOpen(s v1beta1.ExecutionStatus) bool {
	return s != v1beta1.Complete && s != v1beta1.NeverRun && s != ""
}

// took returns how long something has taken, or nothing if it has not ended.
func took(from, to *metav1.MicroTime) string {
	if from == nil || to == nil {
		return ""
	}
	d := max(to.Sub(from.Time), 0)
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

// join joins two texts, unless the first has the second.
func join(message, late string) string {
	if late == "" || strings.Contains(message, late) {
		return message
	}
	return strings.TrimSpace(message + " " + late)
}
