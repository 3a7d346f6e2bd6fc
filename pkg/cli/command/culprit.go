package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"kudo.dev/kudo/apis/kudo/v1beta1"
	"kudo.dev/kudo/pkg/diagnostics"
	"kudo.dev/kudo/pkg/health/culprit"
	"kudo.dev/kudo/pkg/history"
	"kudo.dev/kudo/pkg/text"
	"kudo.dev/kudo/plans"
)

// explainer says with the rights of the user what keeps a run from ending well, and what the container that failed has written last. Where
// the user may not list pods, explainer shows the culprit of the status, which the manager found with the rights of the run.
type explainer struct {
	client client.Client
	set    kubernetes.Interface
	redact *diagnostics.Redactor
	now    time.Time
	// noLog is why no log may be shown; empty if it may.
	noLog string
	// subject is the flag of commands that names the object whose plan runs.
	subject string
	// definitions and values are those of the parameters of an Instance.
	definitions []v1beta1.Parameter
	values      map[string]string
	// upgrade is set if an upgrade of an Instance is not complete, so that a rollback leads out.
	upgrade bool
}

// The bounds of what is said.
const (
	// shownCulprits is how many tasks of a run are explained.
	shownCulprits = 3
	explainTime   = 10 * time.Second
	maxImage      = 256
)

// ExplainInstance says what keeps the last run of an Instance from ending well; "" if nothing is known.
func (env *Env) ExplainInstance(ctx context.Context, c client.Client, i *v1beta1.Instance) string {
	if i == nil {
		return ""
	}
	_, run := plans.LatestRun(i.Status.PlanStatus)
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	return env.explain(ctx, c, run, fmt.Sprintf("--instance %s -n %s", i.Name, i.Namespace), func(e *explainer) {
		ov := &v1beta1.OperatorVersion{}
		if c.Get(ctx, i.OperatorVersionKey(), ov) != nil {
			ov = &v1beta1.OperatorVersion{}
		}
		runs, err := history.List(ctx, c, i)
		if err != nil && !apierrors.IsForbidden(err) { // a user who may not list runs may see in the log what was sensitive in them
			e.noLog = "the log is not shown, since the history cannot be read, by which values are left out: " + err.Error()
		}
		e.redact.HideInstance(ctx, c, i, ov, runs)
		e.definitions, e.values = ov.Spec.Parameters, i.Spec.Parameters
		e.upgrade = i.Status.Baseline != nil && i.Status.Baseline.UpgradeIncomplete
	})
}

// ExplainVersion says what keeps the install plan of an OperatorVersion from ending well; "" if nothing is known.
func (env *Env) ExplainVersion(ctx context.Context, c client.Client, ov *v1beta1.OperatorVersion) string {
	if ov == nil {
		return ""
	}
	_, run := plans.LatestRun(ov.Status.PlanStatus)
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	return env.explain(ctx, c, run, fmt.Sprintf("--operator-version %s -n %s", ov.Name, ov.Namespace), func(e *explainer) {
		e.redact.HideParameters(ov.Spec.Parameters, ov.Spec.InstallParameters)
	})
}

func (env *Env) explain(ctx context.Context, c client.Client, run v1beta1.PlanStatus, subject string, hide func(*explainer)) string {
	all := plans.Culprits(run)
	if len(all) == 0 || run.Status == v1beta1.Complete || plans.IsCanceled(run.Status, run.Message) {
		return ""
	}
	e := &explainer{client: c, redact: &diagnostics.Redactor{}, now: env.Now(), subject: subject}
	hide(e)
	if config, err := env.Flags.ToRESTConfig(); err == nil {
		e.set, _ = kubernetes.NewForConfig(config)
	}
	var out strings.Builder
	todo, logs := "", ""
	for _, at := range all[:min(len(all), shownCulprits)] {
		if run.Status == v1beta1.FatalError && !at.Failed {
			break // it waited only, and a failed run waits for nothing
		}
		if plans.IsRepetition(at.Task) { // the error says it
			if stored := e.stored(at); todo == "" && stored.Remedy() != "" {
				todo = e.remedy(stored, run.Status.IsRunning())
			}
			continue
		}
		found := e.find(ctx, run, at)
		out.WriteString(e.describe(found))
		out.WriteString(e.log(ctx, found))
		if todo == "" {
			todo = e.remedy(withMessage(found, at.Task.Message), run.Status.IsRunning())
		}
		if logs == "" {
			logs = found.LogsCommand()
		}
	}
	if todo == "" {
		return ""
	}
	if logs != "" {
		todo += "   (all of the log: " + logs + ")"
	}
	return out.String() + "  What to do: " + todo + "\n"
}

// withDetails adds lines to an error; "" adds none.
func withDetails(err error, details string) error {
	if details == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimSuffix(details, "\n"))
}

// stored returns the culprit of a status, which others may have written.
func (e *explainer) stored(at plans.CulpritAt) culprit.Finding {
	return culprit.Finding{Culprit: culprit.Bounded(*at.Task.Culprit, e.redact.Text)}
}

// find searches the object of a culprit as it is now. If it tells less than the status, such as after the pod was deleted, or if the
// user may not read it, the status counts.
func (e *explainer) find(ctx context.Context, run v1beta1.PlanStatus, at plans.CulpritAt) culprit.Finding {
	known := *at.Task.Culprit
	stored := e.stored(at)
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(known.APIVersion)
	obj.SetKind(known.Kind)
	if known.Kind == "" || e.client.Get(ctx, client.ObjectKey{Namespace: known.Namespace, Name: known.Name}, obj) != nil {
		return stored
	}
	o := culprit.Options{Known: known.Pod}
	if run.StartedTimestamp != nil {
		o.Since = run.StartedTimestamp.Time
	}
	found, err := culprit.Search(ctx, reader{e.client}, obj, o)
	if err != nil && found.Pod == "" || found.Pod == "" && known.Pod != "" || found.Reason == "" && found.ExitCode == nil {
		return stored
	}
	found.Culprit, found.Event = culprit.Bounded(found.Culprit, e.redact.Text), e.redact.Text(found.Event)
	found.Image = e.redact.Text(text.Plain(found.Image, maxImage))
	return found
}

// describe is a culprit as a line.
func (e *explainer) describe(f culprit.Finding) string {
	line := "  " + f.Kind + " " + strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")
	if f.Pod != "" {
		line = "  Pod " + f.Pod
	}
	if f.Container != "" {
		line += ", container " + f.Container
	}
	why := f.Culprit
	why.Pod, why.Container = "", ""
	words := strings.TrimPrefix(plans.DescribeCulprit(why), "ended with ")
	if f.Ran > 0 {
		words += " after " + duration.HumanDuration(f.Ran)
	}
	if words != "" {
		line += ": " + words
	}
	if f.Event != "" {
		line += fmt.Sprintf("        event: %s, %s ago", f.Event, duration.HumanDuration(e.now.Sub(f.EventTime)))
	}
	return line + "\n"
}

// reader lists with the rights of the user.
type reader struct{ client.Client }

// Pods implements culprit.Reader.
func (r reader) Pods(ctx context.Context, namespace, labels string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: culprit.MaxPods,
		Raw: &metav1.ListOptions{LabelSelector: labels}})
	return list.Items, err
}

// Events implements culprit.Reader.
func (r reader) Events(ctx context.Context, namespace, fields string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := r.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: culprit.MaxEvents,
		Raw: &metav1.ListOptions{FieldSelector: fields}})
	return list.Items, err
}
