package plans

import (
	"fmt"
	"slices"
	"strings"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// maxCulprit is the length in bytes of what a culprit adds to a message.
const maxCulprit = 512

// Explain returns the message of a task with its culprit, unless the message has the words of the culprit already.
func Explain(task v1beta1.TaskStatus) string {
	if task.Culprit == nil || task.Culprit.Reason == v1beta1.CulpritUnread {
		return task.Message
	}
	words := text.Truncate(DescribeCulprit(*task.Culprit), maxCulprit)
	switch {
	case words == "", strings.Contains(task.Message, words), IsRepetition(task):
		return task.Message
	case task.Message == "":
		return words
	}
	return task.Message + ": " + words
}

// IsRepetition reports whether the culprit of a task has no more than the message of the task, such as why an object was refused.
func IsRepetition(task v1beta1.TaskStatus) bool {
	c := task.Culprit
	if c == nil || c.Pod != "" {
		return false
	}
	cause := strings.TrimSuffix(c.Message, "…") // it may have been cut
	return cause != "" && strings.Contains(text.OneLine(task.Message), cause)
}

// DescribeCulprit returns a culprit in one line, which does not name the object. It holds no time, since it stands in messages.
func DescribeCulprit(c v1beta1.Culprit) string {
	var who string
	switch {
	case c.Container != "":
		who = fmt.Sprintf("container %s of pod %s", c.Container, c.Pod)
	case c.Pod != "":
		who = "pod " + c.Pod
	}
	reason := c.Reason
	if c.ExitCode != nil {
		if reason = fmt.Sprintf("ended with exit code %d", *c.ExitCode); c.Reason != "" {
			reason += " (" + c.Reason + ")"
		}
		who, reason = strings.TrimSpace(who+" "+reason), ""
	}
	var parts []string
	for _, part := range []string{who, reason, c.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// CulpritPath returns the names on the way from an object to what keeps it from being ready: the object, what it owns, the pod and the
// container, as far as they are known.
func CulpritPath(c v1beta1.Culprit) []string {
	names := []string{strings.TrimSpace(c.Kind + " " + c.Name), c.Owner}
	if c.Pod != "" {
		names = append(names, "Pod "+c.Pod)
	}
	if c.Container != "" {
		names = append(names, "Container "+c.Container)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// CulpritAt is a task that has a culprit.
type CulpritAt struct {
	Phase, Step string
	Task        v1beta1.TaskStatus
	// Failed is set if the task has failed permanently, or its step has, as by a deadline.
	Failed bool
}

// Culprits returns the tasks of a run that have a culprit, those that have failed first.
func Culprits(st v1beta1.PlanStatus) []CulpritAt {
	var failed, waiting []CulpritAt
	for _, phase := range st.Phases {
		for _, step := range phase.Steps {
			for _, task := range step.Tasks {
				at := CulpritAt{phase.Name, step.Name, task, task.Status == v1beta1.FatalError || step.Status == v1beta1.FatalError}
				switch {
				case task.Culprit == nil:
				case at.Failed:
					failed = append(failed, at)
				default:
					waiting = append(waiting, at)
				}
			}
		}
	}
	return append(failed, waiting...)
}
