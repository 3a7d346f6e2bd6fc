package instances

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/cli/command"
	"kudo.dev/kudo/pkg/health"
	"kudo.dev/kudo/plans"
)

// The bounds of what is shown of a log, and of the time that it may take to read it.
const (
	logLines int64 = 10
	logBytes int64 = 4 << 10
	logTime        = 5 * time.Second
	// shownJobs is how many failed Jobs have their logs shown.
	shownJobs = 3
	// readJobs and readPods are how many Jobs of a plan, and pods of a Job, are read.
	readJobs = 500
	readPods = 50
)

// logsOfInstance returns the last lines that the failed Jobs of an Instance's last plan have written, if that plan has failed or fails
// again and again.
func logsOfInstance(ctx context.Context, env *command.Env, c client.Client, i *v1beta1.Instance) (string, error) {
	name, fails := failingPlan(i.Status.PlanStatus)
	if !fails {
		return "", nil
	}
	jobs := &batchv1.JobList{}
	if err := c.List(ctx, jobs, client.InNamespace(i.Namespace), client.MatchingLabels{v1beta1.InstanceLabel: i.Name},
		client.Limit(readJobs)); err != nil {
		return fmt.Sprintf("The Jobs of plan %s cannot be listed: %v\n", name, err), nil
	}
	return logsOfFailedJobs(ctx, env, c, slices.DeleteFunc(jobs.Items, func(job batchv1.Job) bool {
		return !metav1.IsControlledBy(&job, i) || job.Annotations[v1beta1.PlanAnnotation] != name
	}))
}

// logsOfVersion returns the last lines that the failed Jobs of an install plan have written, if it has failed or fails again and again.
func logsOfVersion(ctx context.Context, env *command.Env, c client.Client, ov *v1beta1.OperatorVersion) (string, error) {
	if _, fails := failingPlan(ov.Status.PlanStatus); !fails {
		return "", nil
	}
	holder := &v1beta1.Installation{}
	if err := c.Get(ctx, client.ObjectKey{Name: ov.InstallationName()}, holder); err != nil {
		return fmt.Sprintf("The Jobs of the install plan cannot be found: %v\n", err), nil
	}
	var jobs []batchv1.Job
	for _, held := range holder.Status.Resources {
		if held.Kind != "Job" || held.APIVersion != batchv1.SchemeGroupVersion.String() || len(jobs) == readJobs {
			continue
		}
		job := &batchv1.Job{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: held.Namespace, Name: held.Name}, job); err == nil && job.UID == held.UID {
			jobs = append(jobs, *job)
		}
	}
	return logsOfFailedJobs(ctx, env, c, jobs)
}

// failingPlan returns the name of the last plan, and reports whether it has failed or fails again and again.
func failingPlan(status map[string]v1beta1.PlanStatus) (name string, fails bool) {
	name, run := plans.LatestRun(status)
	return name, run.Status == v1beta1.FatalError || run.Status == v1beta1.TransientError
}

// logsOfFailedJobs returns the last lines of those Jobs that have failed. The user's rights decide what is read, and what cannot be read
// is said.
func logsOfFailedJobs(ctx context.Context, env *command.Env, c client.Client, jobs []batchv1.Job) (string, error) {
	config, err := env.Flags.ToRESTConfig()
	if err != nil {
		return "", err
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	shown := 0
	for n := range jobs {
		job := &jobs[n]
		if job.Status.Failed == 0 || job.Status.CompletionTime != nil {
			continue
		}
		if shown++; shown > shownJobs {
			break
		}
		out.WriteString(logOfJob(ctx, c, set, job))
	}
	return out.String(), nil
}

// logOfJob returns the last lines of the container that made a Job fail.
func logOfJob(ctx context.Context, c client.Client, set kubernetes.Interface, job *batchv1.Job) string {
	pods := &unstructured.UnstructuredList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := c.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)},
		client.Limit(readPods)); err != nil {
		return fmt.Sprintf("The pods of Job %s cannot be listed: %v\n", job.Name, err)
	}
	failure := health.FailedContainer(pods.Items)
	if failure == nil {
		return fmt.Sprintf("Job %s has failed, and none of its failed pods is left.\n", job.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	options := &corev1.PodLogOptions{Container: failure.Container, Previous: failure.Restarted, TailLines: ptr.To(logLines),
		LimitBytes: ptr.To(logBytes)}
	text, err := readLog(ctx, set, job.Namespace, failure.Pod, options)
	switch {
	case err != nil:
		return fmt.Sprintf("Job %s: %s; its log cannot be read: %v\n", job.Name, failure, err)
	case text == "":
		return fmt.Sprintf("Job %s: %s, and has written nothing.\n", job.Name, failure)
	}
	return fmt.Sprintf("Job %s: %s. Its last lines:\n%s", job.Name, failure, text)
}

func readLog(ctx context.Context, set kubernetes.Interface, namespace, pod string, options *corev1.PodLogOptions) (string, error) {
	stream, err := set.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(io.LimitReader(stream, logBytes))
	return indented(string(text)), err
}

// indented returns the lines of a log that are not empty.
func indented(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			out.WriteString("  " + line + "\n")
		}
	}
	return out.String()
}
