package ui

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/plans"
)

// The bounds of the logs that are read for pages.
const (
	// maxLogs is how many containers of an Instance have their log shown.
	maxLogs = 3
	// maxReads is how many logs a Server reads at a time.
	maxReads = 4
	// readPause is the least time for which a read counts towards maxReads. It bounds the rate of reads, which a user who may write statuses
	// or pods can cause.
	readPause = time.Second
	// maxReadTime bounds the time to read a log, and the Secrets whose values are removed from it.
	maxReadTime = 10 * time.Second
)

// logKey names one run of a container, for which a log is read once. The log of a run that has ended does not change any more; for one that
// has not ended, the page shows the lines of the time of the read.
type logKey struct {
	namespace, pod, container string
	// uid is empty if the page does not know the pod: the user may not list pods, or the pod has no labels of the Instance.
	uid      types.UID
	restarts int32
	ended    bool
}

// podLog is the end of a log. It is read once.
type podLog struct {
	stop context.CancelFunc
	// end and at are set once the log was read, at the time at.
	end diagnostics.LogEnd
	at  time.Time
}

// culpritLog is a container whose log is shown.
type culpritLog struct {
	culprit.Finding
	key logKey
	// problem is why its log is not read; empty if it is.
	problem string
}

// logRow is the log of a container on the page.
type logRow struct {
	ID, Pod, Container  string
	IsPrevious, Loading bool
	Text, Note, Command string
	At                  time.Time
}

// logRows returns the logs of the containers that made the last run fail. It begins to read those that are new, drops those of other
// containers and runs, and waits for no answer.
func (d *detail) logRows(sub subject) []logRow {
	d.logsMu.Lock()
	defer d.logsMu.Unlock()
	i := sub.Instance
	if newest, found := objectOf[*v1beta1.Instance](d.server.instances, i.Namespace, i.Name); found {
		i = newest // several pages are drawn at a time, perhaps from older states: only the newest one counts
	}
	canRead := d.canRead() // read before the keys, which lack the UID while pods are loading: a log would be read twice
	shown := d.culpritLogs(i, sub.mask)
	for key, l := range d.logs {
		if !slices.ContainsFunc(shown, func(c culpritLog) bool { return c.key == key }) {
			l.stop()
			delete(d.logs, key)
		}
	}
	var out []logRow
	for n, c := range shown {
		row := logRow{ID: "log-" + strconv.Itoa(n), Pod: c.Pod, Container: c.Container, IsPrevious: c.Restarted, Command: c.LogsCommand(),
			Note: c.problem}
		l := d.logs[c.key]
		if l == nil && c.problem == "" && canRead {
			l = d.readLog(i, c.Finding, sub)
			d.logs[c.key] = l
		}
		switch {
		case l != nil && !l.at.IsZero():
			row.Note, row.At, row.Text = sub.show(l.end.Note), l.at, sub.mask.Text(strings.Join(l.end.Lines, "\n"))
		case c.problem == "":
			row.Loading = true
		}
		out = append(out, row)
	}
	return out
}

// culpritLogs returns the containers that the last run has failed by, or waits for, and that may have written something.
func (d *detail) culpritLogs(i *v1beta1.Instance, hide mask) []culpritLog {
	_, run := plans.LatestRun(i.Status.PlanStatus)
	if run.Status == v1beta1.Complete || plans.IsCanceled(run.Status, run.Message) {
		return nil
	}
	var out []culpritLog
	for _, at := range plans.Culprits(run) {
		if len(out) == maxLogs || run.Status == v1beta1.FatalError && !at.Failed {
			break
		}
		c := culpritLog{Finding: culprit.Finding{Culprit: culprit.Bounded(*at.Task.Culprit, hide.Text)}}
		d.complete(&c)
		if c.HasLog() && !slices.ContainsFunc(out, func(other culpritLog) bool { return other.key == c.key }) {
			out = append(out, c)
		}
	}
	return out
}

// complete adds what the page knows of the pod of a culprit. The names are those of a status, which others may write: no pod of another
// namespace is read.
func (d *detail) complete(c *culpritLog) {
	c.key = logKey{namespace: c.Namespace, pod: c.Pod, container: c.Container}
	pods := d.feedOf(podKind)
	switch {
	case c.Namespace != d.key.Namespace:
		c.problem = "It is not in the namespace of the Instance: this page does not read its log."
		return
	case pods == nil:
		return
	}
	if state := pods.Status().State; state != loading && state != current && state != forbidden {
		c.problem = "The log is not read: " + pods.unknown()
	}
	raw, found := objectOf[*unstructured.Unstructured](pods, c.Namespace, c.Pod)
	pod := &corev1.Pod{}
	if !found || runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, pod) != nil {
		return
	}
	c.key.uid = pod.UID
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name == c.Container {
			c.Restarted = culprit.HasRestarted(pod, &s)
			c.key.restarts, c.key.ended = s.RestartCount, c.Restarted || s.State.Terminated != nil
		}
	}
}

// canRead reports whether the page has read the pods, the runs and the OperatorVersions, or may not read them: without these, the redaction
// of a log would lack values.
func (d *detail) canRead() bool {
	pods := d.feedOf(podKind)
	return pods != nil && pods.Status().State != loading && d.runs.Status().State != loading && d.server.versions.Status().State != loading
}

// readLog reads a log in the background, and tells the pages when it is there. It ends with the detail, and when the log is dropped.
func (d *detail) readLog(i *v1beta1.Instance, f culprit.Finding, sub subject) *podLog {
	ctx, stop := context.WithCancel(d.ctx)
	l := &podLog{stop: stop}
	go func() {
		defer stop()
		end := d.server.logEnd(ctx, i, f, sub)
		if ctx.Err() != nil {
			return // no page waits for it
		}
		d.logsMu.Lock()
		l.end, l.at = end, d.server.Clock.Now()
		d.logsMu.Unlock()
		d.server.changes.notify()
	}()
	return l
}

// logEnd reads the end of a log with the rights of the user, and redacts it as the command line does.
func (s *Server) logEnd(ctx context.Context, i *v1beta1.Instance, f culprit.Finding, sub subject) diagnostics.LogEnd {
	hide := newMask(hiddenValues(i, sub))
	if hide.all {
		return diagnostics.LogEnd{Note: "The log is not read: the values of sensitive parameters are too large to search for."}
	}
	select {
	case s.reads <- struct{}{}:
		defer time.AfterFunc(readPause, func() { <-s.reads })
	case <-ctx.Done():
		return diagnostics.LogEnd{}
	}
	ctx, cancel := context.WithTimeout(ctx, maxReadTime)
	defer cancel()
	redact := &diagnostics.Redactor{}
	for _, name := range sub.sensitive {
		redact.Name(name)
	}
	redact.HideInstance(ctx, s.client, i, cmp.Or(sub.Version, &v1beta1.OperatorVersion{}), sub.runs)
	return diagnostics.ReadLogEnd(ctx, s.typed, f, func(text string) string { return hide.Text(redact.Text(text)) })
}

// hiddenValues returns the values of the sensitive parameters of an Instance, now and in its recorded runs: a log may be older than the
// spec.
func hiddenValues(i *v1beta1.Instance, sub subject) []string {
	var out []string
	hide := func(values map[string]string, sealed []string) {
		for name, value := range values {
			if isHidden(name, sub.Version, sub.sensitive) && !slices.Contains(sealed, name) {
				out = append(out, value)
			}
		}
	}
	hide(i.Spec.Parameters, nil)
	for _, run := range sub.runs {
		hide(run.Parameters, run.Sensitive)
	}
	return out
}
