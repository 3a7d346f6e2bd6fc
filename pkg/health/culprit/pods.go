package culprit

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ofPod returns what is wrong with a pod; its severity is fine if nothing is.
func ofPod(pod *corev1.Pod) Finding {
	if pod.DeletionTimestamp != nil {
		return newFinding(pod, ending, "Terminating", "", *pod.DeletionTimestamp)
	}
	if pod.Status.Phase == corev1.PodSucceeded {
		return Finding{}
	}
	found := ofContainers(pod)
	if found.severity >= crashed {
		return found
	}
	if pod.Status.Phase == corev1.PodFailed {
		reason, message := pod.Status.Reason, pod.Status.Message
		if reason == "" {
			reason = "Failed"
		}
		f := newFinding(pod, crashed, reason, message, transition(pod, corev1.PodReady))
		f.complete = message != ""
		return f
	}
	if f, is := unscheduled(pod); is {
		return f
	}
	if found.severity == fine && pod.Status.Phase != corev1.PodRunning {
		return newFinding(pod, starting, "Pending", "", pod.CreationTimestamp)
	}
	return found
}

// unscheduled returns why a pod has no node.
func unscheduled(pod *corev1.Pod) (Finding, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse {
			continue
		}
		f := newFinding(pod, unplaced, c.Reason, c.Message, c.LastTransitionTime)
		f.complete = true
		if strings.Contains(c.Message, "PersistentVolumeClaim") || strings.Contains(c.Message, "persistentvolumeclaim") {
			f.claims = claims(pod)
		}
		if len(f.claims) > 0 { // what provisions a volume says more than the scheduler
			f.events = subject{kind: "PersistentVolumeClaim", name: f.claims[0], namespace: pod.Namespace}
			f.complete = false
		}
		return f, true
	}
	return Finding{}, false
}

// claims names the claims that a pod mounts.
func claims(pod *corev1.Pod) []string {
	var out []string
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			out = append(out, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			out = append(out, pod.Name+"-"+volume.Name)
		}
	}
	return out
}

// transition is when a condition of a pod has changed last; when the pod was made if it has none.
func transition(pod *corev1.Pod, kind corev1.PodConditionType) metav1.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime
		}
	}
	return pod.CreationTimestamp
}

// ofContainers returns what is wrong with the container that has the most severe problem, the first one of several. Sidecars come last:
// they end with an error when the kubelet stops them, and wait for what they serve.
func ofContainers(pod *corev1.Pod) Finding {
	var first, sidecars []corev1.ContainerStatus
	for _, c := range pod.Status.InitContainerStatuses {
		if isSidecar(pod, c.Name) {
			sidecars = append(sidecars, c)
		} else {
			first = append(first, c)
		}
	}
	found := Finding{}
	for _, c := range slices.Concat(first, pod.Status.ContainerStatuses, sidecars) {
		if f := ofContainer(pod, &c); f.severity > found.severity {
			found = f
		}
	}
	return found
}

// isSidecar reports whether an init container is one that runs beside the others.
func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// ofContainer goes by the state of a container:
//
//	waits for its image                             noImage; the two reasons between which the kubelet changes are one
//	cannot be created                               misconfigured. What its hook after the start has written is left out
//	has ended with an error, or is about to be      crashed, with the exit code. What the container itself has written about its
//	started again after that                        end is left out: it may be lines of its log
//	runs and is not ready                           notReady
//	is about to be started                          starting
func ofContainer(pod *corev1.Pod, c *corev1.ContainerStatus) Finding {
	waiting, ended, last := c.State.Waiting, c.State.Terminated, c.LastTerminationState.Terminated
	switch {
	case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
		message := imageMessage(waiting.Message)
		f := inContainer(newFinding(pod, noImage, "ImagePullBackOff", message, pod.CreationTimestamp), c)
		f.complete = message != "" && !strings.HasPrefix(message, "Back-off")
		return f
	case waiting != nil && waiting.Reason == "PostStartHookError":
		f := inContainer(newFinding(pod, misconfigured, waiting.Reason, "", pod.CreationTimestamp), c)
		f.complete = true
		return f
	case waiting != nil && strings.HasPrefix(waiting.Reason, "Err"), waiting != nil && strings.HasSuffix(waiting.Reason, "Error"),
		waiting != nil && waiting.Reason == "InvalidImageName":
		f := inContainer(newFinding(pod, misconfigured, waiting.Reason, waiting.Message, pod.CreationTimestamp), c)
		f.complete = waiting.Message != ""
		return f
	case ended != nil && ended.ExitCode != 0:
		return afterCrash(pod, c, ended, ended.Reason)
	case ended != nil:
		return Finding{}
	case waiting != nil && waiting.Reason == "CrashLoopBackOff" && last != nil:
		return afterCrash(pod, c, last, waiting.Reason)
	case last != nil && last.ExitCode != 0 && !c.Ready:
		return afterCrash(pod, c, last, "CrashLoopBackOff")
	case c.State.Running != nil && !c.Ready && !isInit(pod, c.Name):
		return inContainer(newFinding(pod, notReady, "NotReady", "", c.State.Running.StartedAt), c)
	case waiting != nil:
		return inContainer(newFinding(pod, starting, waiting.Reason, waiting.Message, pod.CreationTimestamp), c)
	}
	return Finding{}
}

// HasRestarted reports whether what is wrong with a container is the end of its run before, whose log counts then.
func HasRestarted(pod *corev1.Pod, c *corev1.ContainerStatus) bool {
	return ofContainer(pod, c).Restarted
}

// runsCommands reports whether a probe of a container runs a command in it.
func runsCommands(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return c.Name == container && slices.ContainsFunc([]*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe},
			func(p *corev1.Probe) bool { return p != nil && p.Exec != nil })
	})
}

// imageOf returns the image of a container as the pod asks for it; "" if the pod has no such container.
func imageOf(pod *corev1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == name })
}

// afterCrash is of a container that has ended with an error.
func afterCrash(pod *corev1.Pod, c *corev1.ContainerStatus, end *corev1.ContainerStateTerminated, state string) Finding {
	switch {
	case end.Reason == "OOMKilled":
		state = end.Reason
	case state == "Error": // says no more than the exit code
		state = ""
	}
	f := inContainer(newFinding(pod, crashed, state, "", end.FinishedAt), c)
	f.ExitCode, f.Restarted = ptr.To(end.ExitCode), end != c.State.Terminated
	if end.Reason == "StartError" || end.Reason == "ContainerCannotRun" { // these words are of the runtime
		f.Message = end.Message
	}
	if f.complete = state == "OOMKilled"; !end.StartedAt.IsZero() && end.FinishedAt.After(end.StartedAt.Time) {
		f.Ran = end.FinishedAt.Sub(end.StartedAt.Time)
	}
	return f
}

// newFinding is of a pod, whose events may say more. Its state is in Kubernetes' word for it.
func newFinding(pod *corev1.Pod, s severity, state, message string, since metav1.Time) Finding {
	f := Finding{severity: s, owner: metav1.GetControllerOf(pod), events: subject{uid: pod.UID, namespace: pod.Namespace}}
	f.Pod, f.Reason, f.Message, f.Since = pod.Name, state, message, at(since)
	return f
}

func inContainer(f Finding, c *corev1.ContainerStatus) Finding {
	f.Container = c.Name
	return f
}

// backOff is what the kubelet puts before the message of the last attempt to pull an image while it waits for the next one.
var backOff = regexp.MustCompile(`^Back-off pulling image "[^"]*": (?:ErrImagePull: )?`)

// imageMessage returns why an image could not be pulled, in the same words while the kubelet pulls and while it waits.
func imageMessage(message string) string { return backOff.ReplaceAllString(message, "") }
