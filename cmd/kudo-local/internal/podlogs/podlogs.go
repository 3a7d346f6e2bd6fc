// Package podlogs plays the part of the kubelet that `kubectl logs` and the Pipe tasks of kudo ask: it serves the logs of simulated pods,
// whose lines stand in an annotation of the pod, and files, whose content names them, since no container runs that could write any.
package podlogs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotation is the prefix of the annotations that hold logs. The name of the container follows: log.local.kudo.dev/main.
const Annotation = "log.local.kudo.dev/"

// Read returns what a container has written, as far as the options ask for it. All of it was written when the container started, and each
// of its runs has written the same. The errors are those of a kubelet.
func Read(pod *corev1.Pod, o *corev1.PodLogOptions, now time.Time) (string, error) {
	started, err := start(pod, o.Container, o.Previous)
	if err != nil {
		return "", err
	}
	if started.Before(since(o, now)) {
		return "", nil
	}
	lines := slices.Collect(strings.Lines(pod.Annotations[Annotation+o.Container]))
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n"
	}
	if o.TailLines != nil {
		lines = lines[max(0, len(lines)-int(min(*o.TailLines, int64(len(lines))))):]
	}
	if o.Timestamps {
		for i := range lines {
			lines[i] = started.UTC().Format(time.RFC3339Nano) + " " + lines[i]
		}
	}
	text := strings.Join(lines, "")
	if o.LimitBytes != nil {
		text = text[:min(*o.LimitBytes, int64(len(text)))]
	}
	return text, nil
}

// since is the time before which lines are left out; zero if none is.
func since(o *corev1.PodLogOptions, now time.Time) time.Time {
	switch {
	case o.SinceSeconds != nil:
		return now.Add(-time.Duration(*o.SinceSeconds) * time.Second)
	case o.SinceTime != nil:
		return o.SinceTime.Time
	}
	return time.Time{}
}

// start is when the run of a container began whose log is asked for: the present one, or the one before.
func start(pod *corev1.Pod, container string, previous bool) (time.Time, error) {
	statuses := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
	at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container })
	if at < 0 {
		return time.Time{}, fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	state, last := statuses[at].State, statuses[at].LastTerminationState.Terminated
	switch {
	case previous && last == nil:
		return time.Time{}, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	case previous:
		return last.StartedAt.Time, nil
	case state.Running != nil:
		return state.Running.StartedAt.Time, nil
	case state.Terminated != nil:
		return state.Terminated.StartedAt.Time, nil
	case last != nil: // it waits until it is restarted
		return last.StartedAt.Time, nil
	case state.Waiting != nil:
		return time.Time{}, fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, state.Waiting.Reason)
	}
	return time.Time{}, fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", container, pod.Name)
}
