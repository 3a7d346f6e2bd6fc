package ui

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/test/apitest"
)

// failing is an Instance whose run has failed by container main of pod report-x.
func failing(name string, change func(*v1beta1.Culprit)) *v1beta1.Instance {
	return instance("a", name, func(i *v1beta1.Instance) {
		fail(i)
		c := i.Status.PlanStatus["report"].Phases[0].Steps[1].Tasks[0].Culprit
		c.Namespace = "a"
		if change != nil {
			change(c)
		}
	})
}

// failedPod is the pod of that container.
func failedPod(change func(*corev1.Pod, *corev1.ContainerStatus)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "report-x", UID: "uid-pod", Labels: written}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}}}}}
	if change != nil {
		change(pod, &pod.Status.ContainerStatuses[0])
	}
	return pod
}

// kubelet answers requests for logs, and notes them.
type kubelet struct {
	mu     sync.Mutex
	asked  []string
	answer func(apitest.Request) (any, error)
}

// logsOf makes an API server answer requests for logs.
func logsOf(api *apitest.Server, answer func(apitest.Request) (any, error)) *kubelet {
	k := &kubelet{answer: answer}
	api.Before(func(q apitest.Request) (any, error) {
		if q.Subresource != "log" {
			return nil, nil
		}
		k.mu.Lock()
		k.asked = append(k.asked, q.NamespacedName.String()+" "+q.Query.Get("container")+" "+q.Query.Get("previous"))
		answer := k.answer
		k.mu.Unlock()
		return answer(q)
	})
	return k
}

// writes answers with a log.
func writes(log string) func(apitest.Request) (any, error) {
	return func(apitest.Request) (any, error) { return strings.NewReader(log), nil }
}

// requests returns those until now.
func (k *kubelet) requests() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.asked)
}

// logs returns what waits until the page of Instance one shows logs with a text, and returns them.
func (r *running) logs(t *testing.T) func(want string) string {
	t.Helper()
	next := r.events(t, "/instances/a/one", "")
	shown := "nothing"
	return func(want string) string {
		t.Helper()
		for !strings.Contains(shown, want) || want == "" && shown != "" {
			parts, _ := next()
			if content, changed := parts["logs"]; changed {
				shown = content
				checkHarmless(t, "logs", content)
			}
		}
		return shown
	}
}

// TestLog shows P22 on the page: the last lines of what has failed, whatever a container writes.
func TestLog(t *testing.T) {
	for _, tc := range []struct {
		reason, log, want string
		not               []string
	}{
		{"lines", "one\n\ntwo\n", "<code>one\ntwo</code></pre>", []string{"Loading"}},
		{"nothing", "", "the container has written nothing", []string{"<pre"}},
		{"HTML", hostile + "\n</pre></code></div>\n", "&lt;/pre&gt;&lt;/code&gt;&lt;/div&gt;</code></pre>", []string{"<script", "<img", "\x1b", "\u202e"}},
		{"control characters", "\x1b]0;t\a\x00\u202eend\n", `<code>\x1b]0;t\a` + "\ufffd" + `\u202eend</code>`, []string{"\x1b", "\a", "\x00", "\u202e"}},
		{"bytes that are no text", "\xff\xfeend\x80\n", "\ufffdend\ufffd</code>", []string{"\xff"}},
		{"megabytes on one line", strings.Repeat("x", 4<<20) + "\n", "the last line of the log is longer than the 4 KiB that are shown here", []string{"xxx"}},
		{"megabytes before the last line", strings.Repeat("x", 60<<10) + "\nend\n", "<code>end</code>", []string{"xxx"}},
		{"many lines", strings.Repeat("x\n", 3000) + "end\n", "<code>" + strings.Repeat("x\n", 19) + "end</code>", nil},
		{"a credential", "password: hunter22hunter22\n", "<code>password: REDACTED</code>", []string{"hunter22"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			api := apitest.Start(t, failing("one", nil), version("a", "web-1.0.0", nil), failedPod(nil))
			k := logsOf(api, writes(tc.log))
			shown := beginOn(t, api, "").logs(t)(tc.want)
			expect(t, shown, "Pod report-x, container main</h3>", tc.want, "Read <time", "kubectl logs report-x -c main -n a<")
			for _, not := range tc.not {
				if strings.Contains(shown, not) {
					t.Errorf("%q is shown", not)
				}
			}
			if got := k.requests(); !slices.Equal(got, []string{"a/report-x main "}) {
				t.Errorf("asked for %q", got)
			}
		})
	}
}

// TestLogSecrets shows P22 and U9: no value of a sensitive parameter is sent, now or of a recorded run, whole or a line of it, and no value of a
// Secret of the Instance.
func TestLogSecrets(t *testing.T) {
	const before, key = "s3cr3t-before", "s3cr3t-first-line\ns3cr3t-second-line"
	i := failing("one", nil)
	i.Spec.Parameters = map[string]string{"PASSWORD": key, "UNDEFINED": "s3cr3t-undefined", "REPLICAS": "three-replicas"}
	i.Spec.ParametersFrom = []v1beta1.ParametersSource{{Kind: "Secret", Name: "source", Keys: map[string]string{"TOKEN": "k"}}}
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: labels}, Data: map[string][]byte{"k": []byte("s3cr3t-of-" + name)}}
	}
	old := record(t, 1, "")
	old.Data.Raw = []byte(`{"plan":"deploy","cause":"c","parameters":{"PASSWORD":"` + before + `"}}`)
	api := apitest.Start(t, i, version("a", "web-1.0.0", nil), failedPod(nil), old, secret("source", nil), secret("written", written))
	logsOf(api, writes("begin three-replicas\n"+key+"\nand\ns3cr3t-second-line\nxs3cr3t-first-liney\n\x1b[1ms3cr3t-undefined\x1b[0m\n"+before+
		"\ndefault-secret\ns3cr3t-of-source\ns3cr3t-of-written\nend\n"))
	r := beginOn(t, api, "")
	shown := r.logs(t)("begin three-replicas")
	_, body := r.get(t, "/instances/a/one")
	if n := strings.Index(shown+body, "s3cr3t"); n >= 0 || strings.Contains(shown+body, "default-secret") {
		t.Errorf("a secret is sent: …%.120s", (shown + body)[max(0, n-60):])
	}
	if !strings.Contains(shown, "\nend<") {
		t.Errorf("the log is not shown: %s", shown)
	}
	large := failing("large", nil)
	large.Spec.Parameters = map[string]string{"PASSWORD": strings.Repeat("x", maxHidden+1)}
	end := r.logEnd(t.Context(), large, (&culpritLog{}).Finding, subject{})
	if len(end.Lines) > 0 || !strings.Contains(end.Note, "too large to search for") {
		t.Errorf("beside values that are too large stands %q", end)
	}
}

// TestLogOnce shows U3 and U12: however often a page is drawn, a log is read once.
func TestLogOnce(t *testing.T) {
	api := apitest.Start(t, failing("one", nil), version("a", "web-1.0.0", nil), failedPod(nil))
	k := logsOf(api, writes("one\n"))
	r := beginOn(t, api, "")
	r.await(t, "the Instance is there", func() bool { return r.instances.Status().State == current })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 250 {
				request, _ := http.NewRequest(http.MethodGet, "/instances/a/one", nil)
				request.SetPathValue("namespace", "a")
				request.SetPathValue("name", "one")
				screen := r.instancePage(request)
				screen.draw()
				screen.close()
			}
		})
	}
	group.Wait()
	tab, other := r.logs(t), r.logs(t)
	_, _ = tab("<code>one"), other("<code>one")
	if got := k.requests(); len(got) != 1 {
		t.Errorf("asked for %q", got)
	}
	k.answer = func(apitest.Request) (any, error) { return nil, errors.New("kubelet") }
	api.Put(failedPod(func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.RestartCount = 1 }))
	_ = tab("the log cannot be read")
	for range 100 {
		_, _ = r.get(t, "/instances/a/one")
	}
	if got := k.requests(); len(got) != 2 {
		t.Errorf("a log that cannot be read is asked for again: %q", got)
	}
}

// TestLogFollows: another run of the container and another pod of the same name have another log, and what does not fail any more has none.
func TestLogFollows(t *testing.T) {
	api := apitest.Start(t, failing("one", nil), version("a", "web-1.0.0", nil), failedPod(nil))
	k := logsOf(api, writes("first\n"))
	r := beginOn(t, api, "")
	shows := r.logs(t)
	_ = shows("<code>first")
	answer := func(log string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.answer = writes(log)
	}
	answer("second\n")
	begun := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	restarted := func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.LastTerminationState, s.State, s.RestartCount = s.State, begun, 1
	}
	api.Put(failedPod(restarted))
	shown := shows("<code>second")
	if strings.Contains(shown, "first") || !strings.Contains(shown, "the run before its restart") || !strings.Contains(shown, "-n a --previous<") {
		t.Errorf("after a restart, the page shows %s", shown)
	}
	answer("third\n")
	other := failedPod(restarted)
	other.UID = "uid-other"
	api.Put(other)
	if shown := shows("<code>third"); strings.Contains(shown, "second") {
		t.Errorf("after a replacement, the page shows %s", shown)
	}
	answer("fourth\n")
	api.Put(failedPod(func(pod *corev1.Pod, s *corev1.ContainerStatus) { // it is only not ready, and its run before has ended well
		pod.UID, s.State = "uid-other", begun
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{}
	}))
	_ = shows("<code>fourth")
	answer("fifth\n")
	api.Put(failedPod(func(pod *corev1.Pod, s *corev1.ContainerStatus) { pod.UID = "uid-other" }))
	_ = shows("<code>fifth") // the end of the same run
	api.Put(instance("a", "one", nil))
	_ = shows("")
	d := r.openDetail(client.ObjectKey{Namespace: "a", Name: "one"})
	defer d.close()
	d.logsMu.Lock()
	defer d.logsMu.Unlock()
	if len(d.logs) > 0 {
		t.Errorf("%d logs are kept of containers that no longer fail", len(d.logs))
	}
	want := []string{"a/report-x main ", "a/report-x main true", "a/report-x main true", "a/report-x main ", "a/report-x main "}
	if got := k.requests(); !slices.Equal(got, want) {
		t.Errorf("asked for %q, want %q", got, want)
	}
}

// TestLogRights shows P22 and U5: the page says what the user may not read, with the command that reads it, and requests no pod of another
// namespace.
func TestLogRights(t *testing.T) {
	forbid := apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "report-x", errors.New("ann may not get it"))
	const command = "kubectl logs report-x -c main -n "
	for _, tc := range []struct {
		reason  string
		change  func(*v1beta1.Culprit)
		refused string // the verb or subresource that the user has no right for
		want    []string
		asked   int
	}{
		{"no right for logs", nil, "log", []string{"the log cannot be read: ", "ann may not get it", command + "a<"}, 1},
		{"no right for pods", nil, "list", []string{"<code>one</code>", command + "a<"}, 1},
		{"another namespace", func(c *v1beta1.Culprit) { c.Namespace = "b" }, "", []string{"It is not in the namespace of the Instance", command + "b<"}, 0},
		{"no pod", func(c *v1beta1.Culprit) { c.Pod, c.Container = "", "" }, "", nil, 0},
		{"no namespace", func(c *v1beta1.Culprit) { c.Namespace = "" }, "", nil, 0},
		{"a pod that is a path", func(c *v1beta1.Culprit) { c.Pod = "../../b/pods/report-x" }, "", nil, 0},
		{"a container that is a command", func(c *v1beta1.Culprit) { c.Container = "$(id)" }, "", nil, 0},
		{"a container that has not begun", func(c *v1beta1.Culprit) { c.Reason, c.ExitCode = "ImagePullBackOff", nil }, "", nil, 0},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			pod := failedPod(nil)
			if tc.asked == 0 {
				pod.Namespace = "b"
			}
			api := apitest.Start(t, failing("one", tc.change), version("a", "web-1.0.0", nil), pod)
			asked := atomic.Int32{}
			api.Before(func(q apitest.Request) (any, error) {
				switch {
				case q.Subresource == "log" && tc.refused != "log":
					asked.Add(1)
					return strings.NewReader("one\n"), nil
				case q.Subresource == "log", q.Kind == "Pod" && tc.refused == "list":
					asked.Add(int32(len(q.Subresource) / 3))
					return nil, forbid
				}
				return nil, nil
			})
			r := beginOn(t, api, "")
			if tc.want == nil {
				r.await(t, "the Instance is there", func() bool { return r.instances.Status().State == current })
				d := r.watched(t, failing("one", tc.change))
				r.await(t, "logs can be read", d.canRead)
				if rows := d.logRows(subject{Instance: failing("one", tc.change)}); len(rows) > 0 {
					t.Errorf("the page shows %v", rows)
				}
			} else {
				expect(t, r.logs(t)(tc.want[0]), tc.want...)
			}
			if got := asked.Load(); int(got) != tc.asked {
				t.Errorf("%d logs are asked for, want %d", got, tc.asked)
			}
		})
	}
}

// TestLogHangs: no page waits for a log that does not come; a few are asked for at a time, and they end with the pages.
func TestLogHangs(t *testing.T) {
	hanging, endHang := io.Pipe()
	var objects []client.Object
	for n := range 3 * maxReads {
		objects = append(objects, failing(fmt.Sprintf("i-%02d", n), func(c *v1beta1.Culprit) { c.Pod = fmt.Sprintf("report-%02d", n) }))
	}
	api := apitest.Start(t, append(objects, version("a", "web-1.0.0", nil))...)
	t.Cleanup(func() { _ = endHang.Close() }) // before the server ends, which waits for its answers
	k := logsOf(api, func(apitest.Request) (any, error) { return hanging, nil })
	r := beginOn(t, api, "")
	r.await(t, "the Instances are there", func() bool { return r.instances.Status().State == current })
	var details []*detail
	for _, o := range objects {
		d := r.watched(t, o.(*v1beta1.Instance))
		details = append(details, d)
		r.await(t, "logs can be read", d.canRead)
		begun := time.Now()
		if _, body := r.get(t, "/instances/a/"+o.GetName()); !strings.Contains(body, "container main</h3>\n<p class=\"quiet\">Loading…</p>") {
			t.Fatalf("the page does not say that it reads the log: %s", body)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("the page waits %s for a log", took)
		}
	}
	r.await(t, "logs are asked for", func() bool { return len(k.requests()) >= maxReads })
	if got := k.requests(); len(got) > maxReads {
		t.Errorf("%d logs are asked for at a time", len(got))
	}
	for _, d := range details {
		d.stop()
	}
	r.await(t, "the reads have ended", func() bool { return len(r.reads) == 0 })
	if got := k.requests(); len(got) > maxReads {
		t.Errorf("pages that were closed ask for logs: %q", got)
	}
	for _, d := range details {
		d.logsMu.Lock()
		for _, l := range d.logs {
			if !l.at.IsZero() {
				t.Error("a log that has not come is shown")
			}
		}
		d.logsMu.Unlock()
	}
}

// TestCulpritLogs: the containers that a run has failed by are few, each once; a run that has ended well or was canceled has none.
func TestCulpritLogs(t *testing.T) {
	r := begin(t, "")
	d := r.watched(t, instance("a", "one", nil))
	task := func(pod string, status v1beta1.ExecutionStatus) v1beta1.TaskStatus {
		return v1beta1.TaskStatus{Name: "t", Status: status, Culprit: &v1beta1.Culprit{Kind: "Job", Namespace: "a", Pod: pod, Container: "main", Reason: "CrashLoopBackOff"}}
	}
	const failed, waits = v1beta1.FatalError, v1beta1.InProgress
	for _, tc := range []struct {
		reason string
		run    v1beta1.PlanStatus
		tasks  []v1beta1.TaskStatus
		want   string
	}{
		{"those that have failed only", v1beta1.PlanStatus{Status: failed}, []v1beta1.TaskStatus{task("p", waits), task("q", failed)}, "q"},
		{"those that a run waits for", v1beta1.PlanStatus{Status: waits}, []v1beta1.TaskStatus{task("p", waits), task("q", waits)}, "p q"},
		{"one of two tasks that wait for the same", v1beta1.PlanStatus{Status: waits}, []v1beta1.TaskStatus{task("p", waits), task("p", waits)}, "p"},
		{"a few of many", v1beta1.PlanStatus{Status: failed}, []v1beta1.TaskStatus{task("p", failed), task("q", failed), task("r", failed), task("s", failed)}, "p q r"},
		{"none of a run that is complete", v1beta1.PlanStatus{Status: v1beta1.Complete}, []v1beta1.TaskStatus{task("p", failed)}, ""},
	} {
		i := instance("a", "one", func(i *v1beta1.Instance) {
			tc.run.Name, tc.run.Revision = "deploy", 1
			tc.run.Phases = []v1beta1.PhaseStatus{{Steps: []v1beta1.StepStatus{{Tasks: tc.tasks}}}}
			i.Status.PlanStatus["deploy"] = tc.run
		})
		var got []string
		for _, c := range d.culpritLogs(i, mask{}) {
			got = append(got, c.Pod)
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", tc.reason, got, tc.want)
		}
	}
	d.kinds[podKind].note(apierrors.NewUnauthorized("expired"))
	c := &culpritLog{}
	c.Namespace, c.Pod, c.key.uid = "a", "p", types.UID("")
	if d.complete(c); c.problem != "The log is not read: your login has ended" {
		t.Errorf("without a login, the page says %q", c.problem)
	}
}
