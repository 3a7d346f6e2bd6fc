// Package culprit finds what keeps an object from being ready: the pod and the container, or the condition or event of the object itself.
//
// All that it reads may be written by others: statuses, messages and names are bounded and cleaned before they leave the package, and
// neither lines of logs nor what a container writes about its own end is taken over, since those who may read an Instance may not be
// allowed to read logs.
package culprit

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/text"
)

// severity orders what pods report: of several pods and containers, the one with the highest counts.
type severity int

const (
	// fine needs nothing.
	fine severity = iota
	// ending pods are being deleted.
	ending
	// starting pods and containers may become ready by themselves.
	starting
	// notReady containers run and do not pass their probes.
	notReady
	// unplaced pods have no node.
	unplaced
	// crashed containers have ended with an error.
	crashed
	// noImage containers cannot get their image.
	noImage
	// misconfigured containers cannot be created.
	misconfigured
)

// Finding is what was found of an object.
type Finding struct {
	v1beta1.Culprit
	// Image is the image of the container; empty if it is not known.
	Image string
	// Restarted is set if the container was started again since it ended, so that the log of the run before counts.
	Restarted bool
	// Ran is how long the container ran before it ended; 0 if this is not known.
	Ran time.Duration
	// Event is the reason of the event that the message is from; empty if it is from no event.
	Event string
	// EventTime is when that event came last.
	EventTime time.Time

	// PodsRead is set if the pods of the object are known.
	PodsRead bool

	severity severity
	// owner is the controller of the pod.
	owner *metav1.OwnerReference
	// claims are those of an unplaced pod.
	claims []string
	// events chooses the events that may say more.
	events subject
	// complete is set if no event is needed.
	complete bool
	// commanded is set if a probe of the container runs a command in it.
	commanded bool
}

// subject is an object that events are about.
type subject struct {
	uid        types.UID
	kind, name string
	namespace  string
}

// Find returns what keeps an object from being ready, as far as the object and its pods tell. known is the pod that was found before; it
// stays the one that is named as long as no other is worse, so that the answer does not change without a reason.
func Find(object *unstructured.Unstructured, pods []corev1.Pod, known string) Finding {
	found := worst(pods, known)
	own, explained := ofObject(object)
	switch {
	case found == nil:
		found = &own
	case found.severity <= starting && explained: // such as a quota, beside pods that only have to start
		found = &own
	}
	found.APIVersion, found.Kind = object.GetAPIVersion(), object.GetKind()
	found.Namespace, found.Name = object.GetNamespace(), object.GetName()
	if found.owner != nil && found.owner.Name != found.Name {
		found.Owner = found.owner.Kind + " " + found.owner.Name
	}
	return *found
}

// worst returns what is wrong with the pod that has the most severe problem, or nil if none has one. Of several, the one that was named
// before counts, else the one that was made last.
func worst(pods []corev1.Pod, known string) *Finding {
	var found *Finding
	var of *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		f := ofPod(pod)
		if f.severity == fine {
			continue
		}
		if found == nil || f.severity > found.severity || f.severity == found.severity && isBefore(pod, of, known) {
			f.commanded, f.Image = runsCommands(pod, f.Container), imageOf(pod, f.Container)
			found, of = &f, pod
		}
	}
	return found
}

// isBefore orders pods with problems that are equally severe.
func isBefore(a, b *corev1.Pod, known string) bool {
	switch {
	case a.Name == known || b.Name == known:
		return a.Name == known
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.Name < b.Name
}

// Bounds of the texts of a culprit, in bytes.
const (
	maxMessage = 512
	maxName    = 253
	maxWord    = 64
)

// Bounded returns a culprit of at most v1beta1.MaxCulprit bytes, on one line, without control characters and without what mask takes out.
// The mask comes before any cut, since a value that was cut in two would not be found, and again without control characters, which may have
// stood in a value.
func Bounded(c v1beta1.Culprit, mask func(string) string) v1beta1.Culprit {
	for _, field := range []struct {
		text  *string
		limit int
	}{
		{&c.APIVersion, maxName}, {&c.Kind, maxWord}, {&c.Namespace, maxWord}, {&c.Name, maxName}, {&c.Owner, maxName},
		{&c.Pod, maxName}, {&c.Container, maxWord}, {&c.Reason, maxWord}, {&c.Message, maxMessage},
	} {
		masked := mask(*field.text)
		*field.text = text.Truncate(mask(text.Plain(masked, len(masked))), field.limit)
	}
	// The object and the pod are what others look for: the message is cut first.
	for _, field := range []*string{&c.Message, &c.Reason, &c.Container, &c.APIVersion, &c.Owner, &c.Pod, &c.Name, &c.Kind, &c.Namespace} {
		for over := size(c) - v1beta1.MaxCulprit; over > 0 && *field != ""; over = size(c) - v1beta1.MaxCulprit {
			*field = shortened(*field, len(*field)-max(over/6, 1)) // one byte takes six at most
		}
	}
	return c
}

// shortened returns the beginning of a text; "" if an ellipsis would be all that is left.
func shortened(s string, limit int) string {
	if limit <= len("…") {
		return ""
	}
	return text.Truncate(s, limit)
}

func size(c v1beta1.Culprit) int {
	encoded, err := json.Marshal(c)
	if err != nil {
		return 0
	}
	return len(encoded)
}

// Keep returns a culprit with the time of the one before, if both are of the same cause.
func Keep(c v1beta1.Culprit, before *v1beta1.Culprit) v1beta1.Culprit {
	if before == nil || before.Since == nil {
		return c
	}
	same := c.Kind == before.Kind && c.Namespace == before.Namespace && c.Name == before.Name && c.Pod == before.Pod &&
		c.Container == before.Container && c.Reason == before.Reason && ptr.Equal(c.ExitCode, before.ExitCode)
	if same {
		c.Since = before.Since
	}
	return c
}

// at returns a time as it stands in a culprit; nil for the zero time.
func at(t metav1.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return ptr.To(t.Rfc3339Copy())
}
