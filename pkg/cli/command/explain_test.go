package command_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/test/apitest"
	"kudo.dev/kudo/test/gen"
)

// withLogs starts an API server in memory whose pods have a log, and returns an Env and a client of it. asked is the query of the last request
// for a log.
func withLogs(t *testing.T, log string, objects ...client.Object) (env *command.Env, c client.WithWatch, server *apitest.Server, asked *string) {
	t.Helper()
	server = apitest.Start(t, objects...)
	to, err := url.Parse(server.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	asked = ptr.To("")
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.HasSuffix(r.URL.Path, "/log"):
			proxy.ServeHTTP(w, r)
		case log == "":
			w.WriteHeader(http.StatusForbidden)
		default:
			*asked = r.URL.Path + "?" + r.URL.RawQuery
			_, _ = w.Write([]byte(log))
		}
	}))
	t.Cleanup(front.Close)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	env = command.NewEnv(nil, &bytes.Buffer{}, &bytes.Buffer{})
	*env.Flags.APIServer = front.URL
	c, err = client.NewWithWatch(server.Config(), client.Options{Scheme: apitest.Scheme(), Mapper: server.Mapper()})
	if err != nil {
		t.Fatal(err)
	}
	return env, c, server, asked
}

// reportJob is a Job of Instance site, with its pod.
func reportJob() (*batchv1.Job, *corev1.Pod) {
	job := &batchv1.Job{ObjectMeta: gen.Meta("lab", "report")}
	job.UID = "job-uid"
	pod := &corev1.Pod{ObjectMeta: gen.Meta("lab", "report-x")}
	pod.Labels = map[string]string{batchv1.ControllerUidLabel: "job-uid"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "report", UID: "job-uid", Controller: ptr.To(true)}}
	began := metav1.NewTime(time.Now().Add(-time.Minute).Truncate(time.Second))
	end := corev1.ContainerStateTerminated{ExitCode: 7, Reason: "Error", StartedAt: began, FinishedAt: metav1.NewTime(began.Add(2 * time.Second))}
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{Name: "report", State: corev1.ContainerState{Terminated: &end}}}}
	return job, pod
}

// failedSite is an Instance whose plan has failed by the Job.
func failedSite(status v1beta1.ExecutionStatus, culprits ...*v1beta1.Culprit) *v1beta1.Instance {
	i := gen.Instance("site", gen.Version("lab", "web-1.0"), map[string]string{"PASSWORD": "correct-horse"})
	step := v1beta1.StepStatus{Name: "report", Status: status}
	for _, c := range culprits {
		step.Tasks = append(step.Tasks, v1beta1.TaskStatus{Name: "t", Status: status, Culprit: c})
	}
	i.Status.PlanStatus = map[string]v1beta1.PlanStatus{"report": {Name: "report", Status: status, Message: "m", Phases: []v1beta1.PhaseStatus{{Name: "report",
		Steps: []v1beta1.StepStatus{step}}}}}
	return i
}

// stored is the culprit as the manager has written it.
func stored() *v1beta1.Culprit {
	return &v1beta1.Culprit{APIVersion: "batch/v1", Kind: "Job", Namespace: "lab", Name: "report", Pod: "report-x", Container: "report", ExitCode: ptr.To[int32](7)}
}

// TestExplainInstance (P22): what is said of a run that fails, with the rights of the user.
func TestExplainInstance(t *testing.T) {
	const do, retry = "  What to do: correct what made container report end with exit code 7", ", then kubectl kudo plan retry --instance site -n lab"
	const logs = "   (all of the log: kubectl logs report-x -c report -n lab)\n"
	deny := func(kind string) apitest.Hook {
		return func(r apitest.Request) (any, error) {
			if r.Kind == kind && r.Verb != "watch" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", nil)
			}
			return nil, nil
		}
	}
	for name, tc := range map[string]struct {
		reason string
		i      *v1beta1.Instance
		log    string
		hook   apitest.Hook
		want   string
	}{
		"Failed": {"the container, its last words without secrets, and what to do", failedSite(v1beta1.FatalError, stored()), "one\n\ntwo correct-horse\n", nil,
			"  Pod report-x, container report: exit code 7 after 2s\n  | one\n  | two REDACTED\n" + do + retry + logs},
		"Silent": {"a container that has written nothing", failedSite(v1beta1.FatalError, stored()), "\n", nil,
			"  Pod report-x, container report: exit code 7 after 2s\n  the container has written nothing\n" + do + retry + logs},
		"LongLine": {"a last line that is too long to be shown whole, where a secret may be cut in two", failedSite(v1beta1.FatalError, stored()), strings.Repeat("x", 9<<10) + "\n", nil,
			"  Pod report-x, container report: exit code 7 after 2s\n  the last line of the log is longer than the 4 KiB that are shown here\n" + do + retry + logs},
		"NoPods": {"the user may not list pods: the status counts", failedSite(v1beta1.FatalError, stored()), "one\n", deny("Pod"),
			"  Pod report-x, container report: exit code 7\n  | one\n" + do + retry + logs},
		"NoJob": {"the object was deleted: the status counts", failedSite(v1beta1.FatalError, stored()), "one\n", deny("Job"),
			"  Pod report-x, container report: exit code 7\n  | one\n" + do + retry + logs},
		"Waits": {"a plan that continues", failedSite(v1beta1.InProgress, stored()), "one\n", nil,
			"  Pod report-x, container report: exit code 7 after 2s\n  | one\n" +
				do + "; the plan continues: kubectl kudo plan status --instance site -n lab --watch" + logs},
		"Many": {"no more than three tasks are explained", failedSite(v1beta1.FatalError, quota("a"), quota("b"), quota("c"), quota("d")), "one\n", nil,
			"  Widget lab/a: Q: m\n  Widget lab/b: Q: m\n  Widget lab/c: Q: m\n  What to do: correct the cause" + retry + "\n"},
		"Refused": {"the message of the run says all", withMessage(failedSite(v1beta1.FatalError, quota("a")), "Widget lab/a: m"), "one\n", nil, ""},
		"Right": {"the message of the run says the cause, and not what to do", withMessage(failedSite(v1beta1.FatalError, forbidden()), "Widget lab/a: may not"), "one\n", nil,
			"  What to do: give the account of the run the right that the message names (kubectl kudo account create)" + retry + "\n"},
		"Deleted": {"the message of the task says what the object does not", withMessage(failedSite(v1beta1.FatalError, &v1beta1.Culprit{Kind: "Widget", Name: "a"}), "Widget a is being deleted (finalizers [x])"),
			"one\n", nil, "  Widget a\n  What to do: let the controllers of the finalizers do their work, or remove the finalizers" + retry + "\n"},
		"Complete": {"a plan that is complete", failedSite(v1beta1.Complete, stored()), "one\n", nil, ""},
		"Unknown":  {"no culprit is known", failedSite(v1beta1.FatalError), "one\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job, pod := reportJob()
			env, c, server, asked := withLogs(t, tc.log, job, pod)
			if tc.hook != nil {
				server.Before(tc.hook)
			}
			if got := env.ExplainInstance(t.Context(), c, tc.i); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
			if want := "/api/v1/namespaces/lab/pods/report-x/log?container=report&limitBytes=65536&tailLines=20"; *asked != "" && *asked != want {
				t.Errorf("the log was asked for by %s, want %s", *asked, want)
			}
		})
	}
}

// withMessage sets the messages of the tasks of an Instance's plan.
func withMessage(i *v1beta1.Instance, message string) *v1beta1.Instance {
	tasks := i.Status.PlanStatus["report"].Phases[0].Steps[0].Tasks
	for n := range tasks {
		tasks[n].Message = message
	}
	return i
}

// quota is the culprit of an object of a kind that the cluster does not serve.
func quota(name string) *v1beta1.Culprit {
	return &v1beta1.Culprit{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "lab", Name: name, Reason: "Q", Message: "m"}
}

// forbidden is the culprit of an object that the account of a run may not write.
func forbidden() *v1beta1.Culprit {
	c := quota("a")
	c.Reason, c.Message = "Forbidden", "may not"
	return c
}

// TestExplainWithoutRight (P22): whoever may not read the log gets the reason and the command.
func TestExplainWithoutRight(t *testing.T) {
	job, pod := reportJob()
	env, c, _, _ := withLogs(t, "", job, pod)
	got := env.ExplainInstance(t.Context(), c, failedSite(v1beta1.FatalError, stored()))
	for _, want := range []string{"\n  the log cannot be read: ", "(all of the log: kubectl logs report-x -c report -n lab)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

// TestExplainVersion (P22): an install plan is explained likewise, and an absent object is not.
func TestExplainVersion(t *testing.T) {
	job, pod := reportJob()
	env, c, _, _ := withLogs(t, "seed abcdefgh\n", job, pod)
	ov := gen.Version("lab", "web-1.0", gen.Param("SEED", "", ""))
	ov.Spec.Parameters[0].Sensitive, ov.Spec.InstallParameters = true, map[string]string{"SEED": "abcdefgh"}
	ov.Status.PlanStatus = failedSite(v1beta1.FatalError, stored()).Status.PlanStatus
	got := env.ExplainVersion(t.Context(), c, ov)
	for _, want := range []string{"  | seed REDACTED\n", "plan retry --operator-version web-1.0 -n lab   ("} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if env.ExplainVersion(t.Context(), c, nil)+env.ExplainInstance(t.Context(), c, nil) != "" {
		t.Error("nothing is known of what does not exist")
	}
}

// TestWaitExplains (P22): the error of a wait that ends with a failure, or takes too long, has the cause, and keeps its exit code.
func TestWaitExplains(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status v1beta1.ExecutionStatus
		code   string
	}{
		{"the plan has failed", v1beta1.FatalError, "plan report failed: m\n  Pod report-x"},
		{"the wait takes too long", v1beta1.InProgress, "is not ready after 1s: "},
	} {
		job, pod := reportJob()
		i := failedSite(tc.status, stored())
		env, c, _, _ := withLogs(t, "one\n", job, pod, i)
		err := env.WaitForInstance(t.Context(), c, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, time.Second, command.UntilArrived(0, ""))
		want := map[v1beta1.ExecutionStatus]int{v1beta1.FatalError: command.ExitFailed, v1beta1.InProgress: command.ExitTimeout}[tc.status]
		if code := env.ReportError(err); code != want {
			t.Errorf("%s: exit code %d, want %d", tc.reason, code, want)
		}
		for _, want := range []string{tc.code, "\n  | one\n", "What to do: "} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", tc.reason, err, want)
			}
		}
	}
}

// TestWatchInstance (P23): without a terminal, each change is a line, and Ctrl-C says that the plan continues.
func TestWatchInstance(t *testing.T) {
	i := failedSite(v1beta1.InProgress)
	env, c, server, _ := withLogs(t, "one\n", i)
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "watch" {
			go server.Put(failedSite(v1beta1.Complete))
		}
		return nil, nil
	})
	if err := env.WatchInstance(t.Context(), c, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, command.UntilArrived(0, "")); err != nil {
		t.Fatal(err)
	}
	if got, want := env.Out.(*bytes.Buffer).String(), "plan report: IN_PROGRESS\nplan report, step report/report: IN_PROGRESS\nplan report, step report/report: COMPLETE\nplan report: COMPLETE\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}

	env, c, server, _ = withLogs(t, "one\n", failedSite(v1beta1.InProgress))
	ctx, interrupt := context.WithCancel(t.Context())
	server.Before(func(r apitest.Request) (any, error) {
		if r.Verb == "watch" {
			go interrupt()
		}
		return nil, nil
	})
	err := env.WatchInstance(ctx, c, &v1beta1.Instance{ObjectMeta: gen.Meta("lab", "site")}, command.UntilArrived(0, ""))
	env.ReportError(err)
	if got, want := env.Err.(*bytes.Buffer).String(), "Error: interrupted: the plan continues: kubectl kudo plan wait --instance site -n lab\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
