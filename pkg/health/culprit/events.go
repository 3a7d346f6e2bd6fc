package culprit

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kudo.dev/kudo/pkg/text"
)

// summaries are reasons of events that only repeat that something has failed.
var summaries = map[string]bool{"BackOff": true, "BackoffLimitExceeded": true, "ProgressDeadlineExceeded": true, "FailedSync": true}

// counting returns the event that counts: the last warning that names a cause, else the last warning. Events from before the time since are
// of another cause.
func counting(events []corev1.Event, since time.Time) *corev1.Event {
	var found *corev1.Event
	for i := range events {
		e := &events[i]
		if e.Type != corev1.EventTypeWarning || LastSeen(e).Before(since) {
			continue
		}
		if found == nil || isMoreTelling(e, found) {
			found = e
		}
	}
	return found
}

func isMoreTelling(a, b *corev1.Event) bool {
	if x, y := isSummary(a), isSummary(b); x != y {
		return y
	}
	if x, y := LastSeen(a), LastSeen(b); !x.Equal(y) {
		return x.After(y)
	}
	return a.Name < b.Name
}

func isSummary(e *corev1.Event) bool {
	return summaries[e.Reason] || e.Reason == "Failed" && strings.HasPrefix(e.Message, "Error: ")
}

// LastSeen returns when an event came last.
func LastSeen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.FirstTimestamp.IsZero():
		return e.FirstTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// explain adds what events say to a finding:
//
//	a container that has ended               only a probe that has failed: the exit code is the cause otherwise
//	no message, or that of a pod which       the reason and the message of the event
//	only has to start
//	else                                     the message of the event behind the message
func (f *Finding) explain(events []corev1.Event, since time.Time) {
	e := counting(events, since)
	if e == nil || isSummary(e) && f.Pod != "" && f.severity != starting {
		return
	}
	message := imageMessage(stable(e.Message))
	if e.Reason == "Unhealthy" && f.commanded { // the kubelet adds what the command has written, as in a log
		message, _, _ = strings.Cut(message, ": ")
	}
	switch {
	case f.severity == crashed && f.ExitCode != nil && e.Reason != "Unhealthy":
		return
	case f.severity == crashed && f.ExitCode != nil, f.severity == noImage:
		f.Message = message
	case f.severity == unplaced:
		f.Message = fmt.Sprintf("%s; PersistentVolumeClaim %s: %s: %s", f.Message, f.events.name, e.Reason, message)
	case f.severity == ending:
		f.Message = e.Reason + ": " + message
	case f.Message == "" || f.Pod != "" || f.severity == fine && !isSummary(e):
		f.Reason, f.Message, f.Since = e.Reason, message, first(e, f.Since)
	default:
		return
	}
	f.Event, f.EventTime = text.Plain(e.Reason, maxWord), LastSeen(e)
}

// first is when an event came first.
func first(e *corev1.Event, known *metav1.Time) *metav1.Time {
	if e.FirstTimestamp.IsZero() {
		return known
	}
	return at(e.FirstTimestamp)
}
