package podlogs

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Times of the run before, of the present run, and of the request.
var (
	first  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	second = first.Add(time.Minute)
	now    = second.Add(time.Minute)
)

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(second)}}
}

func ended(at time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(at), ExitCode: 7}}
}

func waiting(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

// report is a pod whose container main is in a state, and was in another before.
func report(lines string, state, last corev1.ContainerState) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "report", Namespace: "lab", Annotations: map[string]string{Annotation + "main": lines}}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "prepare", State: ended(first)}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: state, LastTerminationState: last}}
	return p
}

func TestRead(t *testing.T) {
	since := metav1.NewTime(second)
	tests := []struct {
		reason, lines string
		state, last   corev1.ContainerState
		options       corev1.PodLogOptions
		want          string
		err           string
	}{
		{reason: "all of it", lines: "a\nb\n", state: running(), want: "a\nb\n"},
		{reason: "the last line ends", lines: "a\nb", state: ended(second), want: "a\nb\n"},
		{reason: "no annotation", state: running()},
		{reason: "the tail", lines: "a\nb\nc", state: running(), options: corev1.PodLogOptions{TailLines: new(int64(2))}, want: "b\nc\n"},
		{reason: "a longer tail", lines: "a\nb", state: running(), options: corev1.PodLogOptions{TailLines: new(int64(1 << 60))}, want: "a\nb\n"},
		{reason: "a tail of nothing", lines: "a\nb", state: running(), options: corev1.PodLogOptions{TailLines: new(int64(0))}},
		{reason: "the first bytes of the tail", lines: "a\nbcd\ne", state: running(),
			options: corev1.PodLogOptions{TailLines: new(int64(2)), LimitBytes: new(int64(3))}, want: "bcd"},
		{reason: "more bytes than there are", lines: "a", state: running(), options: corev1.PodLogOptions{LimitBytes: new(int64(1 << 60))}, want: "a\n"},
		{reason: "with times", lines: "a\nb", state: running(), options: corev1.PodLogOptions{Timestamps: true},
			want: "2026-01-02T03:05:05Z a\n2026-01-02T03:05:05Z b\n"},
		{reason: "written within the seconds", lines: "a", state: running(), options: corev1.PodLogOptions{SinceSeconds: new(int64(60))}, want: "a\n"},
		{reason: "written before them", lines: "a", state: running(), options: corev1.PodLogOptions{SinceSeconds: new(int64(59))}},
		{reason: "written since", lines: "a", state: running(), options: corev1.PodLogOptions{SinceTime: &since}, want: "a\n"},
		{reason: "written before", lines: "a", state: ended(first), options: corev1.PodLogOptions{SinceTime: &since}},
		{reason: "another container", lines: "a", state: running(), options: corev1.PodLogOptions{Container: "prepare"}},
		{reason: "no such container", lines: "a", state: running(), options: corev1.PodLogOptions{Container: "other"},
			err: `container "other" in pod "report" is not available`},
		{reason: "the run before", lines: "a", state: waiting("CrashLoopBackOff"), last: ended(first),
			options: corev1.PodLogOptions{Previous: true, Timestamps: true}, want: "2026-01-02T03:04:05Z a\n"},
		{reason: "it is the last one until the next starts", lines: "a", state: waiting("CrashLoopBackOff"), last: ended(first), want: "a\n"},
		{reason: "there was none", lines: "a", state: running(), options: corev1.PodLogOptions{Previous: true},
			err: `previous terminated container "main" in pod "report" not found`},
		{reason: "not started", lines: "a", state: waiting("ImagePullBackOff"), err: "is waiting to start: ImagePullBackOff"},
		{reason: "no state", lines: "a", err: "no logs yet"},
	}
	for _, tc := range tests {
		if tc.options.Container == "" {
			tc.options.Container = "main"
		}
		got, err := Read(report(tc.lines, tc.state, tc.last), &tc.options, now)
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q, %v; want %q, %q", tc.reason, got, err, tc.want, tc.err)
		}
	}
}
